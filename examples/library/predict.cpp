// A program that predicts a run, changes it, and predicts again: docs/how-to/library.md.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/predict.h"

#include <iostream>

int main() {
  const auto scenario = plumbline::read_scenario("examples/four-stages.yaml", {});
  if (!scenario) return std::cerr << to_text(scenario.problems()), 2;
  auto setup = resolve(*scenario);
  if (!setup) return std::cerr << to_text(setup.problems()), 2;
  const auto before = predict(*setup);
  setup->rules.overheads.per_op = std::chrono::microseconds(100);
  const auto after = predict(*setup);
  if (!before || !after) return 2;
  std::cout << 1000 * before->iteration_time_s << " ms, with 100 us an op "
            << 1000 * after->iteration_time_s << " ms\n";
}
