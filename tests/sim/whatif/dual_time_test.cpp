// Integers that hold dual numbers add up and compare as these do.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/dual_time.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>

#include "tests/support/text_source.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

constexpr DualSide kSides[] = {DualSide::shorter, DualSide::longer};

TEST_CASE("a dual number comes back from its integer") {
  const DualScale scale(1'000'000);
  for (const DualSide side : kSides) {
    for (const std::int64_t time :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{999'999}, std::int64_t{1'000'000}}) {
      for (const std::int64_t steps : {std::int64_t{0}, std::int64_t{1}, scale.scale() - 1}) {
        if (time == 0 && side == DualSide::shorter && steps > 0) continue;  // below 0
        CAPTURE(time);
        CAPTURE(steps);
        CHECK(scale.unpack(scale.pack({time, steps}, side), side) == DualTime{time, steps});
      }
    }
  }
}

TEST_CASE("the longest time is the largest that fits its integer") {
  for (const std::int64_t longest : {std::int64_t{1}, std::int64_t{7}, std::int64_t{1} << 40}) {
    const DualScale scale(longest);
    CHECK(scale.scale() >= 1);
    CHECK(scale.pack({longest, 0}, DualSide::longer) <= std::int64_t{1} << 62);
  }
}

TEST_CASE("of sums along paths the maximum is the longest, then the one that is moved to it") {
  Dice dice(11);
  const DualScale scale(1'000);
  for (std::uint64_t trial = 0; trial < trials(200); ++trial) {
    for (const DualSide side : kSides) {
      std::int64_t packed = 0;
      DualTime longest;
      for (int path = 0; path < 5; ++path) {
        std::int64_t packed_sum = 0;
        DualTime sum;
        for (int op = 0; op < 4; ++op) {
          const DualTime dual{dice.roll(1, 3), dice.roll(0, 2)};
          packed_sum += scale.pack(dual, side);
          sum = {sum.time + dual.time, sum.steps + dual.steps};
        }
        const auto order = [&](const DualTime& x) {
          return std::tuple(x.time, static_cast<std::int64_t>(side) * x.steps);
        };
        if (path == 0 || order(sum) > order(longest)) longest = sum;
        packed = std::max(packed, packed_sum);
      }
      CHECK(scale.unpack(packed, side) == longest);
    }
  }
}

}  // namespace
}  // namespace plumbline::test
