// What a run executes, all of it fixed.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/setup/training_setup.h"

namespace plumbline {

/// The graph with the true costs of its ops, and what the memory and the weights of its stages are.
struct RunPlan {
  const OpGraph& graph;
  const TrainingSetup& setup;

  /// How many layers of a stage make activations again where any does: its first ones.
  std::size_t recomputation(std::size_t stage) const {
    return setup.recomputed.empty() ? setup.partition.stages[stage].layers.size()
                                    : setup.recomputed[stage];
  }
  /// Whether a stage runs any layer again under this kind of recomputation.
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
