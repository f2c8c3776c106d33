// The plan that a run executes, with everything decided.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/setup/training_setup.h"

namespace plumbline {

/// The graph with the true costs of its ops, and the setup with the memory and weights of its
/// stages.
struct RunPlan {
  const OpGraph& graph;
  const TrainingSetup& setup;

  /// The number of layers of a stage, from its first on, that recompute where any layer does.
  std::size_t recomputation(std::size_t stage) const {
    return setup.recomputed.empty() ? setup.partition.stages[stage].layers.size()
                                    : setup.recomputed[stage];
  }
  /// Whether a stage recomputes any layer under this kind of recomputation.
  bool recomputes(Recompute recompute, std::size_t stage) const {
    return recompute != Recompute::none && recomputation(stage) > 0;
  }
  /// Whether its last layer, which makes the output, is among those.
  bool recomputes_output(Recompute recompute, std::size_t stage) const {
    return recomputes(recompute, stage) &&
           recomputation(stage) == setup.partition.stages[stage].layers.size();
  }
};

}  // namespace plumbline
