// What a run executes, all of it fixed.
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/engine/memory.h"
#include "sim/prediction/pipeline.h"

namespace plumbline {

/// The graph with the true costs of its ops, and what the memory and the weights of its stages are.
struct RunPlan {
  const OpGraph& graph;
  const Pipeline& pipeline;
  const MemoryRules& memory;

  /// How many layers of a stage make activations again where any does: its first ones.
  std::size_t made_again(std::size_t stage) const {
    return pipeline.recomputed.empty() ? pipeline.partition.stages[stage].layers.size()
                                       : pipeline.recomputed[stage];
  }
  /// Whether a stage runs any layer again under this kind of recomputation.
  bool runs_again(Recompute recompute, std::size_t stage) const {
    return recompute != Recompute::none && made_again(stage) > 0;
  }
  /// Whether its last layer, which makes the output, is among those.
  bool makes_output_again(Recompute recompute, std::size_t stage) const {
    return runs_again(recompute, stage) &&
           made_again(stage) == pipeline.partition.stages[stage].layers.size();
  }
};

}  // namespace plumbline
