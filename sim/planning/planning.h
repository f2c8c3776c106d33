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

/// What the command line adds to the plan section.
struct PlanningOptions {
  bool straight = false;  ///< One replica a stage.
  std::optional<std::uint32_t> devices_at_most;
  std::function<bool(double)> progress;  ///< See PlannerInput.
};

/// A candidate in a simulation under the scenario's schedule.
struct SimulatedPlan {
  PlanCandidate candidate;
  double time_s = 0;  ///< Per micro-batch: the steady period, or the iteration's share.
  bool fits = true;   ///< Into the memory, by the simulated peaks.
  std::vector<Bytes> peak_memory;  ///< Of each stage: what the fullest of its devices holds.
};

/// What planning came to.
struct Planning {
  Plans plans;
  std::vector<SimulatedPlan> ranked;  ///< Best first; those that do not fit come last.
  CostModel cost_model = CostModel::calibrated;
  std::string not_found;  ///< Why the formula had none; "" = it had.
  /// Data parallelism over the whole cluster in a simulation, one micro-batch a device and update:
  /// its time per micro-batch. Nothing where the plan may not use all devices.
  std::optional<double> data_parallel_s;
  std::optional<Bytes> data_parallel_peak;  ///< Of that simulation: the most that a device holds.
  std::vector<std::string> estimated;       ///< What it rests on that was not measured.

  const SimulatedPlan& winner() const { return ranked.front(); }
};

/// Plans for the scenario, whatever partition it names, and ranks the candidates by simulating
/// each; with the published cost model the formula's own choice stays first. Errors: those of
/// plan(); a schedule or a cluster that cannot be planned for; a schedule that none of the
/// candidates fits.
Result<Planning> plan_scenario(const Scenario& scenario, const PlanningOptions& options);

/// The scenario with `candidate` written out as its plan.
Scenario with_plan(const Scenario& scenario, const PlanCandidate& candidate);

/// Whether the scenario leaves nothing open that resolve_plan() would decide.
bool is_resolved(const Scenario& scenario);

/// The scenario with what it leaves open decided, and a note of each choice: a partition that is to
/// be planned, the layers that are run again where these are to be as few as fit.
Result<Scenario> resolve_plan(Scenario scenario);

/// What there is instead of the formula's plans. Requires: it had none.
std::string not_found_note(const Planning& planning);

/// The winner as a plan section that `plan: {file: ...}` reads.
std::string plan_yaml(const Scenario& scenario, const Planning& planning);

}  // namespace plumbline
