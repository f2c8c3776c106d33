// The last decision of a scenario: stages, devices and the order of the ops.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/scenario/scenario.h"
#include "sim/setup/training_setup.h"

namespace plumbline {

/// The most F, B, I and W of one run; it then takes some 3 GB.
inline constexpr double kMaxOps = 2e7;

/// Costs at the micro-batch size, partition, schedule: the setup of a scenario that leaves nothing
/// else open; resolve() (sim/planning/resolve.h) takes any. `for_run` raises the number of
/// micro-batches of an asynchronous run to what its steady state needs. With `as`, that is the
/// partition, whatever the plan would make of these costs. Requires: a partition that is not to be
/// planned, recomputation that is not to be fitted. Errors: a plan that does not fit model, cluster
/// or schedule; a deadlock; sizes that are not simulated; noise that the profile does not hold.
Result<TrainingSetup> resolve_setup(const Scenario& scenario, bool for_run = true,
                                    const Partition* as = nullptr);

/// Problems that have no place in a file, such as a run whose times 64 bits do not hold: they are
/// told at the scenario's number of micro-batches.
Diagnostics at_micro_batches(const Scenario& scenario, Diagnostics problems);

}  // namespace plumbline
