// The parts of an explanation, each from its own source file.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/explain.h"

#include <algorithm>

#include "sim/engine/critical.h"
#include "sim/engine/period.h"
#include "sim/prediction/iteration_clock.h"

namespace plumbline {
namespace {

/// The nodes of the path that count, and the time from which they count. In an asynchronous run
/// these are the nodes after the begin of the steady state; without a flush, those of the longest
/// span of a device.
struct TimedPath {
  std::vector<std::uint32_t> nodes;
  SimTime begin;
};

TimedPath timed_path(const Outcome& outcome) {
  const std::vector<Span>& spans = outcome.trace.spans;
  const IterationClock clock(outcome);
  TimedPath path;
  if (!outcome.graph.flushes) {
    const DeviceSpan span = longest(device_spans(outcome.graph, outcome.trace));
    path = {path_to(outcome.trace, span.last), span.begin};
  } else if (!clock.watched().empty()) {
    path = {path_to(outcome.trace, clock.watched()[1]), spans[clock.watched()[0]].end};
  } else {
    return {critical_path(outcome.trace), SimTime{}};
  }
  const auto ended = [&](std::uint32_t node) { return spans[node].end <= path.begin; };
  path.nodes.erase(std::remove_if(path.nodes.begin(), path.nodes.end(), ended), path.nodes.end());
  return path;
}

/// The segments of the path. Each node lasts until the next one begins, so that the segments cover
/// the whole path.
std::vector<PathSegment> segments(const Outcome& outcome) {
  const OpGraph& graph = outcome.graph;
  const std::vector<Span>& spans = outcome.trace.spans;
  const TimedPath path = timed_path(outcome);
  std::vector<PathSegment> found;
  for (std::size_t i = 0; i < path.nodes.size(); ++i) {
    const std::uint32_t node = path.nodes[i];
    const ActivityKind kind = graph.activities[node].kind;
    PathSegment segment;
    segment.begin = std::max(path.begin, spans[node].begin);
    segment.end = i + 1 < path.nodes.size() ? spans[path.nodes[i + 1]].begin : spans[node].end;
    if (segment.end <= segment.begin) continue;
    segment.overhead = !is_compute(kind) && !is_transfer(kind) && !is_collective(kind);
    if (!segment.overhead) {
      segment.from = graph.sender(node);
      segment.to = is_compute(kind) ? segment.from : graph.receiver(node);
      segment.in_group = is_collective(kind) && segment.from == segment.to;
    }
    const bool goes_on = !found.empty() && found.back().overhead == segment.overhead &&
                         found.back().in_group == segment.in_group &&
                         found.back().from == segment.from && found.back().to == segment.to;
    if (!goes_on) found.push_back(segment);
    found.back().end = segment.end;
    found.back().nodes.push_back(node);
  }
  return found;
}

std::vector<StageRoom> rooms(const Outcome& outcome) {
  std::vector<Duration> slacks = slack(outcome.graph, outcome.trace);
  const std::vector<std::uint32_t> ops = ops_of_parts(outcome.graph);
  for (std::uint32_t node = 0; node < ops.size(); ++node)
    slacks[ops[node]] = std::min(slacks[ops[node]], slacks[node]);
  std::vector<StageRoom> stages(outcome.graph.stage_slots.size());
  for (std::uint32_t node = 0; node < outcome.graph.size(); ++node) {
    const Activity& activity = outcome.graph.activities[node];
    if (!is_op(activity.kind)) continue;
    StageRoom& room = stages[activity.stage.value];
    room.min_slack = room.ops == 0 ? slacks[node] : std::min(room.min_slack, slacks[node]);
    room.max_slack = std::max(room.max_slack, slacks[node]);
    ++room.ops;
    if (slacks[node].count() == 0) ++room.critical;
  }
  return stages;
}

}  // namespace

Explanation explain(const Outcome& outcome) {
  return {segments(outcome),
          sensitivities(outcome),
          rooms(outcome),
          waits(outcome.graph, outcome.trace),
          {}};
}

std::optional<std::uint32_t> find_op(const OpGraph& graph, const std::string& name) {
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const ActivityKind kind = graph.activities[node].kind;
    if ((is_op(kind) || kind == ActivityKind::update) && to_text(graph.activities[node]) == name)
      return node;
  }
  return std::nullopt;
}

}  // namespace plumbline
