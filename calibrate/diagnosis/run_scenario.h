// A recorded run as a scenario: its stages, links, order and overheads, to ask what-ifs of.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "calibrate/diagnosis/recorded_run.h"
#include "calibrate/diagnosis/run_costs.h"
#include "sim/scenario/scenario.h"

namespace plumbline {

/// The texts of the files of a scenario.
struct RunScenario {
  std::string yaml;
  std::string schedule;  ///< The name of the schedule; "" = a file gives the order.
  std::string order;     ///< The text of that file, as PyTorch reads it; "" = none.
};

/// What a scenario's text says beside the run.
struct RunText {
  std::string name = "recorded run";
  /// Where the order stands that no known schedule has, relative to the scenario's own folder.
  std::string order_path = "run.order.csv";
  std::string made_by;  ///< The command, for a comment.
  /// How many layers each stage has; one number stands for all stages; empty: a stage is one layer.
  std::vector<std::uint32_t> layers;
};

/// Writes a run as a scenario. A stage is a layer with the statistics of its ops, or so many equal
/// layers, each with its part of them. Bytes are those that transfers recorded, or 0; then a
/// transfer has a latency alone. Updates do not wait for other devices (`training.flush: none`).
/// Where a known schedule has the run's order, the scenario names it. Errors: another number of
/// `layers` than of stages.
Result<RunScenario> scenario_of(const RecordedRun& run, const RunCosts& costs, const RunText& text);

/// The scenario as commands read it. Its order comes from memory, not from a file.
/// Errors: those of read_scenario: none that a user has made.
Result<Scenario> read_back(const RunScenario& texts);

}  // namespace plumbline
