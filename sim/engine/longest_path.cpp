// The longest path through an op graph: one pass over flat arrays.
//
// SPDX-License-Identifier: MIT
#include <algorithm>

#include "base/bug.h"
#include "sim/engine/release.h"
#include "sim/engine/simulate.h"

namespace plumbline {
namespace {

/// Calls `visit(node, begin, end)` for every node in order. Times are plain nanoseconds here, as
/// this is the inner loop of sweeps.
template <class Visit>
void evaluate(const OpGraph& graph, Visit&& visit) {
  PLUMBLINE_CHECK(!graph.rates_change(), graph.channels.size(), graph.slowdowns.size());
  const std::uint32_t size = graph.size();
  std::vector<std::int64_t> arrived(std::size_t{size} + 1,
                                    0);  // the last one means "nothing to wait for"
  std::vector<std::int64_t> free_at(graph.resources(), 0);
  const Node* const nodes = graph.nodes.data();
  const Cost* const costs = graph.costs.data();
  const auto pass = [&](std::uint32_t first, std::uint32_t end) {
    for (std::uint32_t i = first; i < end; ++i) {
      const Node node = nodes[i];
      const Cost& cost = costs[node.cost];
      const std::int64_t begin =
          std::max({free_at[node.resource], free_at[node.peer_resource], arrived[node.input]});
      const std::int64_t released = begin + cost.hold.count();
      free_at[node.resource] = released;
      free_at[node.peer_resource] = released;
      arrived[i] = released + cost.latency.count();
      visit(i, begin, arrived[i]);
    }
  };
  // The loop has no branch between joins.
  std::uint32_t first = 0;
  for (const Join& join : graph.joins) {
    pass(first, join.node);
    std::int64_t& ready = free_at[nodes[join.node].resource];
    for (const std::uint32_t producer : join.inputs) ready = std::max(ready, arrived[producer]);
    first = join.node;
  }
  pass(first, size);
}

}  // namespace

Trace longest_path(const OpGraph& graph) {
  Trace trace;
  trace.spans.resize(graph.size());
  evaluate(graph, [&](std::uint32_t node, std::int64_t begin, std::int64_t end) {
    trace.spans[node].begin = SimTime(Duration(begin));
    trace.spans[node].end = SimTime(Duration(end));
  });
  attribute_releases(graph, trace);
  return trace;
}

SimTime longest_path_end(const OpGraph& graph) {
  std::int64_t last = 0;
  evaluate(graph,
           [&](std::uint32_t, std::int64_t, std::int64_t end) { last = std::max(last, end); });
  return SimTime(Duration(last));
}

}  // namespace plumbline
