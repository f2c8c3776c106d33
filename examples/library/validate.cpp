// A program that runs two schedules for real beside their predictions: docs/how-to/library.md.
//
// SPDX-License-Identifier: MIT
#include <plumbline/measure.h>

#include <iostream>

int main() {
  plumbline::Backend backend;
  backend.name = "synthetic";  // threads that wait; cpu and cuda train a network
  const auto validation =
      plumbline::validate({"examples/four-stages.yaml"}, {"schedule.name=gpipe,1f1b"}, backend);
  if (!validation) return std::cerr << validation.error().text, 2;
  for (const plumbline::ValidatedRun& run : validation->runs)
    std::cout << run.settings.front() << ": predicted " << 1000 * run.predicted_s
              << " ms, measured " << 1000 * run.measured_s.value_or(0)
              << " ms: " << plumbline::name(run.verdict) << '\n';
}
