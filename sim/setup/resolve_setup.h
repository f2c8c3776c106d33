// The last decision of a scenario: stages, devices and the order of the ops.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/scenario/scenario.h"
#include "sim/setup/training_setup.h"

namespace plumbline {

/// The largest number of F, B, I and W in one run. Such a run takes about 3 GB.
inline constexpr double kMaxOps = 2e7;

/// The setup of a scenario that leaves no choice to a planner; resolve() (sim/planning/resolve.h)
/// takes any scenario. Adds costs at the micro-batch size, the partition and the schedule.
/// `for_run` raises the number of micro-batches of an asynchronous run to the number that its
/// steady state needs. `as`, if given, is the partition, even if the plan would choose another one
/// with these costs. Requires: a partition that is not to be planned, recomputation that is not to
/// be fitted. Errors: a plan that does not fit model, cluster or schedule; a deadlock; sizes that
/// are not simulated; noise that the profile does not hold.
Result<TrainingSetup> resolve_setup(const Scenario& scenario, bool for_run = true,
                                    const Partition* as = nullptr);

}  // namespace plumbline
