// Gaps that lead to one activity are one wait. Its culprit is where the release came from.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/waits.h"

#include <algorithm>

namespace plumbline {
namespace {

class WaitReader {
 public:
  WaitReader(const OpGraph& graph, const Trace& trace)
      : graph_(graph), trace_(trace), spans_(trace.spans) {
    for (const Span& span : spans_) makespan_ = std::max(makespan_, span.end);
  }

  std::vector<Wait> read() {
    const auto nodes = nodes_by_slot(graph_);
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) read_slot(slot, nodes[slot]);
    return std::move(waits_);
  }

 private:
  void read_slot(std::uint32_t slot, const std::vector<std::uint32_t>& nodes) {
    auto next = nodes.begin();
    for (const IdleGap& gap : idle_gaps(graph_, trace_, nodes, makespan_)) {
      // Without a flush, devices are at other mini-batches before and after this one.
      const bool at_others = gap.cause == IdleCause::fill || gap.is_end;
      if (!graph_.flushes && at_others) continue;
      while (next != nodes.end() && spans_[*next].begin < gap.end) ++next;
      const std::uint32_t waiting = next == nodes.end() ? kNobody : *next;
      // A wait for the end of the mini-batch is not the same as a wait for the first op of the next
      // one.
      const bool goes_on = !waits_.empty() && waits_.back().slot == slot &&
                           waits_.back().end == gap.begin &&
                           waits_.back().parts.back().is_end == gap.is_end;
      if (!goes_on) {
        Wait wait;
        wait.slot = slot;
        wait.begin = gap.begin;
        waits_.push_back(wait);
      }
      Wait& wait = waits_.back();
      wait.end = gap.end;
      wait.parts.push_back(gap);
      wait.next = gap.is_end ? kNobody : waiting;
      blame(wait);
    }
  }

  void blame(Wait& wait) const {
    wait.culprit = kNobody;
    wait.transfer = kNobody;
    if (wait.next == kNobody) {
      wait.culprit = op_behind(ended_by(wait.end));
      return;
    }
    const std::uint32_t by = spans_[wait.next].released_by;
    if (by == kNobody || ends_gather(by)) return;
    if (is_transfer(graph_.activities[by].kind)) wait.transfer = by;
    wait.culprit = is_transfer(graph_.activities[wait.next].kind) ? by : op_behind(by);
  }

  /// Whether it is the event at which weights have been gathered; its hops come before it.
  bool ends_gather(std::uint32_t node) const {
    return graph_.activities[node].kind == ActivityKind::collective_end &&
           graph_.activities[node - 1].kind == ActivityKind::all_gather;
  }

  /// The event or overhead at which the wait ends.
  std::uint32_t ended_by(SimTime end) const {
    for (const MiniBatch& mini_batch : graph_.mini_batches) {
      for (const std::uint32_t node : {mini_batch.flush, mini_batch.reduced, mini_batch.gate}) {
        if (spans_[node].end == end) return node;
      }
    }
    std::uint32_t last = 0;
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      if (spans_[node].end > spans_[last].end) last = node;
    }
    return last;
  }

  /// The op without which `node` would not have ended. The search goes back over transfers, rings
  /// and events.
  std::uint32_t op_behind(std::uint32_t node) const {
    while (node != kNobody && !is_compute(graph_.activities[node].kind)) {
      const std::uint32_t after = graph_.nodes[node].input;
      node = after != graph_.size() ? after : spans_[node].released_by;
    }
    return node;
  }

  const OpGraph& graph_;
  const Trace& trace_;
  const std::vector<Span>& spans_;
  SimTime makespan_;
  std::vector<Wait> waits_;
};

}  // namespace

std::vector<Wait> waits(const OpGraph& graph, const Trace& trace) {
  return WaitReader(graph, trace).read();
}

}  // namespace plumbline
