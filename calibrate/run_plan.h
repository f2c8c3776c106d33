// What a run executes, all of it fixed.
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/memory.h"
#include "sim/pipeline.h"

namespace plumbline {

/// The graph with the true costs of its ops, and what the memory and the weights of its stages are.
struct RunPlan {
  const OpGraph& graph;
  const Pipeline& pipeline;
  const MemoryRules& memory;
};

}  // namespace plumbline
