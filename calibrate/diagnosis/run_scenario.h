// A recorded run as a scenario: its stages, links, order and overheads, to ask what-ifs of.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

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

/// Writes a run as a scenario. Each stage is a layer with the statistics of its ops. Bytes are
/// those that transfers recorded, or 0; then a transfer has a latency alone. Updates do not wait
/// for other devices (`training.flush: none`). Where a known schedule has the run's order, the
/// scenario names it; else it names the file `order_path`, relative to the scenario's own folder.
/// `made_by` is the command, for a comment.
RunScenario scenario_of(const RecordedRun& run, const RunCosts& costs, const std::string& name,
                        const std::string& order_path, const std::string& made_by);

/// The scenario as commands read it. Its order comes from memory, not from a file.
/// Errors: those of read_scenario: none that a user has made.
Result<Scenario> read_back(const RunScenario& texts);

}  // namespace plumbline
