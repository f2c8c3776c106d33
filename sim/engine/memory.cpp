// Memory as a sequence of reservations and releases.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/memory.h"

#include <algorithm>
#include <cmath>

#include "sim/engine/stage_memory.h"

namespace plumbline {
namespace {

/// A change before the running sums are known.
struct Change {
  SimTime at;
  /// At the same instant releases come first. But memory that is reserved and released at the same
  /// instant, by ops that take no time, follows the order of the graph.
  bool released_first = false;
  std::uint32_t node = 0;
  Bytes activations;
  Bytes buffers;
  std::int32_t in_flight = 0;
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

  /// Calls `add(slot, change)` for every change by the node.
  template <class Add>
  void collect(std::uint32_t node, Add&& add) const {
    const Activity& activity = graph_.activities[node];
    const std::uint32_t stage = activity.stage.value;
    if (!is_op(activity.kind) && !is_transfer(activity.kind)) return;
    const std::uint32_t slot = graph_.receiver(node);
    const StageMemory& memory = stages_[stage];
    const Span& span = spans_[node];
    const SimTime begin = begin_of(node);
    switch (activity.kind) {
      case ActivityKind::activation_transfer:
      case ActivityKind::gradient_transfer:
        add(slot, Change{span.begin, false, node, {}, graph_.cost(node).bytes, 0});
        if (activity.kind == ActivityKind::activation_transfer &&
            stages_[stage - 1].sent != Bytes{}) {
          const bool made_before = begin_of(graph_.nodes[node].input) < span.end;
          add(graph_.sender(node),
              Change{span.end, made_before, node, {}, Bytes{} - stages_[stage - 1].sent, 0});
        }
        break;
      case ActivityKind::forward:
        add(slot,
            Change{begin, false, node, memory.kept, memory.sent, memory.first_of_position ? 1 : 0});
        break;
      case ActivityKind::backward:
        if (memory.again != Bytes{}) add(slot, Change{begin, false, node, memory.again, {}, 0});
        add(slot, end_of_backward(node, memory, memory.done));
        break;
      case ActivityKind::backward_input:
        if (memory.recomputed_by_input != Bytes{})
          add(slot, Change{span.begin, false, node, memory.recomputed_by_input, {}, 0});
        break;
      case ActivityKind::backward_weight:
        add(slot, end_of_backward(node, memory, memory.done_by_weight));
        break;
      default:
        break;
    }
  }

 private:
  Change end_of_backward(std::uint32_t node, const StageMemory& memory, Bytes done) const {
    const SimTime end = spans_[ends_[node]].end;
    return {end,
            begin_of(node) < end,
            node,
            Bytes{} - done,
            Bytes{} - memory.received(),
            memory.first_of_position ? -1 : 0};
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

/// Sorts the changes by time, releases first, and computes running sums.
std::vector<MemoryStep> running_sums(const OpGraph& graph, std::vector<Change>& changes,
                                     TieOrder ties) {
  const bool releases_first = ties == TieOrder::releases_first;
  std::stable_sort(changes.begin(), changes.end(), [&](const Change& a, const Change& b) {
    if (a.at != b.at) return a.at < b.at;
    return a.released_first != b.released_first ? a.released_first == releases_first
                                                : a.node < b.node;
  });
  std::vector<MemoryStep> steps;
  steps.reserve(changes.size());
  MemoryStep held;
  // A device with several positions has a micro-batch in flight while any of them has.
  std::vector<std::int32_t> positions(graph.micro_batches, 0);
  for (const Change& change : changes) {
    held.at = change.at;
    held.activations += change.activations;
    held.buffers += change.buffers;
    std::int32_t& of_micro_batch = positions[graph.activities[change.node].micro_batch.value];
    const bool before = of_micro_batch > 0;
    of_micro_batch += change.in_flight;
    held.in_flight += (of_micro_batch > 0 ? 1 : 0) - (before ? 1 : 0);
    held.node = change.node;
    steps.push_back(held);
  }
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

MemoryParts held_throughout(const OpGraph& graph, const StageCosts& costs, const MemoryRules& rules,
                            const std::vector<std::uint32_t>& stages) {
  MemoryParts held;
  TwoLargest weights, gradients;  // buckets that may be whole
  for (const std::uint32_t s : stages) {
    const StageCost& stage = costs.stages[s];
    const std::uint32_t members = graph.members(s);
    // Only the part that copies exchange is shared out. The rest belongs to others of the group.
    const bool shares_weights = !stage.buckets.empty() && rules.sharded == Sharded::weights;
    const bool shares_gradients = !stage.buckets.empty() && rules.sharded >= Sharded::gradients;
    held.weights += shares_weights ? share_of(stage.gathered, members) : stage.parameters;
    held.gradients += shares_gradients ? share_of(stage.reduced, members) : stage.gradients;
    held.optimizer += optimizer_bytes(rules, stage.stepped, members);
    held.temporary = std::max(held.temporary, stage.temporary);
    for (const Bucket& bucket : stage.buckets) {
      if (shares_weights) weights.add(bucket.parameters);
      if (shares_gradients) gradients.add(bucket.gradients);
    }
    // The next backward makes gradients while the last one's only bucket is on its way.
    const bool has_more = graph.micro_batches > graph.mini_batches.size();
    if (shares_gradients && stage.buckets.size() == 1 && has_more)
      gradients.add(stage.buckets.front().gradients);
  }
  held.weights += weights.sum();
  held.gradients += gradients.sum();
  return held;
}

std::vector<std::vector<MemoryStep>> memory_steps(const OpGraph& graph, const Trace& trace,
                                                  const StageCosts& costs,
                                                  const std::vector<Position>& positions,
                                                  const MemoryRules& rules, TieOrder ties) {
  const std::vector<StageMemory> stages = stage_memory(costs, positions, rules.recompute);
  const Collector collector(graph, trace, stages);
  std::vector<std::vector<Change>> changes(graph.slots());
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    collector.collect(
        node, [&](std::uint32_t slot, const Change& change) { changes[slot].push_back(change); });
  }
  std::vector<std::vector<MemoryStep>> steps;
  steps.reserve(changes.size());
  for (std::vector<Change>& of_slot : changes) {
    steps.push_back(running_sums(graph, of_slot, ties));
    of_slot = {};
  }
  return steps;
}

std::vector<DeviceMemory> measure_memory(const OpGraph& graph, const StageCosts& costs,
                                         const MemoryRules& rules,
                                         const std::vector<std::vector<MemoryStep>>& steps) {
  std::vector<DeviceMemory> devices(graph.slots());
  const auto stages = graph.stages_by_slot();
  for (std::uint32_t slot = 0; slot < graph.slots(); ++slot) {
    DeviceMemory& device = devices[slot];
    device.peak = held_throughout(graph, costs, rules, stages[slot]);
    for (const std::uint32_t s : stages[slot]) {
      const std::uint32_t versions = rules.weight_versions[s];
      device.peak.stash += costs.stages[s].parameters * (versions - 1);
      device.weight_versions = std::max(device.weight_versions, versions);
    }
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
