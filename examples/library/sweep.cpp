// A program that predicts the six points of a sweep: docs/how-to/library.md.
//
// SPDX-License-Identifier: MIT
#include <iostream>

#include "sim/whatif/run_sweep.h"

int main() {
  const auto sweep = plumbline::Sweep::open(
      "examples/four-stages.yaml", {"schedule.name=gpipe,1f1b", "schedule.micro_batches=4,8,16"});
  if (!sweep) return std::cerr << to_text(sweep.problems()), 2;
  const auto run = run_sweep(*sweep);
  if (!run) return std::cerr << to_text(run.problems()), 2;
  for (const plumbline::SweepRow& row : run->result.rows) {
    std::cout << "point " << row.point << ": ";
    if (row.numbers) std::cout << 1000 * row.numbers->iteration_time_s << " ms ";
    std::cout << (row.feasible() ? "" : row.reason) << '\n';
  }
}
