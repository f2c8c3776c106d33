// The fast path against the longest path with the same costs, lane by lane.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/compiled_graph.h"

#include <doctest/doctest.h>

#include "sim/engine/simulate.h"
#include "tests/support/random_pipeline.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

constexpr std::size_t kLanes = CompiledGraph::kLanes;

/// Every time that is not 0 becomes another one, in each lane by itself.
void draw(std::vector<std::int64_t>& table, Dice& dice) {
  for (std::int64_t& time : table) time = time == 0 ? 0 : dice.roll(0, 90);
}

/// The graph with the times of one lane.
OpGraph graph_of_lane(OpGraph graph, const CostIndex& index, const CompiledGraph::Tables& tables,
                      std::size_t lane) {
  std::vector<Cost> costs;
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    Cost cost = graph.cost(node);
    cost.hold = Duration(tables.hold[index.hold[node] * kLanes + lane]);
    cost.latency = Duration(tables.latency[index.latency[node] * kLanes + lane]);
    costs.push_back(cost);
  }
  for (std::uint32_t node = 0; node < graph.size(); ++node) graph.nodes[node].cost = node;
  graph.costs = std::move(costs);
  return graph;
}

void check_lanes(const OpGraph& graph, const CostIndex& index, Dice& dice) {
  std::vector<std::uint32_t> watched;
  for (int i = 0; i < 3; ++i)
    watched.push_back(static_cast<std::uint32_t>(dice.roll(0, graph.size() - 1)));
  const CompiledGraph compiled(graph, index, watched);
  CompiledGraph::Tables tables = compiled.tables();
  CompiledGraph::Workspace workspace;
  std::vector<std::int64_t> rows;
  compiled.evaluate(tables, workspace, rows);
  CHECK(rows[kLanes - 1] == longest_path_end(graph).time_since_epoch().count());
  draw(tables.hold, dice);
  draw(tables.latency, dice);
  compiled.evaluate(tables, workspace, rows);
  for (const std::size_t lane : {std::size_t{0}, kLanes / 2, kLanes - 1}) {
    const Trace trace = longest_path(graph_of_lane(graph, index, tables, lane));
    CHECK(rows[lane] == makespan(graph, trace).count());
    for (std::size_t w = 0; w < watched.size(); ++w)
      CHECK(rows[(1 + w) * kLanes + lane] ==
            trace.spans[watched[w]].end.time_since_epoch().count());
  }
}

TEST_CASE("every lane of a compiled graph is the longest path with its costs, to the tick") {
  for (std::uint64_t seed = 1; seed <= trials(1000); ++seed) {
    CAPTURE(seed);
    const OpGraph graph = graph_of(random_pipeline(seed));
    Dice dice(seed);
    check_lanes(graph, index_by_class(graph), dice);
    check_lanes(graph, index_by_node(graph), dice);
  }
}

}  // namespace
}  // namespace plumbline::test
