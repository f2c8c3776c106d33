// The number of micro-batches that a device holds between F and B, and its effect on times.
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

/// The most micro-batches per stage that are between their F and the end of their B (W where split)
/// on one of its devices at a time, by the order of its ops; at least 1.
std::vector<std::uint32_t> max_in_flight(const Schedule& schedule);

/// The factors of a stage with `max` micro-batches in flight while 0, 1, ... of its `neighbours`
/// compute, from Profile::slowdown and Profile::in_flight. Layers are timed with all neighbours at
/// work and all micro-batches in flight, and then with fewer of either. The time saved by fewer in
/// flight grows in proportion to the neighbours at work. It is nothing while none works: a device
/// that works alone has waited, and finds the caches as its neighbours left them. A device without
/// neighbours always saves it.
KindFactors factors_in_flight(const KindFactors& slowdown, const KindFactors& in_flight,
                              std::uint32_t max, std::uint32_t neighbours);

/// For clusters where no device has neighbours. Multiplies the times of F and B (I, W) of each
/// stage's layers by the factor for its micro-batches in flight (`max`, by stage; `factors`, like
/// Profile::in_flight). Requires: one entry of `costs` for each layer of the graph.
void scale_in_flight(const LayerGraph& graph, const KindFactors& factors,
                     const Partition& partition, const std::vector<std::uint32_t>& max,
                     std::vector<LayerCosts>& costs);

}  // namespace plumbline
