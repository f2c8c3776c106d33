// Memory as a sequence of reservations and releases.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/memory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>

#include "sim/engine/stage_memory.h"

namespace plumbline {
namespace {

/// A change before the running sums are known.
struct Change {
  SimTime at;
  Bytes activations;
  Bytes buffers;
  std::uint32_t node = 0;
  /// At the same instant releases come first. But memory that is reserved and released at the same
  /// instant, by ops that take no time, follows the order of the graph.
  bool released_first = false;
  std::int8_t in_flight = 0;
};

/// The changes of one slot by their causes. Each list is in the order of the graph, which is that
/// of time where one stream or one channel makes it.
class SlotChanges {
 public:
  enum Cause : std::size_t { op, activation, gradient, sent };
  static constexpr std::size_t kCauses = sent + 1;

  SlotChanges(std::size_t size, TieOrder ties) : ties_(ties) { changes_.reserve(size); }

  void add(Cause cause, const Change& change) {
    const bool is_later = change.released_first != (ties_ == TieOrder::releases_first);
    lists_[cause].push_back({2 * change.at.time_since_epoch().count() + (is_later ? 1 : 0),
                             static_cast<std::uint32_t>(changes_.size())});
    changes_.push_back(change);
  }

  std::size_t size() const { return changes_.size(); }

  /// Calls `visit(change)` for every change, in the order of their times.
  template <class Visit>
  void visit_in_order(Visit&& visit) {
    for (std::vector<Place>& list : lists_) {
      if (!std::is_sorted(list.begin(), list.end())) std::sort(list.begin(), list.end());
    }
    const std::vector<Place> received = merged(lists_[activation], lists_[gradient]);
    const std::vector<Place> others = merged(lists_[op], lists_[sent]);
    for (const Place& place : merged(received, others)) visit(changes_[place.index]);
  }

 private:
  /// A change by its time, with what comes first at one instant, and its number.
  struct Place {
    /// Twice the time in ns, which check_overflow() keeps below 2^62; 1 more for what comes later
    /// at that time.
    std::int64_t at = 0;
    std::uint32_t index = 0;

    friend auto operator<=>(const Place&, const Place&) = default;
  };

  static std::vector<Place> merged(const std::vector<Place>& a, const std::vector<Place>& b) {
    std::vector<Place> both(a.size() + b.size());
    std::merge(a.begin(), a.end(), b.begin(), b.end(), both.begin());
    return both;
  }

  TieOrder ties_;
  std::vector<Change> changes_;  ///< In the order of the graph.
  std::array<std::vector<Place>, kCauses> lists_;
};

class Collector {
 public:
  Collector(const OpGraph& graph, const Trace& trace, const std::vector<StageMemory>& stages)
      : graph_(graph),
        spans_(trace.spans),
        stages_(stages),
        begins_(first_parts(graph)),
        ends_(ends_of_pairs(graph)) {
    for (const auto& [first, second] : graph.pairs) begins_[second] = first;
  }

  /// Calls `add(slot, cause, change)` for every change by the node.
  template <class Add>
  void collect(std::uint32_t node, Add&& add) const {
    const Activity& activity = graph_.activities[node];
    const std::uint32_t stage = activity.stage.value;
    if (!is_op(activity.kind) && !is_transfer(activity.kind)) return;
    const std::uint32_t slot = graph_.receiver(node);
    const StageMemory& memory = stages_[stage];
    const Span& span = spans_[node];
    const SimTime begin = begin_of(node);
    const std::int8_t in_flight = memory.first_of_position ? 1 : 0;
    switch (activity.kind) {
      case ActivityKind::activation_transfer:
      case ActivityKind::gradient_transfer:
        add(slot,
            activity.kind == ActivityKind::activation_transfer ? SlotChanges::activation
                                                               : SlotChanges::gradient,
            Change{span.begin, {}, graph_.cost(node).bytes, node});
        if (activity.kind == ActivityKind::activation_transfer &&
            stages_[stage - 1].sent != Bytes{}) {
          const bool made_before = begin_of(graph_.nodes[node].input) < span.end;
          add(graph_.sender(node), SlotChanges::sent,
              Change{span.end, {}, Bytes{} - stages_[stage - 1].sent, node, made_before});
        }
        break;
      case ActivityKind::forward:
        add(slot, SlotChanges::op, Change{begin, memory.kept, memory.sent, node, false, in_flight});
        break;
      case ActivityKind::backward:
        if (memory.again != Bytes{})
          add(slot, SlotChanges::op, Change{begin, memory.again, {}, node});
        add(slot, SlotChanges::op, end_of_backward(node, memory, memory.done));
        break;
      case ActivityKind::backward_input:
        if (memory.recomputed_by_input != Bytes{})
          add(slot, SlotChanges::op, Change{span.begin, memory.recomputed_by_input, {}, node});
        break;
      case ActivityKind::backward_weight:
        add(slot, SlotChanges::op, end_of_backward(node, memory, memory.done_by_weight));
        break;
      default:
        break;
    }
  }

 private:
  Change end_of_backward(std::uint32_t node, const StageMemory& memory, Bytes done) const {
    const SimTime end = spans_[ends_[node]].end;
    const std::int8_t in_flight = memory.first_of_position ? -1 : 0;
    return {end,  Bytes{} - done,       Bytes{} - memory.received(),
            node, begin_of(node) < end, in_flight};
  }

  /// The begin of an op. For an op that is cut it is the begin of its first part; for an op of a
  /// pair it is the begin of both.
  SimTime begin_of(std::uint32_t node) const { return spans_[begins_[node]].begin; }

  const OpGraph& graph_;
  const std::vector<Span>& spans_;
  const std::vector<StageMemory>& stages_;
  std::vector<std::uint32_t> begins_;
  std::vector<std::uint32_t> ends_;
};

/// The changes of each slot.
std::vector<SlotChanges> changes_by_slot(const OpGraph& graph, const Trace& trace,
                                         const std::vector<StageMemory>& stages, TieOrder ties) {
  std::vector<std::size_t> sizes(graph.slots(), 0);  // not below what is collected
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const ActivityKind kind = graph.activities[node].kind;
    if (is_op(kind)) sizes[graph.receiver(node)] += 2;
    if (!is_transfer(kind)) continue;
    ++sizes[graph.receiver(node)];
    ++sizes[graph.sender(node)];
  }
  std::vector<SlotChanges> changes;
  changes.reserve(sizes.size());
  for (const std::size_t size : sizes) changes.emplace_back(size, ties);
  const Collector collector(graph, trace, stages);
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    collector.collect(node, [&](std::uint32_t slot, SlotChanges::Cause cause,
                                const Change& change) { changes[slot].add(cause, change); });
  }
  return changes;
}

/// Computes running sums of the changes.
std::vector<MemoryStep> running_sums(const OpGraph& graph, SlotChanges& changes) {
  std::vector<MemoryStep> steps;
  steps.reserve(changes.size());
  MemoryStep held;
  // A device with several positions has a micro-batch in flight while any of them has.
  std::vector<std::int32_t> positions(graph.micro_batches, 0);
  changes.visit_in_order([&](const Change& change) {
    held.at = change.at;
    held.activations += change.activations;
    held.buffers += change.buffers;
    std::int32_t& of_micro_batch = positions[graph.activities[change.node].micro_batch.value];
    const bool before = of_micro_batch > 0;
    of_micro_batch += change.in_flight;
    held.in_flight += (of_micro_batch > 0 ? 1 : 0) - (before ? 1 : 0);
    held.node = change.node;
    steps.push_back(held);
  });
  return steps;
}

/// The op of a node: itself, or the op that consumes its transfer.
std::string op_name(const OpGraph& graph, const std::vector<bool>& splits, std::uint32_t node) {
  Activity activity = graph.activities[node];
  if (activity.kind == ActivityKind::activation_transfer) activity.kind = ActivityKind::forward;
  if (activity.kind == ActivityKind::gradient_transfer)
    activity.kind =
        splits[activity.stage.value] ? ActivityKind::backward_input : ActivityKind::backward;
  return to_text(activity);
}

/// The most that one device holds of bytes that `members` devices share.
Bytes share_of(Bytes all, std::size_t members) {
  const auto shares = static_cast<std::int64_t>(members);
  return {(all.count + shares - 1) / shares};
}

/// The two largest of some sizes.
class TwoLargest {
 public:
  void add(Bytes size) {
    second_ = std::max(second_, std::min(first_, size));
    first_ = std::max(first_, size);
  }
  Bytes sum() const { return first_ + second_; }

 private:
  Bytes first_, second_;
};

}  // namespace

Bytes optimizer_bytes(const MemoryRules& rules, Bytes stepped, std::size_t members) {
  const Bytes all{std::llround(rules.optimizer_state * static_cast<double>(stepped.count))};
  return share_of(all, rules.sharded != Sharded::nothing ? members : 1);
}

namespace {

/// Whether the copies of a stage share its weights. Only the part that copies exchange is shared
/// out. The rest belongs to others of the group.
bool shares_weights_of(const StageCost& stage, const MemoryRules& rules) {
  return !stage.buckets.empty() && rules.sharded == Sharded::weights;
}

Bytes weights_of(const StageCost& stage, const MemoryRules& rules, std::uint32_t members) {
  return shares_weights_of(stage, rules) ? share_of(stage.gathered, members) : stage.parameters;
}

}  // namespace

Bytes saved_bytes(const OpGraph& graph, const StageCosts& costs, const MemoryRules& rules,
                  const std::vector<std::uint32_t>& stages) {
  Bytes saved;
  for (const std::uint32_t s : stages) {
    const StageCost& stage = costs.stages[s];
    const std::uint32_t members = graph.members(s);
    saved += weights_of(stage, rules, members) + optimizer_bytes(rules, stage.stepped, members);
  }
  return saved;
}

StageHolders holders_of(const OpGraph& graph) {
  StageHolders holders;
  for (std::uint32_t s = 0; s < graph.stage_slots.size(); ++s)
    holders.members.push_back(graph.members(s));
  holders.has_more = graph.micro_batches > graph.mini_batches.size();
  return holders;
}

MemoryParts held_throughout(const StageHolders& holders, const StageCosts& costs,
                            const MemoryRules& rules, const std::vector<std::uint32_t>& stages) {
  MemoryParts held;
  TwoLargest weights, gradients;  // buckets that may be whole
  for (const std::uint32_t s : stages) {
    const StageCost& stage = costs.stages[s];
    const std::uint32_t members = holders.members[s];
    const bool shares_weights = shares_weights_of(stage, rules);
    const bool shares_gradients = !stage.buckets.empty() && rules.sharded >= Sharded::gradients;
    held.weights += weights_of(stage, rules, members);
    held.gradients += shares_gradients ? share_of(stage.reduced, members) : stage.gradients;
    held.optimizer += optimizer_bytes(rules, stage.stepped, members);
    held.temporary = std::max(held.temporary, stage.temporary);
    for (const Bucket& bucket : stage.buckets) {
      if (shares_weights) weights.add(bucket.parameters);
      if (shares_gradients) gradients.add(bucket.gradients);
    }
    // The next backward makes gradients while the last one's only bucket is on its way.
    if (shares_gradients && stage.buckets.size() == 1 && holders.has_more)
      gradients.add(stage.buckets.front().gradients);
  }
  held.weights += weights.sum();
  held.gradients += gradients.sum();
  return held;
}

MemoryParts held_with_versions(const StageHolders& holders, const StageCosts& costs,
                               const MemoryRules& rules, const std::vector<std::uint32_t>& stages) {
  MemoryParts held = held_throughout(holders, costs, rules, stages);
  for (const std::uint32_t s : stages)
    held.stash += costs.stages[s].parameters * (rules.weight_versions[s] - 1);
  return held;
}

std::vector<std::vector<MemoryStep>> memory_steps(const OpGraph& graph, const Trace& trace,
                                                  const StageCosts& costs,
                                                  const std::vector<Position>& positions,
                                                  const MemoryRules& rules, TieOrder ties) {
  const std::vector<StageMemory> stages = stage_memory(costs, positions, rules.recompute);
  std::vector<SlotChanges> changes = changes_by_slot(graph, trace, stages, ties);
  std::vector<std::vector<MemoryStep>> steps;
  steps.reserve(changes.size());
  for (SlotChanges& of_slot : changes) steps.push_back(running_sums(graph, of_slot));
  return steps;
}

std::vector<DeviceMemory> measure_memory(const OpGraph& graph, const StageCosts& costs,
                                         const MemoryRules& rules,
                                         const std::vector<std::vector<MemoryStep>>& steps) {
  std::vector<DeviceMemory> devices(graph.slots());
  const auto stages = graph.stages_by_slot();
  const StageHolders holders = holders_of(graph);
  for (std::uint32_t slot = 0; slot < graph.slots(); ++slot) {
    DeviceMemory& device = devices[slot];
    device.peak = held_with_versions(holders, costs, rules, stages[slot]);
    for (const std::uint32_t s : stages[slot])
      device.weight_versions = std::max(device.weight_versions, rules.weight_versions[s]);
  }
  std::vector<bool> splits(costs.stages.size(), false);  // whether backward is split into I and W
  for (const Activity& activity : graph.activities) {
    if (activity.kind == ActivityKind::backward_input) splits[activity.stage.value] = true;
  }
  for (std::uint32_t slot = 0; slot < graph.slots(); ++slot) {
    DeviceMemory& device = devices[slot];
    const MemoryStep* best = nullptr;
    for (const MemoryStep& step : steps[slot]) {
      device.peak_in_flight =
          std::max(device.peak_in_flight, static_cast<std::uint32_t>(step.in_flight));
      const auto held = [](const MemoryStep& s) { return s.activations + s.buffers; };
      if (!best || held(step) > held(*best) ||
          (held(step) == held(*best) && step.in_flight > best->in_flight)) {
        best = &step;
      }
    }
    if (!best) continue;
    device.peak.activations = best->activations;
    device.peak.buffers = best->buffers;
    device.peak_op = op_name(graph, splits, best->node);
  }
  return devices;
}

std::vector<Bytes> peak_memory(const OpGraph& graph, const Trace& trace, const StageCosts& costs,
                               const std::vector<Position>& positions, const MemoryRules& rules) {
  const std::vector<StageMemory> stages = stage_memory(costs, positions, rules.recompute);
  std::vector<SlotChanges> changes =
      changes_by_slot(graph, trace, stages, TieOrder::releases_first);
  const auto stages_of = graph.stages_by_slot();
  const StageHolders holders = holders_of(graph);
  std::vector<Bytes> peaks;
  peaks.reserve(changes.size());
  for (std::uint32_t slot = 0; slot < graph.slots(); ++slot) {
    Bytes held, most;
    changes[slot].visit_in_order([&](const Change& change) {
      held += change.activations + change.buffers;
      most = std::max(most, held);
    });
    peaks.push_back(held_with_versions(holders, costs, rules, stages_of[slot]).sum() + most);
  }
  return peaks;
}

double max_memory(const StageCosts& costs, const MemoryRules& rules, std::uint32_t micro_batches) {
  double sum = 0;
  for (std::uint32_t s = 0; s < costs.stages.size(); ++s) {
    const auto parameters = static_cast<double>(costs.stages[s].parameters.count);
    // Shares plus two whole buckets are at most twice the whole size.
    sum += parameters * (2 + rules.optimizer_state + rules.weight_versions[s]);
    sum += 2 * static_cast<double>(costs.stages[s].gradients.count);
    sum += static_cast<double>(costs.stages[s].temporary.count);
    sum += static_cast<double>(costs.stages[s].activation.count + 3 * costs.cut_bytes(s).count) *
           micro_batches;
    if (by_layer(rules.recompute))  // outputs may be larger than activations
      sum += static_cast<double>(costs.stages[s].within.kept.count) * micro_batches;
  }
  return sum;
}

}  // namespace plumbline
