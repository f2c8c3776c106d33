// Scenarios run for real, round after round, and compared with their predictions.
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
  std::vector<std::string> varying;  ///< The overrides that differ between the runs.
};

/// Reads a scenario with overrides.
using ReadScenario = std::function<Result<Scenario>(const std::vector<std::string>& overrides)>;

/// What will be beside the predictions.
enum class Beside : std::uint8_t {
  own_run,       ///< A run of a backend, which flushes.
  recorded_run,  ///< A run that was recorded elsewhere.
};

/// Reads and predicts all of them: every scenario with every combination of overrides. Errors:
/// those of the readers and of predict; training.flush: none beside an own run. Requires: at least
/// one combination, which may be empty.
Result<std::vector<PlannedRun>> plan_runs(const std::vector<ReadScenario>& readers,
                                          const std::vector<std::vector<std::string>>& combinations,
                                          Beside beside = Beside::own_run);

/// The same for the files of scenarios.
Result<std::vector<PlannedRun>> plan_runs(const std::vector<std::string>& paths,
                                          const std::vector<std::vector<std::string>>& combinations,
                                          Beside beside = Beside::own_run);

/// The current step of a validation. Numbers count from 1.
struct ValidationStep {
  bool times_layers = false;  ///< If so, the other members are not set.
  std::size_t run = 0;        ///< The number of the run, up to `runs`.
  std::size_t runs = 0;
  std::uint32_t iteration = 0;  ///< The number of the iteration, up to `max_iterations`.
  std::uint32_t max_iterations = 0;
};

/// The options of a validation.
struct ValidationOptions {
  using MadeBackend = Result<std::unique_ptr<Backend>>;

  /// Makes the backend that runs a scenario. Required.
  std::function<MadeBackend(const Scenario&)> backend;
  RunOptions run;  ///< Its `iterations` is the total of all rounds; its progress is not called.
  std::uint32_t rounds = 1;  ///< In each round every run has its part of the iterations.
  double tolerance = 0.05;   ///< The largest relative error of the iteration time that passes.
  /// Opens the devices on which the layers are timed again, before the first round and after each.
  /// This shows how much of the error is the profile's age. Null = layers are not timed again.
  Recalibrations::Open devices;
  double pass_seconds = 1;  ///< As in Recalibrations.
  /// Called now and then, from the calling thread.
  std::function<void(const ValidationStep&)> progress;
};

/// Runs all of them for real and compares each with its prediction. Where the layers are timed
/// again, each is also compared with the prediction from the times measured now. A failure of that
/// timing after a round becomes a remark of each run, as the runs are worth more. Errors: those of
/// Recalibrations, of making a backend, of run_scenario. Requires: at least one run, one round and
/// one iteration.
Result<std::vector<ValidationPoint>> validate_runs(std::vector<PlannedRun> planned,
                                                   const ValidationOptions& options);

}  // namespace plumbline
