// Random numbers by place: pinned values, moments, independence of neighbours.
//
// SPDX-License-Identifier: MIT
#include "base/random.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <set>

namespace plumbline::test {
namespace {

constexpr std::uint64_t kDraws = 100'000;
constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST_CASE("random bits are the same on every machine") {
  CHECK(random_bits(0, 0) == 0x397ab29740681d9U);
  CHECK(random_bits(0, 1) == 0xc0737b7cf89e44abU);
  CHECK(random_bits(1, 0) == 0xddc1ed05282d1d64U);
  CHECK(random_bits(42, std::uint64_t{1} << 32U | 7U) == 0x3e64f5e40357cf02U);
  CHECK(random_bits(kMax, kMax) == 0x445018e305810b78U);
}

TEST_CASE("seeds and places that differ give bits that differ") {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (std::uint64_t place = 0; place < 100; ++place) seen.insert(random_bits(seed, place));
  }
  CHECK(seen.size() == 10'000);
}

TEST_CASE("every bit is set in half of the draws") {
  int set[64] = {};
  for (std::uint64_t place = 0; place < kDraws; ++place) {
    const std::uint64_t bits = random_bits(7, place);
    for (unsigned bit = 0; bit < 64; ++bit) set[bit] += static_cast<int>(bits >> bit & 1U);
  }
  for (const int count : set)
    CHECK(std::abs(count - static_cast<int>(kDraws / 2)) < 800);  // five deviations
}

TEST_CASE("uniform draws are the upper bits, fill 0 to 1 and do not follow each other") {
  CHECK(random_uniform(0, 1) == static_cast<double>(0xc0737b7cf89e44abU >> 11U) * 0x1p-53);
  double sum = 0, squares = 0, products = 0, before = random_uniform(3, kDraws);
  for (std::uint64_t place = 0; place < kDraws; ++place) {
    const double u = random_uniform(3, place);
    CHECK((u >= 0 && u < 1));
    sum += u;
    squares += u * u;
    products += (u - 0.5) * (before - 0.5);
    before = u;
  }
  CHECK(sum / kDraws == doctest::Approx(0.5).epsilon(0.01));
  CHECK(squares / kDraws == doctest::Approx(1.0 / 3).epsilon(0.01));
  CHECK(std::abs(products / kDraws * 12) < 0.02);
}

TEST_CASE("normal draws are made of two uniform ones and have their four moments") {
  const double radius = std::sqrt(-2 * std::log(1 - random_uniform(5, 18)));
  CHECK(random_normal(5, 9) ==
        doctest::Approx(radius * std::cos(2 * std::numbers::pi * random_uniform(5, 19))));
  double first = 0, second = 0, third = 0, fourth = 0;
  for (std::uint64_t place = 0; place < kDraws; ++place) {
    const double x = random_normal(11, place);
    first += x;
    second += x * x;
    third += x * x * x;
    fourth += x * x * x * x;
  }
  CHECK(std::abs(first / kDraws) < 0.02);
  CHECK(second / kDraws == doctest::Approx(1).epsilon(0.02));
  CHECK(std::abs(third / kDraws) < 0.05);
  CHECK(fourth / kDraws == doctest::Approx(3).epsilon(0.05));
}

}  // namespace
}  // namespace plumbline::test
