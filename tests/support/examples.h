// The scenarios of examples/ as predictions.
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/predict.h"

namespace plumbline::test {

inline Outcome predict_example(const std::string& file, const std::vector<std::string>& overrides) {
  const auto scenario = read_scenario("examples/" + file + ".yaml", overrides);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  auto prediction = predict(*scenario);
  REQUIRE(prediction);
  return *std::move(prediction);
}

}  // namespace plumbline::test
