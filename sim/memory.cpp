// Memory as a sequence of reservations and releases.
// SPDX-License-Identifier: MIT
#include "sim/memory.h"

#include <algorithm>
#include <cmath>

namespace plumbline {
namespace {

/// A change before the running sums are known.
struct Change {
  SimTime at;
  /// At one instant releases come first; but what is reserved and released at that same instant, by
  /// ops that take no time, goes in the order of the graph.
  bool released_first = false;
  std::uint32_t node = 0;
  Bytes activations;
  Bytes buffers;
  std::int32_t in_flight = 0;
};

/// What each stage reserves and releases.
struct StageBytes {
  bool first_of_position = false;
  bool last_of_position = false;
  Bytes activation;
  Bytes position_activation;  ///< Of all stages of the position.
  Bytes received_input;       ///< 0 unless the stage gets its input from another device.
  Bytes received_gradient;
  Bytes own_output;  ///< What the position makes and sends on.
};

std::vector<StageBytes> bytes_of_stages(const StageCosts& costs,
                                        const std::vector<Position>& positions) {
  std::vector<StageBytes> stages(costs.stages.size());
  for (const Position& position : positions) {
    const std::uint32_t first = position.first_stage;
    const std::uint32_t last = first + position.stages - 1;
    Bytes all;
    for (std::uint32_t s = first; s <= last; ++s) all += costs.stages[s].activation;
    for (std::uint32_t s = first; s <= last; ++s) {
      stages[s].activation = costs.stages[s].activation;
      stages[s].position_activation = all;
    }
    stages[first].first_of_position = true;
    stages[last].last_of_position = true;
    if (first > 0) stages[first].received_input = costs.crossing(first - 1);
    stages[last].received_gradient = costs.crossing(last);
    stages[last].own_output = costs.crossing_made_in(first, last);
  }
  return stages;
}

class Collector {
 public:
  Collector(const OpGraph& graph, const Trace& trace, const std::vector<StageBytes>& stages,
            bool recompute)
      : graph_(graph), spans_(trace.spans), stages_(stages), recompute_(recompute) {}

  /// Tells `add(slot, change)` of everything that node does.
  template <class Add>
  void collect(std::uint32_t node, Add&& add) const {
    const Activity& activity = graph_.activities[node];
    const std::uint32_t stage = activity.stage.value;
    if (!is_op(activity.kind) && activity.kind != ActivityKind::backward_part &&
        !is_transfer(activity.kind))
      return;
    const std::uint32_t slot = graph_.receiver(node);
    const StageBytes& bytes = stages_[stage];
    const Span& span = spans_[node];
    switch (activity.kind) {
      case ActivityKind::activation_transfer:
      case ActivityKind::gradient_transfer:
        add(slot, Change{span.begin, false, node, {}, graph_.cost(node).bytes, 0});
        if (recompute_ && activity.kind == ActivityKind::activation_transfer) {
          const bool made_before = spans_[graph_.nodes[node].after].begin < span.end;
          add(graph_.sender(node),
              Change{span.end, made_before, node, {}, Bytes{} - stages_[stage - 1].own_output, 0});
        }
        break;
      case ActivityKind::forward:
        add(slot, Change{span.begin, false, node, recompute_ ? Bytes{} : bytes.activation,
                         recompute_ && bytes.last_of_position ? bytes.own_output : Bytes{},
                         bytes.first_of_position ? 1 : 0});
        break;
      case ActivityKind::backward:
      case ActivityKind::backward_input:
        if (recompute_ && bytes.last_of_position) {
          add(slot, Change{span.begin, false, node, bytes.position_activation, {}, 0});
        }
        if (activity.kind == ActivityKind::backward) add(slot, end_of_backward(node, bytes));
        break;
      case ActivityKind::backward_weight:
        add(slot, end_of_backward(node, bytes));
        break;
      default:
        break;
    }
  }

 private:
  Change end_of_backward(std::uint32_t node, const StageBytes& bytes) const {
    return {spans_[node].end,
            spans_[node].begin < spans_[node].end,
            node,
            Bytes{} - bytes.activation,
            Bytes{} - (bytes.received_input + bytes.received_gradient),
            bytes.first_of_position ? -1 : 0};
  }

  const OpGraph& graph_;
  const std::vector<Span>& spans_;
  const std::vector<StageBytes>& stages_;
  bool recompute_;
};

/// In the order of time, releases first, and running sums.
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

/// The op that a node is, or that it feeds.
std::string op_name(const OpGraph& graph, const std::vector<bool>& splits, std::uint32_t node) {
  Activity activity = graph.activities[node];
  if (activity.kind == ActivityKind::activation_transfer) activity.kind = ActivityKind::forward;
  if (activity.kind == ActivityKind::gradient_transfer)
    activity.kind =
        splits[activity.stage.value] ? ActivityKind::backward_input : ActivityKind::backward;
  return to_text(activity);
}

}  // namespace

Bytes optimizer_bytes(const MemoryRules& rules, Bytes parameters, std::size_t members) {
  const std::int64_t all =
      std::llround(rules.optimizer_state * static_cast<double>(parameters.count));
  const std::int64_t shares = rules.sharded_optimizer ? static_cast<std::int64_t>(members) : 1;
  return {(all + shares - 1) / shares};
}

std::vector<std::vector<MemoryStep>> memory_steps(const OpGraph& graph, const Trace& trace,
                                                  const StageCosts& costs,
                                                  const std::vector<Position>& positions,
                                                  const MemoryRules& rules, TieOrder ties) {
  const std::vector<StageBytes> stages = bytes_of_stages(costs, positions);
  const Collector collector(graph, trace, stages, rules.recompute);
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
  for (std::uint32_t s = 0; s < costs.stages.size(); ++s) {
    const Bytes parameters = costs.stages[s].parameters;
    const std::uint32_t versions = rules.weight_versions[s];
    for (const std::uint32_t slot : graph.stage_slots[s]) {
      DeviceMemory& device = devices[slot];
      device.peak.weights += parameters;
      device.peak.gradients += parameters;
      device.peak.optimizer += optimizer_bytes(rules, parameters, graph.stage_slots[s].size());
      device.peak.stash += parameters * (versions - 1);
      device.weight_versions = std::max(device.weight_versions, versions);
    }
  }
  std::vector<bool> splits(costs.stages.size(), false);  // into I and W
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

double most_memory(const StageCosts& costs, const MemoryRules& rules, std::uint32_t micro_batches) {
  double sum = 0;
  for (std::uint32_t s = 0; s < costs.stages.size(); ++s) {
    const auto parameters = static_cast<double>(costs.stages[s].parameters.count);
    sum += parameters * (2 + rules.optimizer_state + rules.weight_versions[s]);
    sum += static_cast<double>(costs.stages[s].activation.count + 3 * costs.crossing(s).count) *
           micro_batches;
  }
  return sum;
}

}  // namespace plumbline
