// Sums over the layers in front of a cut: their times and their memory.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "models/profile/profile.h"
#include "schedules/planner/frontiers.h"
#include "schedules/stages/recompute.h"

namespace plumbline {

/// Sums over all layers that a frontier has executed, and the bytes that cross a cut there.
struct FrontierSums {
  std::vector<Duration> forward, backward, again, update, update_before;
  std::vector<Bytes> parameters, stepped, reduced, activation;
  /// The outputs of executed layers that a layer not yet executed consumes, each once.
  std::vector<Bytes> cut_bytes;
};

/// The sums of all frontiers. The output of a layer crosses once, however many layers consume it.
FrontierSums frontier_sums(const LayerGraph& graph, const std::vector<LayerCosts>& costs,
                           const Frontiers& frontiers);

/// The activation memory of stages between frontiers when each layer recomputes its own
/// activations.
class FrontierCheckpoints {
 public:
  /// Requires: no cycle; one cost a layer.
  FrontierCheckpoints(const LayerGraph& graph, const std::vector<LayerCosts>& costs);

  /// The checkpoints of the layers that frontier `last` has executed and frontier `first` has not.
  /// O(these layers and their edges). Requires: frontiers of the same graph, `first` within `last`.
  Checkpoints between(const Frontiers& frontiers, std::uint32_t first, std::uint32_t last) const;

 private:
  std::vector<LayerCosts> costs_;                      ///< By position in the order.
  std::vector<std::vector<std::uint32_t>> consumers_;  ///< By position: its consumers' positions.
};

}  // namespace plumbline
