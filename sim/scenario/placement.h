// From the plan as it is written to a partition: layers to stages, stages to devices.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "schedules/stages/partition.h"
#include "sim/scenario/scenario.h"

namespace plumbline {

/// The partition that the plan describes, by the rules of the contract where it is silent; devices
/// are those of the first copy. Requires: a plan that is settled, if a planner is to choose it.
/// Errors: a plan that does not fit the model, the cluster or the schedule.
Result<Partition> place(const Scenario& scenario, const std::vector<LayerCosts>& costs);

/// How many copies of the pipeline `plan.data_parallel: fill` makes. Requires: it stands there, and
/// the number of devices is given. Errors: a plan that does not say how many devices one copy has;
/// devices that are left over.
Result<std::int64_t> copies_that_fill(const Scenario& scenario);

/// The shape of a schedule with chunks over so many stages.
ChunkShape chunk_shape(const Scenario& scenario, std::size_t stages);

/// "plan.warm_up has length 3, but the number of stages is 4".
std::string wrong_length(std::string_view key, std::size_t length, std::size_t stages);

}  // namespace plumbline
