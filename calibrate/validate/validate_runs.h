// Scenarios run for real, round after round, and put beside their predictions.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "calibrate/measure/recalibration.h"
#include "calibrate/runtime/backend.h"
#include "calibrate/runtime/validation.h"
#include "sim/scenario/scenario.h"

namespace plumbline {

/// One of the runs, before it runs.
struct PlannedRun {
  Scenario scenario;
  Outcome prediction;
  std::vector<std::string> varying;  ///< The overrides that tell it from the others.
};

/// Reads and predicts all of them: every scenario with every combination of overrides. Errors:
/// those of read_scenario and predict. Requires: at least one combination, which may be empty.
Result<std::vector<PlannedRun>> plan_runs(
    const std::vector<std::string>& paths,
    const std::vector<std::vector<std::string>>& combinations);

/// What a validation is at. Numbers count from 1.
struct ValidationStep {
  bool times_layers = false;  ///< Then nothing else is said.
  std::size_t run = 0;        ///< Of `runs`, those of all rounds.
  std::size_t runs = 0;
  std::uint32_t iteration = 0;  ///< Of at most `max_iterations` of this run.
  std::uint32_t max_iterations = 0;
};

/// How runs are validated.
struct ValidationOptions {
  using MadeBackend = Result<std::unique_ptr<Backend>>;

  /// Makes what runs a scenario. Required.
  std::function<MadeBackend(const Scenario&)> backend;
  RunOptions run;  ///< Its iterations are those of all rounds; its progress is not called.
  std::uint32_t rounds = 1;  ///< In each of them every run has its part of the iterations.
  double tolerance = 0.05;   ///< The relative error of the iteration time that still passes.
  /// Opens what the layers are timed again on, before the first round and after each: how much of
  /// the error is the profile's age. Null = they are not.
  Recalibrations::Open devices;
  double pass_seconds = 1;  ///< Of Recalibrations.
  /// Told now and then, from the thread that called.
  std::function<void(const ValidationStep&)> progress;
};

/// Runs all of them for real and compares each with its prediction, and, where the layers are timed
/// again, with what their times of now predict. What fails of that after a round is told as a
/// remark of each run: the runs are worth more. Errors: those of Recalibrations, of making a
/// backend, of run_scenario. Requires: at least one run, one round and one iteration.
Result<std::vector<ValidationPoint>> validate_runs(std::vector<PlannedRun> planned,
                                                   const ValidationOptions& options);

}  // namespace plumbline
