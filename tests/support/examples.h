// The scenarios of examples/ as predictions.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/planning/planning.h"
#include "sim/planning/predict.h"

namespace plumbline::test {

inline Outcome predict_example(const std::string& file, const std::vector<std::string>& overrides) {
  const auto scenario = read_scenario("examples/" + file + ".yaml", overrides);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  const auto settled = resolve_plan(*scenario);
  REQUIRE(settled);
  auto prediction = predict(*settled);
  REQUIRE(prediction);
  return *std::move(prediction);
}

/// The names of all of them, without ".yaml".
inline std::vector<std::string> example_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("examples")) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  REQUIRE(names.size() > 20);
  return names;
}

}  // namespace plumbline::test
