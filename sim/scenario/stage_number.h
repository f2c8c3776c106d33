// The number of stages if a schedule puts several on each device, but the plan was written for
// fewer.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "sim/scenario/scenario.h"

namespace plumbline {

/// Decides the number of stages if a schedule puts v > 1 stages on each device (schedule.chunks).
/// If plan.stages is at most the number of devices, it means one stage per device: it is multiplied
/// by v, with a note. If it gives each device the same number of stages, but fewer than v, it is
/// raised to v on each device, with a note. Any other number that leaves devices idle is kept, with
/// a note that names the number that would use all devices. If copies fill the devices
/// (plan.data_parallel: fill), no device is idle and no number is raised; a note gives the number
/// of copies and of devices in each. Requires: copies and layers are resolved. Errors: stages that
/// cannot be raised, since a list has an entry for each stage or the model has too few layers.
std::optional<Diagnostic> resolve_stage_number(Scenario& scenario);

}  // namespace plumbline
