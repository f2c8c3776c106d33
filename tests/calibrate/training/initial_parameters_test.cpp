// Starting values: from the seed alone, with the variance of their kind.
//
// SPDX-License-Identifier: MIT
#include "calibrate/training/initial_parameters.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/calibrate/training/hand_made_layers.h"

namespace plumbline::test {
namespace {

TEST_CASE("starting values depend on the seed alone, to the last bit") {
  const NetworkLayer layer = layer_of(MlpBlock{8}, {3, 6});
  CHECK(initial_parameters(layer, 5) == initial_parameters(layer, 5));
  CHECK(initial_parameters(layer, 5) != initial_parameters(layer, 6));
  const NetworkLayer linear = layer_of(Linear{4, false}, {4});
  const Values weight = initial_parameters(linear, 1)[0];
  CHECK(Values(weight.begin(), weight.begin() + 3) ==
        Values{0.2683969718636945, -0.32389193098060787, 0.5924275942379609});
  // Two parameters of one shape do not hold the same numbers.
  const NetworkLayer square = layer_of(Lstm{4, true}, {3, 4});
  CHECK(initial_parameters(square, 1)[0] != initial_parameters(square, 1)[1]);
}

void check_normal(const Values& values, double deviation) {
  const MeanAndVariance found = statistics(values);
  const double spread = 5 / std::sqrt(static_cast<double>(values.size()));  // five deviations
  CHECK(std::abs(found.mean) < spread * deviation);
  CHECK(std::abs(found.variance / (deviation * deviation) - 1) < spread * std::sqrt(2.0));
  // 68.3 % of normal numbers lie within one deviation, 95.4 % within two.
  const auto within = [&](double limit) {
    const auto inside = std::count_if(values.begin(), values.end(),
                                      [&](double value) { return std::abs(value) < limit; });
    return static_cast<double>(inside) / static_cast<double>(values.size());
  };
  CHECK(std::abs(within(deviation) - 0.683) < 0.01 + spread / 2);
  CHECK(std::abs(within(2 * deviation) - 0.954) < 0.01 + spread / 4);
}

TEST_CASE("starting values have the variance of their kind") {
  const std::vector<Values> linear = initial_parameters(layer_of(Linear{200, true}, {64}), 3);
  check_normal(linear[0], 1 / std::sqrt(64.0));
  CHECK(linear[1] == Values(200, 0.0));
  const std::vector<Values> conv =
      initial_parameters(layer_of(Conv2d{64, 3, 1, 1, true}, {16, 8, 8}), 3);
  check_normal(conv[0], 1 / std::sqrt(16.0 * 9));
  const std::vector<Values> embedding =
      initial_parameters(layer_of(Embedding{100, 64, true}, {50}), 3);
  check_normal(embedding[0], 0.02);
  check_normal(embedding[1], 0.02);
  const std::vector<Values> block = initial_parameters(layer_of(MlpBlock{256}, {4, 64}), 3);
  CHECK(block[0] == Values(64, 1.0));
  CHECK(block[1] == Values(64, 0.0));
  check_normal(block[2], 1 / std::sqrt(64.0));
  CHECK(block[3] == Values(256, 0.0));
  check_normal(block[4], 1 / std::sqrt(256.0));
  CHECK(block[5] == Values(64, 0.0));
}

}  // namespace
}  // namespace plumbline::test
