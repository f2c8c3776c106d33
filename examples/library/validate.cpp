// A program that runs two schedules for real beside their predictions: docs/how-to/library.md.
//
// SPDX-License-Identifier: MIT
#include <iostream>

#include "calibrate/runtime/run_report.h"
#include "calibrate/runtime/synthetic.h"
#include "calibrate/validate/validate_runs.h"

int main() {
  auto planned = plumbline::plan_runs({"examples/four-stages.yaml"},
                                      {{"schedule.name=gpipe"}, {"schedule.name=1f1b"}});
  if (!planned) return std::cerr << to_text(planned.problems()), 2;
  plumbline::ValidationOptions options;
  options.backend = [](const plumbline::Scenario&) -> plumbline::ValidationOptions::MadeBackend {
    return plumbline::synthetic_backend({});
  };
  const auto points = validate_runs(*std::move(planned), options);
  if (!points) return std::cerr << to_text(points.problems()), 2;
  std::cout << to_table(*points).print();
}
