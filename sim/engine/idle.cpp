// Gaps are read along a device's spans, mini-batch by mini-batch.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/idle.h"

#include <algorithm>

#include "sim/engine/release.h"

namespace plumbline {
namespace {

class GapReader {
 public:
  GapReader(const OpGraph& graph, const Trace& trace)
      : graph_(graph), trace_(trace), spans_(trace.spans) {}

  std::vector<IdleGap> read(const std::vector<std::uint32_t>& nodes, SimTime makespan) {
    auto at = nodes.begin();
    SimTime start;
    for (const MiniBatch& mini_batch : graph_.mini_batches) {
      at = read_mini_batch(mini_batch, at, nodes.end(), start);
      start = spans_[mini_batch.gate].end;
    }
    if (graph_.asynchronous()) {
      const SimTime end = read_between(nodes.begin(), nodes.end(), SimTime{});
      add(end, makespan, IdleCause::drain);
    }
    return std::move(gaps_);
  }

 private:
  using Iterator = std::vector<std::uint32_t>::const_iterator;

  void add(SimTime begin, SimTime end, IdleCause cause) {
    add(begin, end, cause,
        cause == IdleCause::drain || cause == IdleCause::update || cause == IdleCause::overhead);
  }
  void add(SimTime begin, SimTime end, IdleCause cause, bool is_end) {
    if (end > begin) gaps_.push_back({begin, end, cause, is_end});
  }

  Iterator read_mini_batch(const MiniBatch& mini_batch, Iterator first, Iterator end,
                           SimTime start) {
    const Iterator updates =
        std::find_if(first, end, [&](std::uint32_t node) { return node > mini_batch.reduced; });
    const Iterator next =
        std::find_if(updates, end, [&](std::uint32_t node) { return node > mini_batch.gate; });
    const SimTime flushed = spans_[mini_batch.flush].end;
    const SimTime ended = read_between(first, updates, start);
    add(ended, flushed, IdleCause::drain);
    const SimTime reduced = spans_[mini_batch.reduced].end;
    add(flushed, reduced, IdleCause::all_reduce);
    SimTime updated = reduced;
    for (Iterator at = updates; at != next; ++at) {
      add(updated, spans_[*at].begin, IdleCause::overhead);
      updated = spans_[*at].end;
    }
    // First other devices update; then comes the rest of the all-gathers.
    const SimTime all_updated = spans_[mini_batch.updated].begin;
    const SimTime gathered = spans_[mini_batch.gate].begin;
    add(updated, all_updated, IdleCause::update);
    add(std::max(updated, all_updated), gathered, IdleCause::all_reduce, /*is_end=*/true);
    add(spans_[mini_batch.gate].begin, spans_[mini_batch.gate].end, IdleCause::overhead);
    return next;
  }

  /// The gaps before and between these nodes; returns the end of the last.
  SimTime read_between(Iterator first, Iterator end, SimTime start) {
    SimTime cursor = start;
    for (Iterator at = first; at != end; ++at) {
      const SimTime begin = spans_[*at].begin;
      if (begin > cursor) {
        const SimTime input = std::clamp(input_there(*at), cursor, begin);
        if (at == first) {
          add(cursor, input, IdleCause::fill);
        } else {
          split(*at, cursor, input);
        }
        add(input, begin, IdleCause::all_reduce);
      }
      cursor = begin + held(graph_, trace_, *at);
    }
    return cursor;
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
  void split(std::uint32_t node, SimTime begin, SimTime end) {
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
    add(begin, turn, IdleCause::dependency);
    add(turn, ready, on_its_way);
    add(ready, end, IdleCause::overhead);  // in a measured run: between two ops
  }

  const OpGraph& graph_;
  const Trace& trace_;
  const std::vector<Span>& spans_;
  std::vector<IdleGap> gaps_;
};

}  // namespace

std::string_view name(IdleCause cause) {
  constexpr std::string_view names[] = {"fill",       "drain",      "dependency", "transfer",
                                        "all_reduce", "rendezvous", "update",     "overhead"};
  return names[static_cast<std::size_t>(cause)];
}

std::vector<std::vector<std::uint32_t>> nodes_by_slot(const OpGraph& graph) {
  std::vector<std::vector<std::uint32_t>> nodes(graph.slots());
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.resource < graph.slots()) nodes[node.resource].push_back(i);
    if (node.peer_resource != node.resource && node.peer_resource < graph.slots())
      nodes[node.peer_resource].push_back(i);
  }
  return nodes;
}

Duration held(const OpGraph& graph, const Trace& trace, std::uint32_t node) {
  return trace.spans[node].end - trace.spans[node].begin - graph.cost(node).latency;
}

std::vector<IdleGap> idle_gaps(const OpGraph& graph, const Trace& trace,
                               const std::vector<std::uint32_t>& nodes, SimTime makespan) {
  return GapReader(graph, trace).read(nodes, makespan);
}

}  // namespace plumbline
