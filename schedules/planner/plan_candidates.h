// Candidates of plans from cuts and devices, with their prices, for both cost models.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "schedules/planner/planner.h"

namespace plumbline {

/// The number of devices that may be used.
std::uint32_t devices_of(const PlannerInput& input);

/// F + B of the whole model on one device and its part of an update, in nanoseconds.
double one_device_ns(const PlannerInput& input);

/// A plan from a cut: the layers of each stage, in the order of the graph, with the warm-ups of the
/// input's residency. It is not yet priced. `stage_of` is by position in `order`. Requires: no
/// stage is empty.
PlanCandidate cut_plan(const PlannerInput& input, const std::vector<LayerId>& order,
                       const std::vector<std::uint32_t>& stage_of,
                       std::vector<std::vector<DeviceId>> devices);

/// Fills in all values that follow from cut, devices and warm-ups, by the formulas of
/// plan_formula.h.
void price(const PlannerInput& input, PlanCandidate& plan);

/// Every plan, each followed by the same plan with deeper warm-ups (full_rate_warm_ups) if these
/// fit the memory. At most `input.candidates` plans.
std::vector<PlanCandidate> with_variants(const PlannerInput& input,
                                         const std::vector<PlanCandidate>& plans);

/// The plans that one would write by hand. They are one device, and for each number of stages up to
/// three numbers of replicas per stage: as many as there are devices for, or fewer. Layers in
/// topological order are cut by time alone (balanced_counts). The input's bounds on stages and
/// replicas hold, but plans need not fit the memory.
std::vector<PlanCandidate> even_plans(const PlannerInput& input);

/// The plans one step away from `plan`: a layer on the other side of a cut; a replica more, fewer,
/// or moved to the next stage, where the micro-batches can be divided so; two neighbouring stages
/// as one; a stage as two. The input's bounds hold, but plans need not fit the memory. Each plan
/// uses the first devices, in order, unless all replicas stay as they are.
std::vector<PlanCandidate> plans_next_to(const PlannerInput& input, const PlanCandidate& plan);

/// The frame for even_plans where plan() finds no plan: `best` is still empty.
Plans plans_by_hand(const PlannerInput& input);

/// Adds the comparisons to `plans`, except the time on one device: the memory on one device, and
/// data parallelism over the devices that may be used.
void add_whole_model(const PlannerInput& input, Plans& plans);

/// The error when `progress` gave up.
Diagnostic planning_cancelled();

}  // namespace plumbline
