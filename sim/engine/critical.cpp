// One walk back along the releases; one pass from the last node to the first.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/critical.h"

#include <algorithm>

#include "sim/engine/period.h"

namespace plumbline {

std::vector<std::uint32_t> path_to(const Trace& trace, std::uint32_t last) {
  std::vector<std::uint32_t> path;
  for (std::uint32_t node = last; node != kNobody; node = trace.spans[node].released_by)
    path.push_back(node);
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<std::uint32_t> critical_path(const Trace& trace) {
  if (trace.spans.empty()) return {};
  std::uint32_t last = 0;
  for (std::uint32_t i = 1; i < trace.spans.size(); ++i) {
    if (trace.spans[i].end > trace.spans[last].end) last = i;
  }
  return path_to(trace, last);
}

namespace {

SimTime end_of(const Trace& trace) {
  SimTime end;
  for (const Span& span : trace.spans) end = std::max(end, span.end);
  return end;
}

/// Whether the node is only the end of the timeline, which no device waits for.
bool only_ends(const OpGraph& graph, std::uint32_t node) {
  const ActivityKind kind = graph.activities[node].kind;
  return !graph.flushes && (kind == ActivityKind::flush || kind == ActivityKind::overhead);
}

/// The latest time at which a device must have ended, in a run without a flush. For the last node
/// of each device, sets in `to_end` how much earlier it must have, its own length included.
SimTime set_deadlines(const OpGraph& graph, const Trace& trace, std::vector<Duration>& to_end) {
  const Duration period =
      shortest_period(graph, trace) - graph.cost(graph.mini_batches.front().gate).hold;
  const std::vector<DeviceSpan> spans = device_spans(graph, trace);
  SimTime last = end_of(trace);
  for (const DeviceSpan& span : spans) last = std::max(last, span.begin + period);
  for (const DeviceSpan& span : spans) {
    const Duration length = span.end - trace.spans[span.last].begin;
    to_end[span.last] = std::max(to_end[span.last], length + (last - (span.begin + period)));
  }
  return last;
}

}  // namespace

std::vector<Duration> slack(const OpGraph& graph, const Trace& trace) {
  // From the begin of each node to the end of all that waits for it, the last node first.
  std::vector<Duration> to_end(graph.size());
  const auto at_least = [&](std::uint32_t node, Duration time) {
    to_end[node] = std::max(to_end[node], time);
  };
  std::vector<std::uint32_t> behind(graph.resources(), graph.size());
  auto join = graph.joins.rbegin();
  const SimTime last = graph.flushes ? end_of(trace) : set_deadlines(graph, trace, to_end);
  for (std::uint32_t node = graph.size(); node-- > 0;) {
    const Node& n = graph.nodes[node];
    const Duration length = trace.spans[node].end - trace.spans[node].begin;
    at_least(node, length);
    for (const std::uint32_t resource : {n.resource, n.peer_resource}) {
      if (behind[resource] != graph.size() && behind[resource] != node)
        at_least(node, length - graph.cost(node).latency + to_end[behind[resource]]);
      behind[resource] = node;
    }
    const auto tell = [&](std::uint32_t producer) {
      if (only_ends(graph, node)) return;
      at_least(producer, trace.spans[producer].end - trace.spans[producer].begin + to_end[node]);
    };
    if (n.input != graph.size()) tell(n.input);
    if (join != graph.joins.rend() && join->node == node) {
      for (const std::uint32_t producer : join->inputs) tell(producer);
      ++join;
    }
  }
  std::vector<Duration> slacks(graph.size());
  for (std::uint32_t node = 0; node < graph.size(); ++node)
    slacks[node] = last - (trace.spans[node].begin + to_end[node]);
  return slacks;
}

}  // namespace plumbline
