// Arrays in one block: aligned, apart from each other, and written to the end.
//
// SPDX-License-Identifier: MIT
#include "base/huge_pages.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace plumbline::test {
namespace {

TEST_CASE("arrays of a block are aligned and do not overlap, in small pages and in huge ones") {
  for (const std::size_t count : {std::size_t{0}, std::size_t{7}, std::size_t{400'000}}) {
    CAPTURE(count);
    HugeBlock block(count * (sizeof(std::int64_t) + sizeof(std::uint32_t) + 1));
    const auto longs = block.take<std::int64_t>(count);
    const auto ints = block.take<std::uint32_t>(count);
    const auto letters = block.take<char>(count);
    CHECK(reinterpret_cast<std::uintptr_t>(longs.data()) % alignof(std::int64_t) == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(ints.data()) % alignof(std::uint32_t) == 0);
    std::iota(longs.begin(), longs.end(), 0);
    std::iota(ints.begin(), ints.end(), 0U);
    for (char& letter : letters) letter = 'F';
    for (std::size_t i = 0; i < count; i += 97) {
      REQUIRE(longs[i] == static_cast<std::int64_t>(i));
      REQUIRE(ints[i] == i);
      REQUIRE(letters[i] == 'F');
    }
  }
}

}  // namespace
}  // namespace plumbline::test
