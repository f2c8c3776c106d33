// Stage by stage, position by position.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/stage_memory.h"

#include <algorithm>

namespace plumbline {
namespace {

void keep_all(const StageCost& cost, StageMemory& stage) {
  stage.kept = stage.done = stage.done_by_weight = cost.activation;
}

/// `all` is the activations of the stages of its position.
void keep_nothing(const StageCost& cost, Bytes all, StageMemory& stage) {
  if (stage.last_of_position) stage.again = stage.recomputed_by_input = all;
  stage.done = stage.done_by_weight = cost.activation;
}

void keep_some(const StageCost& cost, const Checkpoints& checkpoints, StageMemory& stage) {
  stage.kept = checkpoints.kept;
  stage.again = checkpoints.again;
  stage.recomputed_by_input = std::max(Bytes{}, cost.activation - stage.kept);
  stage.done = stage.kept + stage.again;
  stage.done_by_weight = stage.kept + stage.recomputed_by_input;
}

using Positions = std::vector<Position>::const_iterator;

void keep(const StageCosts& costs, const Position& position, std::uint32_t last_of_device,
          Recompute recompute, std::vector<StageMemory>& stages) {
  const std::uint32_t last = position.last_stage();
  stages[position.first_stage].first_of_position = true;
  stages[last].last_of_position = true;
  Bytes all;
  for (std::uint32_t s = position.first_stage; s <= last; ++s) all += costs.stages[s].activation;
  for (std::uint32_t s = position.first_stage; s <= last; ++s) {
    switch (recompute) {
      case Recompute::none:
        keep_all(costs.stages[s], stages[s]);
        break;
      case Recompute::full:
        keep_nothing(costs.stages[s], all, stages[s]);
        break;
      case Recompute::layers:
      case Recompute::selective:
        keep_some(costs.stages[s], costs.checkpoints(s, last_of_device), stages[s]);
        break;
    }
  }
}

/// Keeps the inputs of neighbouring positions on one device that keep no activations. A position
/// recomputes from an input that was sent to it. If nothing is sent, the previous position keeps
/// its output until it is used.
void keep_inputs(const StageCosts& costs, Positions from, Positions to,
                 std::vector<StageMemory>& stages) {
  for (; from != to; ++from) {
    const std::uint32_t last = from->last_stage();
    const Bytes made = costs.crossing_made_in(from->first_stage, last);
    if (from + 1 == to) {
      stages[last].sent = made;
      continue;
    }
    stages[last].kept += made;
    StageMemory& next = stages[last + 1];
    next.done += made;
    next.done_by_weight += made;
  }
}

}  // namespace

std::vector<StageMemory> stage_memory(const StageCosts& costs,
                                      const std::vector<Position>& positions, Recompute recompute) {
  std::vector<StageMemory> stages(costs.stages.size());
  for (auto from = positions.begin(); from != positions.end();) {
    // All neighbouring positions on the same devices.
    const auto to = std::find_if(from + 1, positions.end(),
                                 [](const Position& position) { return !position.same_devices; });
    const std::uint32_t first = from->first_stage;
    const std::uint32_t last = (to - 1)->last_stage();
    if (first > 0) stages[first].received_input = costs.cut_bytes(first - 1);
    stages[last].received_gradient = costs.cut_bytes(last);
    for (auto position = from; position != to; ++position)
      keep(costs, *position, last, recompute, stages);
    if (recompute == Recompute::full) keep_inputs(costs, from, to, stages);
    if (by_layer(recompute)) stages[last].sent = costs.only_crossing_made_in(first, last);
    from = to;
  }
  return stages;
}

MemoryByLength::MemoryByLength(const StageCosts& costs, const std::vector<Position>& positions,
                               Recompute recompute)
    : lengths_(costs.lengths) {
  const auto add = [&](const StageCosts& kind) {
    kinds_.push_back(stage_memory(kind, positions, recompute));
  };
  if (lengths_) {
    for (const StageCosts& kind : lengths_->kinds) add(kind);
  } else {
    add(costs);
  }
}

}  // namespace plumbline
