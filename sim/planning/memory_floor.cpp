// The distinct moments of each op list, and the memory held at them.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/memory_floor.h"

#include <algorithm>
#include <set>
#include <utility>

namespace plumbline {
namespace {

/// The minimum of each part of the memory, over all numbers of recomputed layers.
StageMemory min_of(const std::vector<std::vector<StageMemory>>& by_count, std::size_t stage) {
  StageMemory min = by_count.front()[stage];
  for (const auto& stages : by_count) {
    for (Bytes StageMemory::*const bytes : {&StageMemory::kept, &StageMemory::sent,
                                            &StageMemory::again, &StageMemory::recomputed_by_input})
      min.*bytes = std::min(min.*bytes, stages[stage].*bytes);
  }
  return min;
}

bool none_above(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  return std::equal(a.begin(), a.end(), b.begin(),
                    [](std::uint32_t x, std::uint32_t y) { return x <= y; });
}

}  // namespace

MemoryFloor::MemoryFloor(const Outcome& outcome, std::vector<std::vector<StageMemory>> by_count)
    : by_count_(std::move(by_count)) {
  const PipelineShape& shape = outcome.setup.schedule.shape;
  const OpLists lists = outcome.setup.schedule.lists();
  slots_.resize(lists.size());
  for (std::uint32_t s = 0; s < shape.stages(); ++s) {
    for (const std::uint32_t slot : shape.stage_slots[s]) slots_[slot].stages.push_back(s);
  }
  const std::uint32_t copies = outcome.graph.slots() / shape.slots;
  for (std::size_t slot = 0; slot < lists.size(); ++slot) {
    const MemoryParts& peak = outcome.memory[slot * copies].peak;
    slots_[slot].throughout = peak.sum() - peak.activations - peak.buffers;
    slots_[slot].moments = moments_of(slots_[slot].stages, lists[slot]);
  }
  // The memory of tensors that wait to be sent can also depend on neighbours on the same device.
  // The bound then leaves it out.
  const auto& positions = shape.positions;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const bool next_too = i + 1 < positions.size() && positions[i + 1].same_devices;
    if (positions[i].stages == 1 && !positions[i].same_devices && !next_too) continue;
    for (auto& stages : by_count_) {
      for (std::uint32_t s = positions[i].first_stage; s <= positions[i].last_stage(); ++s)
        stages[s].sent = {};
    }
  }
  for (std::size_t s = 0; s < shape.stages(); ++s) min_.push_back(min_of(by_count_, s));
}

std::vector<MemoryFloor::Moment> MemoryFloor::moments_of(const std::vector<std::uint32_t>& stages,
                                                         const std::vector<Op>& list) {
  std::set<Moment> seen;
  Moment now{OpKind::forward, 0, std::vector<std::uint32_t>(stages.size(), 0),
             std::vector<std::uint32_t>(stages.size(), 0)};
  for (const Op& op : list) {
    const auto at = std::find(stages.begin(), stages.end(), op.stage.value) - stages.begin();
    const auto place = static_cast<std::size_t>(at);
    now.kind = op.kind;
    now.stage = static_cast<std::uint32_t>(place);
    if (op.kind == OpKind::forward) ++now.in_flight[place];
    if (op.kind != OpKind::backward_weight) seen.insert(now);
    if (op.kind == OpKind::backward_input) ++now.waiting[place];
    if (op.kind == OpKind::backward_weight) --now.waiting[place];
    if (op.kind == OpKind::backward || op.kind == OpKind::backward_weight) --now.in_flight[place];
  }
  // Moments that hold no more than another one are left out.
  std::vector<Moment> undominated;
  for (auto moment = seen.rbegin(); moment != seen.rend(); ++moment) {
    const bool is_less =
        std::any_of(undominated.begin(), undominated.end(), [&](const Moment& other) {
          return other.kind == moment->kind && other.stage == moment->stage &&
                 none_above(moment->in_flight, other.in_flight) &&
                 none_above(moment->waiting, other.waiting);
        });
    if (!is_less) undominated.push_back(*moment);
  }
  return undominated;
}

Bytes MemoryFloor::of(std::uint32_t slot, const std::vector<std::int64_t>& counts) const {
  const Slot& one = slots_[slot];
  const auto memory = [&](std::size_t place) -> const StageMemory& {
    const std::uint32_t stage = one.stages[place];
    if (counts[stage] < 0) return min_[stage];
    return by_count_[static_cast<std::size_t>(counts[stage])][stage];
  };
  Bytes max;
  for (const Moment& moment : one.moments) {
    const StageMemory& own = memory(moment.stage);
    Bytes held = moment.kind == OpKind::forward ? own.sent
                 : moment.kind == OpKind::backward
                     ? own.again + own.received_gradient
                     : own.recomputed_by_input + own.received_gradient;
    for (std::size_t place = 0; place < one.stages.size(); ++place) {
      const StageMemory& stage = memory(place);
      held += (stage.kept + stage.received_input) * moment.in_flight[place];
      held += (stage.recomputed_by_input + stage.received_gradient) * moment.waiting[place];
    }
    max = std::max(max, held);
  }
  return one.throughout + max;
}

}  // namespace plumbline
