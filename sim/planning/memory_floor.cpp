// The moments of each op list that hold most, and the memory held at them.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/memory_floor.h"

#include <algorithm>
#include <functional>
#include <limits>
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

MemoryFloor::MemoryFloor(const TrainingSetup& setup, std::vector<std::vector<StageMemory>> by_count)
    : by_count_(std::move(by_count)) {
  const PipelineShape& shape = setup.schedule.shape;
  const OpLists lists = setup.schedule.lists();
  const StageHolders holders = holders_of(setup);
  const MemoryRules rules = memory_rules(setup);
  const auto stages_of = stages_of_slots(shape.stage_slots, shape.slots);
  slots_.resize(lists.size());
  for (std::size_t slot = 0; slot < lists.size(); ++slot) {
    Slot& one = slots_[slot];
    one.stages = stages_of[slot];
    one.throughout = held_with_versions(holders, setup.costs, rules, one.stages).sum();
    one.moments = moments_of(one.stages, lists[slot]);
  }
  // On a device with neighbouring stages, another stage than the one that reserved them may release
  // tensors that wait to be sent and, where all is recomputed, activations. The bound then leaves
  // them out.
  const bool all_again = rules.recompute == Recompute::full;
  const auto& positions = shape.positions;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const bool next_too = i + 1 < positions.size() && positions[i + 1].same_devices;
    if (positions[i].stages == 1 && !positions[i].same_devices && !next_too) continue;
    for (auto& stages : by_count_) {
      for (std::uint32_t s = positions[i].first_stage; s <= positions[i].last_stage(); ++s) {
        stages[s].sent = {};
        if (all_again) stages[s].kept = stages[s].recomputed_by_input = {};
      }
    }
  }
  for (std::size_t s = 0; s < shape.stages(); ++s) min_.push_back(min_of(by_count_, s));
}

std::vector<MemoryFloor::Moment> MemoryFloor::moments_of(const std::vector<std::uint32_t>& stages,
                                                         const std::vector<Op>& list) {
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> places(list.empty() ? 0 : stages.back() + 1, none);
  for (std::size_t place = 0; place < stages.size(); ++place) places[stages[place]] = place;
  // By kind and stage.
  std::vector<std::vector<Moment>> most(kOpKinds * stages.size());
  Moment now{OpKind::forward, 0, std::vector<std::uint32_t>(stages.size(), 0),
             std::vector<std::uint32_t>(stages.size(), 0)};
  const auto is_within = [](const Moment& a, const Moment& b) {
    return none_above(a.in_flight, b.in_flight) && none_above(a.waiting, b.waiting);
  };
  const auto add = [&] {
    std::vector<Moment>& alike =
        most[static_cast<std::size_t>(now.kind) * stages.size() + now.stage];
    const auto holds_more = [&](const Moment& other) { return is_within(now, other); };
    if (std::any_of(alike.rbegin(), alike.rend(), holds_more)) return;
    std::erase_if(alike, [&](const Moment& other) { return is_within(other, now); });
    alike.push_back(now);
  };
  for (const Op& op : list) {
    const std::size_t place = places[op.stage.value];
    now.kind = op.kind;
    now.stage = static_cast<std::uint32_t>(place);
    if (op.kind == OpKind::forward) ++now.in_flight[place];
    if (op.kind != OpKind::backward_weight) add();
    if (op.kind == OpKind::backward_input) ++now.waiting[place];
    if (op.kind == OpKind::backward_weight) --now.waiting[place];
    if (op.kind == OpKind::backward || op.kind == OpKind::backward_weight) --now.in_flight[place];
  }
  std::vector<Moment> all;
  for (const std::vector<Moment>& alike : most) all.insert(all.end(), alike.begin(), alike.end());
  return all;
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
    Bytes held = held_besides(moment, memory);
    for (std::size_t place = 0; place < one.stages.size(); ++place)
      held += memory(place).kept * moment.in_flight[place];
    max = std::max(max, held);
  }
  return one.throughout + max;
}

/// What is held at a moment besides the activations that are kept.
template <class Memory>
Bytes MemoryFloor::held_besides(const Moment& moment, Memory&& memory) {
  const StageMemory& own = memory(moment.stage);
  Bytes held = moment.kind == OpKind::forward    ? own.sent
               : moment.kind == OpKind::backward ? own.again + own.received_gradient
                                                 : own.recomputed_by_input + own.received_gradient;
  for (std::size_t place = 0; place < moment.in_flight.size(); ++place) {
    const StageMemory& stage = memory(place);
    held += stage.received_input * moment.in_flight[place];
    held += (stage.recomputed_by_input + stage.received_gradient) * moment.waiting[place];
  }
  return held;
}

std::int64_t MemoryFloor::least_layers(std::uint32_t slot, Bytes limit) const {
  const Slot& one = slots_[slot];
  const auto least = [&](std::size_t place) -> const StageMemory& {
    return min_[one.stages[place]];
  };
  std::int64_t layers = 0;
  std::vector<std::int64_t> savings;
  for (const Moment& moment : one.moments) {
    Bytes held = one.throughout + held_besides(moment, least);
    savings.clear();
    for (std::size_t place = 0; place < one.stages.size(); ++place) {
      const std::uint32_t stage = one.stages[place];
      held += by_count_.front()[stage].kept * moment.in_flight[place];
      for (std::size_t n = 1; n < by_count_.size() && moment.in_flight[place] > 0; ++n) {
        const Bytes saved = by_count_[n - 1][stage].kept - by_count_[n][stage].kept;
        if (saved.count > 0) savings.push_back((saved * moment.in_flight[place]).count);
      }
    }
    std::int64_t lacking = (held - limit).count;
    if (lacking <= 0) continue;
    std::sort(savings.begin(), savings.end(), std::greater<>());
    std::int64_t needed = 0;
    for (const std::int64_t saved : savings) {
      if (lacking <= 0) break;
      lacking -= saved;
      ++needed;
    }
    if (lacking > 0) needed = std::numeric_limits<std::int64_t>::max();
    layers = std::max(layers, needed);
  }
  return layers;
}

}  // namespace plumbline
