// From the written plan to a partition: layers to stages, stages to devices.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "schedules/stages/partition.h"
#include "sim/scenario/scenario.h"

namespace plumbline {

/// The costs of all layers on each run of devices; one where all are alike.
using DeviceCosts = std::vector<std::vector<LayerCosts>>;

/// The partition that the plan describes. Where the plan says nothing, the rules of the contract
/// apply. Devices are those of the first copy. Requires: a plan that is resolved, if a planner
/// chooses it. Errors: a plan that does not fit the model, the cluster or the schedule.
Result<Partition> place(const Scenario& scenario, const DeviceCosts& costs);

/// The kind of devices that a stage stands on: see Cluster::kind_of(). Errors: replicas and copies
/// of the stage on unlike devices.
Result<std::uint32_t> kind_of_stage(const Scenario& scenario, std::size_t stage,
                                    const std::vector<DeviceId>& devices);

/// The number of places for devices in one copy of the pipeline. Errors: those of plan.replicas.
/// Requires: stages that the schedule's chunks divide.
Result<std::uint32_t> places_in_pipeline(const Scenario& scenario);

/// The number of copies of the pipeline with `plan.data_parallel: fill`. Requires: the plan has
/// this value, and the number of devices is given. Errors: a plan that does not give the number of
/// devices of one copy; devices that are left over.
Result<std::int64_t> copies_that_fill(const Scenario& scenario);

/// The number of stages: given, or the length of a list with one entry per stage, or one stage per
/// device. Requires: copies are resolved.
std::uint32_t stage_count(const Scenario& scenario);

/// The shape of a schedule with chunks over `stages` stages.
ChunkShape chunk_shape(const Scenario& scenario, std::size_t stages);

/// "plan.warm_up has length 3, but the number of stages is 4".
std::string wrong_length(std::string_view key, std::size_t length, std::size_t stages);

}  // namespace plumbline
