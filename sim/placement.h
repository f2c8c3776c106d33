// From the plan as it is written to a partition: layers to stages, stages to devices.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "schedules/partition.h"
#include "sim/scenario.h"

namespace plumbline {

/// The partition that the plan describes, by the rules of the contract where it is silent; devices
/// are those of the first copy. Requires: a plan that is settled, if a planner is to choose it.
/// Errors: a plan that does not fit the model, the cluster or the schedule.
Result<Partition> place(const Scenario& scenario, const std::vector<LayerCosts>& costs);

/// The shape of a schedule with chunks over so many stages.
ChunkShape chunk_shape(const Scenario& scenario, std::size_t stages);

/// "plan.warm_up has length 3, but the number of stages is 4".
std::string wrong_length(std::string_view key, std::size_t length, std::size_t stages);

}  // namespace plumbline
