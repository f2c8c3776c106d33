// The places where PipeDream's own optimizer cuts a layer graph.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "schedules/planner/frontiers.h"

namespace plumbline {

/// The states of PipeDream's own optimizer (Narayanan et al. 2019, and their program). The walk
/// starts at the first source only. With each successor of an executed layer it executes all layers
/// that the successor needs. `__getitem__` layers that nobody consumes are left out. "Nothing is
/// executed" is not a state. Order: the reverse post-order of a depth-first search, as in their
/// program. Above `max` states, or kMaxLayers / 4 layers: one_order_frontiers without its first.
/// Requires: as all_frontiers.
struct PublishedFrontiers {
  Frontiers frontiers;
  /// The bytes that the original charges for a cut behind each state. It charges the outputs of the
  /// frontier's members. It also charges the output of each ancestor of a member that has a
  /// consumer which is not an ancestor of that member. So an output may count although nobody needs
  /// it any more.
  std::vector<Bytes> output;
  std::vector<bool> counted;  ///< By position in the order: whether the layer is in any state.
};
PublishedFrontiers published_frontiers(const LayerGraph& graph,
                                       const std::vector<LayerCosts>& costs, std::size_t max);

}  // namespace plumbline
