// Choosing a plan: the planner proposes, simulation decides.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedules/planner/planner.h"
#include "sim/scenario/scenario.h"

namespace plumbline {

/// The options that the command line adds to the plan section.
struct PlanningOptions {
  bool straight = false;  ///< One replica per stage.
  std::optional<std::uint32_t> devices_at_most;
  std::function<bool(double)> progress;  ///< See PlannerInput.
};

/// A candidate, simulated under the scenario's schedule.
struct SimulatedPlan {
  PlanCandidate candidate;
  double time_s = 0;  ///< Time per micro-batch: the steady period, or its share of the iteration.
  bool fits = true;   ///< Whether the simulated peaks fit into the memory.
  std::vector<Bytes> peak_memory;  ///< One per stage: the peak of its fullest device.
};

/// The result of planning.
struct Planning {
  Plans plans;
  std::vector<SimulatedPlan> ranked;  ///< Best first; those that do not fit come last.
  CostModel cost_model = CostModel::calibrated;
  std::string not_found;  ///< The reason why the formula found no plan; "" = it found one.
  /// The time per micro-batch of data parallelism over the whole cluster, simulated with one
  /// micro-batch per device and update. Nothing if the plan may not use all devices.
  std::optional<double> data_parallel_s;
  std::optional<Bytes> data_parallel_peak;  ///< The largest memory peak in that simulation.
  std::vector<std::string> estimated;       ///< The values used that were estimated, not measured.

  const SimulatedPlan& winner() const { return ranked.front(); }
};

/// Plans for the scenario, ignoring the partition that it names. Simulates each candidate and ranks
/// them by time; with the published cost model the formula's own choice stays first. Errors: those
/// of plan(); a schedule or a cluster that cannot be planned for; a schedule that suits none of the
/// candidates.
Result<Planning> plan_scenario(const Scenario& scenario, const PlanningOptions& options);

/// The scenario with `candidate` written out as its plan.
Scenario with_plan(const Scenario& scenario, const PlanCandidate& candidate);

/// Whether the scenario leaves no choice open for resolve_plan().
bool is_resolved(const Scenario& scenario);

/// The scenario with its open choices decided, and a note of each. These are a partition that is to
/// be planned, the number of recomputed layers if as few as fit are wanted, and an order that is to
/// be found.
Result<Scenario> resolve_plan(Scenario scenario);

/// A note on what replaces the formula's plans. Requires: the formula found none.
std::string not_found_note(const Planning& planning);

/// The winner as a plan section that `plan: {file: ...}` reads.
std::string plan_yaml(const Scenario& scenario, const Planning& planning);

}  // namespace plumbline
