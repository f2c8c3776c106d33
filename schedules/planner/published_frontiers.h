// The places where PipeDream's own optimizer cuts a layer graph.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "schedules/planner/frontiers.h"

namespace plumbline {

/// The states of PipeDream's own optimizer (Narayanan et al. 2019, and their program): the walk
/// starts at the first source only and executes, with each successor of an executed layer, all that
/// it needs; `__getitem__` layers that nobody consumes are left out. "Nothing" is not among them.
/// Order: a depth-first search's reverse post-order, as there. Above `max` states, or kMaxLayers
/// / 4 layers: one_order_frontiers without its first. Requires: as all_frontiers.
struct PublishedFrontiers {
  Frontiers frontiers;
  /// What the original charges for a cut behind each state: the outputs of the frontier's members
  /// and of each ancestor of one member that some layer consumes which is not an ancestor of that
  /// member; an output may count although nobody needs it any more.
  std::vector<Bytes> output;
  std::vector<bool> counted;  ///< By position in the order: whether the layer is in any state.
};
PublishedFrontiers published_frontiers(const LayerGraph& graph,
                                       const std::vector<LayerCosts>& costs, std::size_t max);

}  // namespace plumbline
