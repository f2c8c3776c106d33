// Memory as a sequence of reservations and releases.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/memory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>

#include "sim/engine/stage_memory.h"

namespace plumbline {
namespace {

/// What a change adds to what is held.
struct Amount {
  Bytes activations;
  Bytes buffers;
  std::int32_t in_flight = 0;
};

/// The changes of all slots. Each slot has a list for each cause. A list is collected in the order
/// of the graph, which is that of time where one stream or one channel makes it.
class MemoryChanges {
 public:
  MemoryChanges(const OpGraph& graph, const Trace& trace, const MemoryByLength& memory,
                TieOrder ties)
      : graph_(graph),
        spans_(trace.spans),
        memory_(memory),
        stages_(static_cast<std::uint32_t>(memory.of(0).size())),
        releases_first_(ties == TieOrder::releases_first),
        has_one_position_(graph.slots(), 0) {
    list_amounts();
    make_room();
    for (std::uint32_t node = 0; node < graph.size(); ++node) collect(node);
    sort();
  }

  std::size_t count(std::uint32_t slot) const {
    std::size_t sum = 0;
    for (std::size_t cause = 0; cause < kCauses; ++cause) sum += list(slot, cause).size;
    return sum;
  }

  /// Calls `take(held)` for every change of a slot in the order of time, with what is held from
  /// there on. Requires: F of a micro-batch begins no later than its B (W) ends.
  template <class Take>
  void visit(std::uint32_t slot, Take&& take) const {
    MemoryStep held;
    // A device with several positions has a micro-batch in flight while any of them has.
    const bool has_one = has_one_position_[slot] != 0;
    std::vector<std::int32_t> positions(has_one ? 0 : graph_.micro_batches, 0);
    each_in_order(slot, [&](const Change& change) {
      const Amount& amount = amounts_[change.amount];
      held.at = SimTime(Duration(change.at >> 1));
      held.activations += amount.activations;
      held.buffers += amount.buffers;
      held.node = change.node;
      if (has_one) {
        held.in_flight += amount.in_flight;
      } else if (amount.in_flight != 0) {
        std::int32_t& of_micro_batch = positions[graph_.activities[change.node].micro_batch.value];
        const bool before = of_micro_batch > 0;
        of_micro_batch += amount.in_flight;
        held.in_flight += (of_micro_batch > 0 ? 1 : 0) - (before ? 1 : 0);
      }
      take(held);
    });
  }

 private:
  enum Cause : std::size_t { op, activation, gradient, sent };
  static constexpr std::size_t kCauses = sent + 1;
  /// The amounts of a stage for a micro-batch, in their table.
  enum Kind : std::uint32_t { forward, again, backward, by_input, weight, send };
  static constexpr std::uint32_t kKinds = send + 1;

  struct Change {
    /// Twice the time in ns, which check_overflow() keeps below 2^62; 1 more for what comes later
    /// at that time. At the same instant releases come first. But memory that is reserved and
    /// released at the same instant, by ops that take no time, follows the order of the graph.
    std::int64_t at;
    std::uint32_t node;
    std::uint32_t amount;  ///< Index into the amounts.

    friend bool operator<(const Change& a, const Change& b) {
      return a.at != b.at ? a.at < b.at : a.node < b.node;
    }
  };

  struct List {
    std::size_t first = 0;  ///< Index of its first change.
    std::size_t size = 0;
  };

  const List& list(std::uint32_t slot, std::size_t cause) const {
    return lists_[slot * kCauses + cause];
  }

  void list_amounts() {
    for (std::uint32_t kind = 0; kind < memory_.kinds(); ++kind) add_amounts(memory_.of(kind));
    first_received_ = static_cast<std::uint32_t>(amounts_.size());
    for (const Cost& cost : graph_.costs) amounts_.push_back({{}, cost.bytes, 0});
    std::vector<std::uint32_t> positions(graph_.slots(), 0);
    for (std::uint32_t s = 0; s < stages_; ++s) {
      for (const std::uint32_t slot : graph_.stage_slots[s])
        positions[slot] += memory_.of(0)[s].first_of_position ? 1 : 0;
    }
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot)
      has_one_position_[slot] = positions[slot] <= 1 ? 1 : 0;
  }

  void add_amounts(const std::vector<StageMemory>& stages) {
    for (const StageMemory& stage : stages) {
      const std::int32_t in_flight = stage.first_of_position ? 1 : 0;
      amounts_.push_back({stage.kept, stage.sent, in_flight});
      amounts_.push_back({stage.again, {}, 0});
      amounts_.push_back({Bytes{} - stage.done, Bytes{} - stage.received(), -in_flight});
      amounts_.push_back({stage.recomputed_by_input, {}, 0});
      amounts_.push_back({Bytes{} - stage.done_by_weight, Bytes{} - stage.received(), -in_flight});
      amounts_.push_back({{}, Bytes{} - stage.sent, 0});
    }
  }

  /// The kind of micro-batch of an activity on a slot.
  std::uint32_t kind_of(const Activity& activity, std::uint32_t slot) const {
    return memory_.kind(activity.micro_batch.value, slot % graph_.written_copies);
  }

  /// Gives each list as much room as it may need.
  void make_room() {
    bool has_parts = !graph_.pairs.empty();
    std::vector<std::size_t> rooms(graph_.slots() * kCauses, 0);
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      const ActivityKind kind = graph_.activities[node].kind;
      has_parts = has_parts || is_part(kind);
      if (is_op(kind)) rooms[graph_.receiver(node) * kCauses + op] += 2;
      if (!is_transfer(kind)) continue;
      const bool is_activation = kind == ActivityKind::activation_transfer;
      ++rooms[graph_.receiver(node) * kCauses + (is_activation ? activation : gradient)];
      if (is_activation) ++rooms[graph_.sender(node) * kCauses + sent];
    }
    std::size_t sum = 0;
    lists_.resize(rooms.size());
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      lists_[i].first = sum;
      sum += rooms[i];
    }
    changes_.reset(new Change[sum]);  // left as they are: each is written before it is read
    if (!has_parts) return;
    begins_ = first_parts(graph_);
    ends_ = ends_of_pairs(graph_);
    for (const auto& [first, second] : graph_.pairs) begins_[second] = first;
  }

  /// The begin of an op. For an op that is cut it is the begin of its first part; for an op of a
  /// pair it is the begin of both.
  SimTime begin_of(std::uint32_t node) const {
    return spans_[begins_.empty() ? node : begins_[node]].begin;
  }
  SimTime end_of(std::uint32_t node) const {
    return spans_[ends_.empty() ? node : ends_[node]].end;
  }

  void add(std::uint32_t slot, Cause cause, SimTime at, std::uint32_t node, std::uint32_t amount,
           bool released_first = false) {
    List& of = lists_[slot * kCauses + cause];
    const std::int64_t later = released_first != releases_first_ ? 1 : 0;
    changes_[of.first + of.size++] = {2 * at.time_since_epoch().count() + later, node, amount};
  }

  void collect(std::uint32_t node) {
    const Activity& activity = graph_.activities[node];
    if (is_op(activity.kind)) {
      collect_op(node, activity);
    } else if (is_transfer(activity.kind)) {
      collect_transfer(node, activity);
    }
  }

  void collect_op(std::uint32_t node, const Activity& activity) {
    const std::uint32_t slot = graph_.receiver(node);
    const std::uint32_t length = kind_of(activity, slot);
    const StageMemory& memory = memory_.of(length)[activity.stage.value];
    const std::uint32_t amounts = (length * stages_ + activity.stage.value) * kKinds;
    const auto end_backward = [&](Kind of) {
      const SimTime end = end_of(node);
      add(slot, op, end, node, amounts + of, begin_of(node) < end);
    };
    switch (activity.kind) {
      case ActivityKind::forward:
        add(slot, op, begin_of(node), node, amounts + forward);
        break;
      case ActivityKind::backward:
        if (memory.again != Bytes{}) add(slot, op, begin_of(node), node, amounts + again);
        end_backward(backward);
        break;
      case ActivityKind::backward_input:
        if (memory.recomputed_by_input != Bytes{})
          add(slot, op, spans_[node].begin, node, amounts + by_input);
        break;
      case ActivityKind::backward_weight:
        end_backward(weight);
        break;
      default:
        break;
    }
  }

  void collect_transfer(std::uint32_t node, const Activity& activity) {
    const Span& span = spans_[node];
    const std::uint32_t received = first_received_ + graph_.nodes[node].cost;
    if (activity.kind == ActivityKind::gradient_transfer)
      return add(graph_.receiver(node), gradient, span.begin, node, received);
    add(graph_.receiver(node), activation, span.begin, node, received);
    const std::uint32_t length = kind_of(activity, graph_.sender(node));
    const std::uint32_t from = activity.stage.value - 1;
    if (memory_.of(length)[from].sent == Bytes{}) return;
    const bool made_before = begin_of(graph_.nodes[node].input) < span.end;
    add(graph_.sender(node), sent, span.end, node, (length * stages_ + from) * kKinds + send,
        made_before);
  }

  void sort() {
    for (const List& one : lists_) {
      Change* const begin = changes_.get() + one.first;
      Change* const end = begin + one.size;
      if (!std::is_sorted(begin, end)) std::stable_sort(begin, end);
    }
  }

  template <class Each>
  void each_in_order(std::uint32_t slot, Each&& each) const {
    struct Rest {
      const Change* next;
      const Change* end;
    };
    std::array<Rest, kCauses> rests;
    std::size_t left = 0;
    for (std::size_t cause = 0; cause < kCauses; ++cause) {
      const List& one = list(slot, cause);
      const Change* const begin = changes_.get() + one.first;
      if (one.size > 0) rests[left++] = {begin, begin + one.size};
    }
    while (left > 0) {
      std::size_t first = 0;
      for (std::size_t i = 1; i < left; ++i) {
        if (*rests[i].next < *rests[first].next) first = i;
      }
      each(*rests[first].next++);
      if (rests[first].next == rests[first].end) rests[first] = rests[--left];
    }
  }

  const OpGraph& graph_;
  const std::vector<Span>& spans_;
  const MemoryByLength& memory_;
  std::uint32_t stages_ = 0;
  bool releases_first_ = true;
  std::vector<std::uint8_t> has_one_position_;  ///< By slot.
  std::vector<Amount> amounts_;                 ///< Those of stages, then those of received costs.
  std::uint32_t first_received_ = 0;
  std::vector<List> lists_;  ///< By slot and cause.
  std::unique_ptr<Change[]> changes_;
  std::vector<std::uint32_t> begins_, ends_;  ///< Empty: each op begins and ends by itself.
};

/// The op of a node: itself, or the op that consumes its transfer.
std::string op_name(const OpGraph& graph, const std::vector<bool>& splits, std::uint32_t node) {
  Activity activity = graph.activities[node];
  if (activity.kind == ActivityKind::activation_transfer) activity.kind = ActivityKind::forward;
  if (activity.kind == ActivityKind::gradient_transfer)
    activity.kind =
        splits[activity.stage.value] ? ActivityKind::backward_input : ActivityKind::backward;
  return to_text(activity);
}

/// Whether the backward of each stage is split into I and W.
std::vector<bool> split_stages(const OpGraph& graph) {
  std::vector<bool> splits(graph.stage_slots.size(), false);
  for (const Activity& activity : graph.activities) {
    if (activity.kind == ActivityKind::backward_input) splits[activity.stage.value] = true;
  }
  return splits;
}

}  // namespace

std::vector<std::vector<MemoryStep>> memory_steps(const OpGraph& graph, const Trace& trace,
                                                  const StageCosts& costs,
                                                  const std::vector<Position>& positions,
                                                  const MemoryRules& rules, TieOrder ties) {
  const MemoryByLength stages(costs, positions, rules.recompute);
  const MemoryChanges changes(graph, trace, stages, ties);
  std::vector<std::vector<MemoryStep>> steps(graph.slots());
  for (std::uint32_t slot = 0; slot < graph.slots(); ++slot) {
    steps[slot].reserve(changes.count(slot));
    changes.visit(slot, [&](const MemoryStep& step) { steps[slot].push_back(step); });
  }
  return steps;
}

namespace {

/// The peak among steps. Among equal ones, that with more micro-batches in flight counts, then the
/// first.
class Peak {
 public:
  void add(const MemoryStep& step) {
    max_in_flight_ = std::max(max_in_flight_, step.in_flight);
    const auto held = [](const MemoryStep& s) { return s.activations + s.buffers; };
    if (!step_ || held(step) > held(*step_) ||
        (held(step) == held(*step_) && step.in_flight > step_->in_flight))
      step_ = step;
  }

  const std::optional<MemoryStep>& step() const { return step_; }
  std::uint32_t max_in_flight() const { return static_cast<std::uint32_t>(max_in_flight_); }

 private:
  std::optional<MemoryStep> step_;
  std::int32_t max_in_flight_ = 0;
};

/// The memory of all slots, with the peak of each.
std::vector<DeviceMemory> with_peaks(const OpGraph& graph, const StageCosts& costs,
                                     const MemoryRules& rules, const std::vector<Peak>& peaks) {
  std::vector<DeviceMemory> devices(graph.slots());
  const auto stages = graph.stages_by_slot();
  const StageHolders holders = holders_of(graph, rules);
  const std::vector<bool> splits = split_stages(graph);
  for (std::uint32_t slot = 0; slot < graph.slots(); ++slot) {
    DeviceMemory& device = devices[slot];
    device.peak = held_with_versions(holders, costs, rules, stages[slot]);
    for (const std::uint32_t s : stages[slot])
      device.weight_versions = std::max(device.weight_versions, rules.weight_versions[s]);
    device.peak_in_flight = peaks[slot].max_in_flight();
    const std::optional<MemoryStep>& step = peaks[slot].step();
    if (!step) continue;
    device.peak.activations = step->activations;
    device.peak.buffers = step->buffers;
    device.peak_op = op_name(graph, splits, step->node);
  }
  return devices;
}

}  // namespace

std::vector<DeviceMemory> measure_memory(const OpGraph& graph, const StageCosts& costs,
                                         const MemoryRules& rules,
                                         const std::vector<std::vector<MemoryStep>>& steps) {
  std::vector<Peak> peaks(graph.slots());
  for (std::uint32_t slot = 0; slot < graph.slots(); ++slot) {
    for (const MemoryStep& step : steps[slot]) peaks[slot].add(step);
  }
  return with_peaks(graph, costs, rules, peaks);
}

std::vector<DeviceMemory> measure_memory(const OpGraph& graph, const Trace& trace,
                                         const StageCosts& costs,
                                         const std::vector<Position>& positions,
                                         const MemoryRules& rules, TieOrder ties) {
  const MemoryByLength stages(costs, positions, rules.recompute);
  const MemoryChanges changes(graph, trace, stages, ties);
  std::vector<Peak> peaks(graph.slots());
  for (std::uint32_t slot = 0; slot < graph.slots(); ++slot)
    changes.visit(slot, [&](const MemoryStep& step) { peaks[slot].add(step); });
  return with_peaks(graph, costs, rules, peaks);
}

std::vector<Bytes> peak_memory(const OpGraph& graph, const Trace& trace, const StageCosts& costs,
                               const std::vector<Position>& positions, const MemoryRules& rules) {
  const MemoryByLength stages(costs, positions, rules.recompute);
  const MemoryChanges changes(graph, trace, stages, TieOrder::releases_first);
  const auto stages_of = graph.stages_by_slot();
  const StageHolders holders = holders_of(graph, rules);
  std::vector<Bytes> peaks;
  peaks.reserve(graph.slots());
  for (std::uint32_t slot = 0; slot < graph.slots(); ++slot) {
    Bytes most;
    changes.visit(slot, [&](const MemoryStep& step) {
      most = std::max(most, step.activations + step.buffers);
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
