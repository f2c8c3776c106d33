// What a run executes, all of it fixed.
//
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
  std::size_t recomputation(std::size_t stage) const {
    return pipeline.recomputed.empty() ? pipeline.partition.stages[stage].layers.size()
                                       : pipeline.recomputed[stage];
  }
  /// Whether a stage runs any layer again under this kind of recomputation.
  bool recomputes(Recompute recompute, std::size_t stage) const {
    return recompute != Recompute::none && recomputation(stage) > 0;
  }
  /// Whether its last layer, which makes the output, is among those.
  bool recomputes_output(Recompute recompute, std::size_t stage) const {
    return recomputes(recompute, stage) &&
           recomputation(stage) == pipeline.partition.stages[stage].layers.size();
  }
};

}  // namespace plumbline
