// A program that predicts a run, and the same run with slower ops: docs/how-to/library.md.
//
// SPDX-License-Identifier: MIT
#include <plumbline/plumbline.h>

#include <iostream>

int main() {
  for (const auto* overhead : {"overhead.per_op=0 us", "overhead.per_op=100 us"}) {
    const auto scenario = plumbline::load("examples/four-stages.yaml", {overhead});
    if (!scenario) return std::cerr << scenario.error().text, 2;
    const auto run = plumbline::predict(*scenario);
    if (!run) return std::cerr << run.error().text, 2;
    std::cout << overhead << ": " << 1000 * run->iteration_time_s() << " ms\n";
  }
}
