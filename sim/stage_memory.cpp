// Stage by stage, position by position.
// SPDX-License-Identifier: MIT
#include "sim/stage_memory.h"

#include <algorithm>

namespace plumbline {
namespace {

void keep_all(const StageCost& cost, StageMemory& stage) {
  stage.kept = stage.done = stage.done_by_weight = cost.activation;
}

/// `all`: the activations of the stages of its position.
void keep_nothing(const StageCost& cost, Bytes all, StageMemory& stage) {
  if (stage.last_of_position) stage.again = stage.again_by_input = all;
  stage.done = stage.done_by_weight = cost.activation;
}

void keep_some(const StageCost& cost, const Checkpoints& checkpoints, StageMemory& stage) {
  stage.kept = checkpoints.kept;
  stage.again = checkpoints.again;
  stage.again_by_input = std::max(Bytes{}, cost.activation - stage.kept);
  stage.done = stage.kept + stage.again;
  stage.done_by_weight = stage.kept + stage.again_by_input;
}

}  // namespace

std::vector<StageMemory> stage_memory(const StageCosts& costs,
                                      const std::vector<Position>& positions, Recompute recompute) {
  std::vector<StageMemory> stages(costs.stages.size());
  for (const Position& position : positions) {
    const std::uint32_t first = position.first_stage;
    const std::uint32_t last = first + position.stages - 1;
    stages[first].first_of_position = true;
    stages[last].last_of_position = true;
    if (first > 0) stages[first].received_input = costs.crossing(first - 1);
    stages[last].received_gradient = costs.crossing(last);
    if (recompute == Recompute::full) stages[last].sent = costs.crossing_made_in(first, last);
    if (by_layer(recompute)) stages[last].sent = costs.only_crossing_made_in(first, last);
    Bytes all;
    for (std::uint32_t s = first; s <= last; ++s) all += costs.stages[s].activation;
    for (std::uint32_t s = first; s <= last; ++s) {
      switch (recompute) {
        case Recompute::none:
          keep_all(costs.stages[s], stages[s]);
          break;
        case Recompute::full:
          keep_nothing(costs.stages[s], all, stages[s]);
          break;
        case Recompute::layers:
        case Recompute::selective:
          keep_some(costs.stages[s], costs.checkpoints(s, last), stages[s]);
          break;
      }
    }
  }
  return stages;
}

}  // namespace plumbline
