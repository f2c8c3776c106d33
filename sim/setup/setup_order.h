// The order of the ops of a setup.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <vector>

#include "sim/scenario/scenario.h"
#include "sim/setup/training_setup.h"

namespace plumbline {

/// Adds the order of the ops on each device, except for overlapping pairs. Requires: stages and
/// devices are in the setup. `for_run`: a run shows its steady state, so there may be more
/// micro-batches. Errors: what this schedule does not do, with the place in the file.
std::optional<Diagnostics> add_order(const Scenario& scenario, bool for_run, TrainingSetup& setup);

/// The schedule, or all ways to make overlapping pairs of its neighbouring ops. Errors: options
/// that cannot be simulated together with pairs.
Result<std::vector<Schedule>> ways_to_run(const Scenario& scenario, const Schedule& schedule);

}  // namespace plumbline
