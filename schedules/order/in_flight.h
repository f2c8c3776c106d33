// How many micro-batches a device holds between F and B, and what their number changes.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "models/profile/layer_graph.h"
#include "models/profile/profile.h"
#include "schedules/order/schedule.h"
#include "schedules/stages/partition.h"

namespace plumbline {

/// Of each stage, the most micro-batches that stand between their F and the end of their B (W where
/// split) on one of its devices at a time, by the order of its ops; at least 1.
std::vector<std::uint32_t> max_in_flight(const Schedule& schedule);

/// The factors of a stage with `max` micro-batches in flight while 0, 1, ... of its `neighbours`
/// compute, of Profile::slowdown and Profile::in_flight. Layers are timed with all neighbours at
/// work and all in flight, and from there with fewer of either; what fewer in flight save is the
/// more as more neighbours work, in proportion, and nothing while none does: a device that works
/// alone has waited, and finds the caches as its neighbours left them. Who has none saves it
/// always.
KindFactors factors_in_flight(const KindFactors& slowdown, const KindFactors& in_flight,
                              std::uint32_t max, std::uint32_t neighbours);

/// Where no device has neighbours: makes the times of F and B (I, W) of each stage's layers those
/// with so many micro-batches in flight (`max`, by stage; `factors`, as Profile::in_flight).
/// Requires: one entry of `costs` for each layer of the graph.
void scale_in_flight(const LayerGraph& graph, const KindFactors& factors,
                     const Partition& partition, const std::vector<std::uint32_t>& max,
                     std::vector<LayerCosts>& costs);

}  // namespace plumbline
