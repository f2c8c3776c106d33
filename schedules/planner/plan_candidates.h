// Turning cuts and devices into priced candidates, for both cost models.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "schedules/planner/planner.h"

namespace plumbline {

/// The devices that may be used.
std::uint32_t devices_of(const PlannerInput& input);

/// F + B of the whole model on one device and its part of an update, in nanoseconds.
double one_device_ns(const PlannerInput& input);

/// The layers of each stage, in the order of the graph, with the warm-ups of the input's residency;
/// not yet priced. `stage_of` is by position in `order`. Requires: no stage is empty.
PlanCandidate cut_plan(const PlannerInput& input, const std::vector<LayerId>& order,
                       const std::vector<std::uint32_t>& stage_of,
                       std::vector<std::vector<DeviceId>> devices);

/// Fills in all that follows from cut, devices and warm-ups, by the formulas of plan_formula.h.
void price(const PlannerInput& input, PlanCandidate& plan);

/// Every plan, and behind it the same with deeper warm-ups (full_rate_warm_ups) where they fit the
/// memory; `input.candidates` at most.
std::vector<PlanCandidate> with_variants(const PlannerInput& input,
                                         const std::vector<PlanCandidate>& plans);

/// The plans that one would write by hand: one device, and for each number of stages as many
/// replicas of each as there are devices for, or fewer (three numbers of them), and layers in their
/// topological order cut by time alone (balanced_counts). Within the input's bounds on stages and
/// replicas, but whether they fit the memory or not.
std::vector<PlanCandidate> even_plans(const PlannerInput& input);

/// The plans one step away from `plan`: a layer on the other side of a cut; a replica more, fewer,
/// or moved to the next stage, where the micro-batches can be divided so; two neighbouring stages
/// as one; a stage as two. Within the input's bounds, but whether they fit the memory or not. The
/// devices of each are the first ones, in order, unless all replicas stay as they are.
std::vector<PlanCandidate> plans_next_to(const PlannerInput& input, const PlanCandidate& plan);

/// What even_plans stand beside, where plan() finds none: no plan is the best yet.
Plans plans_by_hand(const PlannerInput& input);

/// Puts what plans are compared with into `plans`, but for their times on one device: that device's
/// memory, and data parallelism over the devices that may be used.
void add_whole_model(const PlannerInput& input, Plans& plans);

/// What is said when `progress` gave up.
Diagnostic planning_cancelled();

}  // namespace plumbline
