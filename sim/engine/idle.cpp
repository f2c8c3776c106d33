// Gaps are read along a device's spans, mini-batch by mini-batch.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/idle.h"

#include <algorithm>

#include "sim/engine/release.h"

namespace plumbline {
namespace {

/// Reads the gaps of devices along their nodes, for one slot or for all at once. It tells
/// `sink(slot, begin, end, cause, is_end)` of each; the gaps of a slot ascend.
template <class Sink>
class GapReader {
 public:
  /// Numbers of slots are below `slots`.
  GapReader(const OpGraph& graph, const Trace& trace, std::size_t slots, Sink sink)
      : graph_(graph), spans_(trace.spans), trace_(trace), sink_(sink), slots_(slots) {}

  /// The node is the slot's next one: an op, or another that holds its stream, before the updates.
  void read_op(std::uint32_t slot, std::uint32_t node) {
    Slot& at = slots_[slot];
    const Span& span = spans_[node];
    if (span.begin > at.cursor) {
      const SimTime input = std::clamp(input_there(node), at.cursor, span.begin);
      if (at.is_first) {
        tell(slot, at.cursor, input, IdleCause::fill);
      } else {
        split(slot, node, at.cursor, input);
      }
      tell(slot, input, span.begin, IdleCause::all_reduce);
    }
    at.is_first = false;
    at.cursor = span.begin + held(graph_, trace_, node);
  }

  /// All of the slot's ops in the mini-batch are read; its updates follow.
  void end_ops(std::uint32_t slot, const MiniBatch& mini_batch) {
    Slot& at = slots_[slot];
    const SimTime flushed = spans_[mini_batch.flush].end;
    const SimTime reduced = spans_[mini_batch.reduced].end;
    tell(slot, at.cursor, flushed, IdleCause::drain);
    tell(slot, flushed, reduced, IdleCause::all_reduce);
    at.cursor = reduced;
  }

  void read_update(std::uint32_t slot, std::uint32_t node) {
    Slot& at = slots_[slot];
    tell(slot, at.cursor, spans_[node].begin, IdleCause::overhead);
    at.cursor = spans_[node].end;
  }

  /// First other devices update; then comes the rest of the all-gathers.
  void end_mini_batch(std::uint32_t slot, const MiniBatch& mini_batch) {
    Slot& at = slots_[slot];
    const SimTime all_updated = spans_[mini_batch.updated].begin;
    const Span& gate = spans_[mini_batch.gate];
    tell(slot, at.cursor, all_updated, IdleCause::update);
    tell(slot, std::max(at.cursor, all_updated), gate.begin, IdleCause::all_reduce, true);
    tell(slot, gate.begin, gate.end, IdleCause::overhead);
    at = {gate.end, true};
  }

  /// The end of a run without mini-batches.
  void end_run(std::uint32_t slot, SimTime makespan) {
    tell(slot, slots_[slot].cursor, makespan, IdleCause::drain);
  }

 private:
  /// How far a slot is read.
  struct Slot {
    SimTime cursor;
    bool is_first = true;  ///< No node of the mini-batch is read yet.
  };

  void tell(std::uint32_t slot, SimTime begin, SimTime end, IdleCause cause) {
    tell(slot, begin, end, cause,
         cause == IdleCause::drain || cause == IdleCause::update || cause == IdleCause::overhead);
  }
  void tell(std::uint32_t slot, SimTime begin, SimTime end, IdleCause cause, bool is_end) {
    if (end > begin) sink_(slot, begin, end, cause, is_end);
  }

  /// The time at which an op has all inputs except the weights updated by other devices, if it
  /// waited for these last. Else the time at which it begins.
  SimTime input_there(std::uint32_t node) const {
    const std::uint32_t by = spans_[node].released_by;
    const std::uint32_t input = graph_.nodes[node].input;
    if (by == kNobody || graph_.activities[by].kind != ActivityKind::collective_end ||
        graph_.activities[node].kind == ActivityKind::update)
      return spans_[node].begin;
    return input == by || input == graph_.size() ? SimTime{} : spans_[input].end;
  }

  /// Splits a gap. Up to the end of the producer the device waited for the producer, after that for
  /// the data or the partner.
  void split(std::uint32_t slot, std::uint32_t node, SimTime begin, SimTime end) {
    std::uint32_t producer = graph_.nodes[node].input;
    const bool is_blocking_transfer = is_transfer(graph_.activities[node].kind);
    IdleCause on_its_way = is_blocking_transfer ? IdleCause::rendezvous : IdleCause::transfer;
    if (!is_blocking_transfer && producer != graph_.size()) {
      if (is_transfer(graph_.activities[producer].kind)) {
        producer = graph_.nodes[producer].input;
      } else if (graph_.activities[producer].kind == ActivityKind::collective_end) {
        // Hops come before the event at which they end, and begin at the previous event.
        while (graph_.activities[producer].kind != ActivityKind::collective_begin)
          producer = graph_.nodes[producer - 1].input;
        on_its_way = IdleCause::all_reduce;
      }
    }
    const SimTime made = producer == graph_.size() ? end : spans_[producer].end;
    const SimTime turn = std::clamp(made, begin, end);
    const SimTime ready = std::clamp(released(graph_, trace_, node), turn, end);
    tell(slot, begin, turn, IdleCause::dependency);
    tell(slot, turn, ready, on_its_way);
    tell(slot, ready, end, IdleCause::overhead);  // in a measured run: between two ops
  }

  const OpGraph& graph_;
  const std::vector<Span>& spans_;
  const Trace& trace_;
  Sink sink_;
  std::vector<Slot> slots_;
};

/// Calls `read(slot, node)` for each slot whose stream a node holds.
template <class Read>
void each_slot_of(const OpGraph& graph, std::uint32_t node, Read&& read) {
  const auto [cost, slot, peer, input] = graph.nodes[node];
  if (slot < graph.slots()) read(slot, node);
  if (peer != slot && peer < graph.slots()) read(peer, node);
}

}  // namespace

std::string_view name(IdleCause cause) {
  constexpr std::string_view names[] = {"fill",       "drain",      "dependency", "transfer",
                                        "all_reduce", "rendezvous", "update",     "overhead"};
  return names[static_cast<std::size_t>(cause)];
}

std::vector<std::vector<std::uint32_t>> nodes_by_slot(const OpGraph& graph) {
  std::vector<std::vector<std::uint32_t>> nodes(graph.slots());
  for (std::uint32_t i = 0; i < graph.size(); ++i)
    each_slot_of(graph, i,
                 [&](std::uint32_t slot, std::uint32_t node) { nodes[slot].push_back(node); });
  return nodes;
}

Duration held(const OpGraph& graph, const Trace& trace, std::uint32_t node) {
  return trace.spans[node].end - trace.spans[node].begin - graph.cost(node).latency;
}

std::vector<IdleGap> idle_gaps(const OpGraph& graph, const Trace& trace,
                               const std::vector<std::uint32_t>& nodes, SimTime makespan) {
  std::vector<IdleGap> gaps;
  GapReader reader(graph, trace, 1,
                   [&](std::uint32_t, SimTime begin, SimTime end, IdleCause cause, bool is_end) {
                     gaps.push_back({begin, end, cause, is_end});
                   });
  auto at = nodes.begin();
  for (const MiniBatch& mini_batch : graph.mini_batches) {
    for (; at != nodes.end() && *at <= mini_batch.reduced; ++at) reader.read_op(0, *at);
    reader.end_ops(0, mini_batch);
    for (; at != nodes.end() && *at <= mini_batch.gate; ++at) reader.read_update(0, *at);
    reader.end_mini_batch(0, mini_batch);
  }
  if (!graph.asynchronous()) return gaps;
  for (const std::uint32_t node : nodes) reader.read_op(0, node);
  reader.end_run(0, makespan);
  return gaps;
}

std::vector<StreamTimes> stream_times(const OpGraph& graph, const Trace& trace, SimTime makespan) {
  std::vector<StreamTimes> devices(graph.slots());
  GapReader reader(graph, trace, graph.slots(),
                   [&](std::uint32_t slot, SimTime begin, SimTime end, IdleCause cause, bool) {
                     devices[slot].idle[static_cast<std::size_t>(cause)] += end - begin;
                   });
  const auto count = [&](std::uint32_t slot, std::uint32_t node) {
    StreamTimes& device = devices[slot];
    const SimTime begin = trace.spans[node].begin;
    const Duration took = held(graph, trace, node);
    device.busy += took;
    if (!device.first) device.first = begin;
    if (took.count() > 0) device.last = begin + took;
    device.last_node = node;
  };
  const auto op = [&](std::uint32_t slot, std::uint32_t node) {
    count(slot, node);
    reader.read_op(slot, node);
  };
  const auto update = [&](std::uint32_t slot, std::uint32_t node) {
    count(slot, node);
    reader.read_update(slot, node);
  };
  std::uint32_t node = 0;
  for (const MiniBatch& mini_batch : graph.mini_batches) {
    for (; node <= mini_batch.reduced; ++node) each_slot_of(graph, node, op);
    for (std::uint32_t slot = 0; slot < graph.slots(); ++slot) reader.end_ops(slot, mini_batch);
    for (; node <= mini_batch.gate; ++node) each_slot_of(graph, node, update);
    for (std::uint32_t slot = 0; slot < graph.slots(); ++slot)
      reader.end_mini_batch(slot, mini_batch);
  }
  if (!graph.asynchronous()) return devices;
  for (; node < graph.size(); ++node) each_slot_of(graph, node, op);
  for (std::uint32_t slot = 0; slot < graph.slots(); ++slot) reader.end_run(slot, makespan);
  return devices;
}

}  // namespace plumbline
