// The number of stages where a schedule puts several on each device, and a plan was written for
// fewer.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "sim/scenario/scenario.h"

namespace plumbline {

/// Settles how many stages a schedule with v > 1 of them on each device has (schedule.chunks).
/// plan.stages of at most the number of devices says one stage a device: it becomes v times as
/// many, with a note. So does one that gives each device the same number of stages, but fewer than
/// v. Any other that leaves devices idle keeps its value, with a note that names the one that would
/// not. Where copies fill the devices (plan.data_parallel: fill) none idles and nothing is raised;
/// a note says how many copies of how many devices there are. Requires: copies and layers are
/// settled. Errors: stages that cannot be raised, as a list has an entry for each or the model has
/// too few layers.
std::optional<Diagnostic> resolve_stage_number(Scenario& scenario);

}  // namespace plumbline
