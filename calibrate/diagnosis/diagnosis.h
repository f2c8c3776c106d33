// All that a recorded run tells: its costs, where the time of its devices went, and the scenario
// that says the same.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "calibrate/diagnosis/critical_ops.h"
#include "calibrate/diagnosis/idle_time.h"
#include "calibrate/diagnosis/measured_run.h"
#include "calibrate/diagnosis/recorded_run.h"
#include "calibrate/diagnosis/run_costs.h"
#include "calibrate/diagnosis/run_scenario.h"
#include "calibrate/recording/op_names.h"

namespace plumbline {

/// A run and all that follows from it.
struct Diagnosis {
  RecordedRun run;
  RunCosts costs;
  std::vector<DeviceTime> times;  ///< By device: means of the timed iterations.
  RunScenario scenario;
  RealRun measured;                     ///< In the graph of that scenario.
  std::optional<Outcome> replayed;      ///< The scenario's prediction.
  std::vector<CriticalShare> critical;  ///< Of the iteration that `measured` shows.

  /// The device that is busy longest.
  std::size_t busiest() const;
  /// Idle / all device time.
  double bubble_fraction() const;
  /// predicted / measured - 1 of the replayed scenario, against the iteration in the middle.
  double replay_error() const;
};

/// How a run is put together, and what its scenario is called.
struct DiagnosisOptions {
  AssemblyOptions assembly;
  RunText text;
};

/// What was read of several traces.
struct ReadTraces {
  std::vector<RankRecording> recordings;  ///< Those that could be read, in the order of the files.
  Diagnostics problems;                   ///< Those of the others: see read_recording.
};

/// Reads the traces, on all cores.
ReadTraces read_traces(const std::vector<std::string>& files, const OpNames& names);

/// Puts them together and explains the run. Errors: those of assemble() and scenario_of(); orders
/// of devices that contradict each other. Requires: at least one recording.
Result<Diagnosis> diagnose(const std::vector<RankRecording>& recordings,
                           const DiagnosisOptions& options);

}  // namespace plumbline
