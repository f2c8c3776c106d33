// The tables of rotary positions.
//
// SPDX-License-Identifier: MIT
#include "calibrate/training/rotary_angles.h"

#include <doctest/doctest.h>

#include <cmath>

#include "base/bug.h"
#include "calibrate/training/reference_math.h"

namespace plumbline {
namespace {

using Floats = std::vector<float>;

float cosine(double angle) { return static_cast<float>(std::cos(angle)); }
float sine(double angle) { return static_cast<float>(std::sin(angle)); }

TEST_CASE("a row has the cosines of its pairs, then their sines") {
  // A base of 10^4 and heads of 4: pairs turn by 1 and by 1/100 a token.
  CHECK(rotary_angles(3, 4, 10000) == Floats{1, 1, 0, 0,                                    //
                                             cosine(1), cosine(0.01), sine(1), sine(0.01),  //
                                             cosine(2), cosine(0.02), sine(2), sine(0.02)});
  // The only pair of heads of 2 turns by 1, whatever the base; a base of 1 turns all pairs so.
  CHECK(rotary_angles(2, 2, 500) == Floats{1, 0, cosine(1), sine(1)});
  CHECK(rotary_angles(2, 4, 1) == Floats{1, 1, 0, 0, cosine(1), cosine(1), sine(1), sine(1)});
  CHECK(rotary_angles(0, 4, 10000).empty());
}

TEST_CASE("late tokens have angles as exact as early ones") {
  constexpr std::int64_t kTokens = 100'000;
  const Floats angles = rotary_angles(kTokens, 6, 500'000);
  REQUIRE(angles.size() == kTokens * 6);
  const double last = kTokens - 1;
  const std::vector<double> turns{1, std::pow(500'000, -1.0 / 3), std::pow(500'000, -2.0 / 3)};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(std::abs(angles[(kTokens - 1) * 6 + i] - std::cos(last * turns[i])) < 1e-7);
    CHECK(std::abs(angles[(kTokens - 1) * 6 + 3 + i] - std::sin(last * turns[i])) < 1e-7);
  }
}

TEST_CASE("the angles are those of the reference") {
  constexpr std::int64_t kTokens = 7;
  constexpr std::int64_t kSize = 10;
  // A head of ones in the first half and zeros in the second shows cosines and sines.
  Values heads;
  for (std::int64_t i = 0; i < kTokens * kSize; ++i) heads.push_back(i % kSize < kSize / 2 ? 1 : 0);
  reference::rotate(heads, kSize, kSize, kTokens, 300, false);
  const Floats angles = rotary_angles(kTokens, kSize, 300);
  CHECK(angles == Floats(heads.begin(), heads.end()));
}

TEST_CASE("heads of an odd size are a bug") {
  CHECK_THROWS_AS(rotary_angles(3, 5, 10000), Bug);
  CHECK_THROWS_AS(rotary_angles(3, 0, 10000), Bug);
}

}  // namespace
}  // namespace plumbline
