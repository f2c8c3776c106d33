// One pass in the order of the nodes.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/release.h"

namespace plumbline {

void attribute_releases(const OpGraph& graph, Trace& trace) {
  std::vector<std::uint32_t> last(graph.resources(), kNobody);
  auto join = graph.joins.begin();
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    std::uint32_t best = last[node.resource];
    // A transfer releases its channel when its latency begins.
    SimTime latest = best == kNobody ? SimTime{} : trace.spans[best].end - graph.cost(best).latency;
    if (node.peer_resource != node.resource && last[node.peer_resource] != kNobody &&
        (best == kNobody || trace.spans[last[node.peer_resource]].end > latest)) {
      best = last[node.peer_resource];
      latest = trace.spans[best].end;
    }
    const auto consider = [&](std::uint32_t producer) {
      if (best != kNobody && trace.spans[producer].end <= latest) return;
      best = producer;
      latest = trace.spans[producer].end;
    };
    if (node.input != graph.size()) consider(node.input);
    if (join != graph.joins.end() && join->node == i) {
      for (const std::uint32_t producer : join->inputs) consider(producer);
      ++join;
    }
    trace.spans[i].released_by = best;
    last[node.resource] = i;
    last[node.peer_resource] = i;
  }
}

SimTime released(const OpGraph& graph, const Trace& trace, std::uint32_t node) {
  const std::uint32_t by = trace.spans[node].released_by;
  if (by == kNobody) return SimTime{};
  const bool gives_back = graph.nodes[by].resource == graph.nodes[node].resource;
  return trace.spans[by].end - (gives_back ? graph.cost(by).latency : Duration{});
}

}  // namespace plumbline
