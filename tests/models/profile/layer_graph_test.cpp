// The layer graph: order, cycles, reachability; against a plain search.
//
// SPDX-License-Identifier: MIT
#include "models/profile/layer_graph.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/text_source.h"

namespace plumbline {
namespace {

LayerGraph graph_with(std::uint32_t layers,
                      const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges) {
  LayerGraph graph;
  for (std::uint32_t i = 0; i < layers; ++i) graph.add_layer({"l" + std::to_string(i), "", {}});
  for (const auto& [from, to] : edges) graph.add_edges({{{from}, {to}}});
  return graph;
}

TEST_CASE("among layers that are ready the first in the file comes first") {
  const LayerGraph graph = graph_with(5, {{3, 0}, {3, 1}, {0, 4}, {1, 4}});
  CHECK(graph.topological_order() == std::vector<LayerId>{{2}, {3}, {0}, {1}, {4}});
}

TEST_CASE("a cycle is told in the order of its edges, and a graph without one has none") {
  const LayerGraph graph = graph_with(5, {{0, 1}, {1, 2}, {2, 3}, {3, 1}, {3, 4}});
  const std::vector<LayerId> cycle = graph.find_cycle();
  REQUIRE(cycle.size() == 3);
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const LayerEdge edge{cycle[i], cycle[(i + 1) % cycle.size()]};
    CHECK(std::find(graph.edges().begin(), graph.edges().end(), edge) != graph.edges().end());
  }
  CHECK(graph_with(3, {{0, 1}, {0, 2}, {1, 2}}).find_cycle().empty());
}

TEST_CASE("a repeated edge is kept once") {
  CHECK(graph_with(2, {{0, 1}, {0, 1}}).edges().size() == 1);
}

TEST_CASE("a group shares the steps of what is replicated, whoever says so how often") {
  LayerGraph graph = LayerGraph::chain({{"a", "", {100}, {50}}, {"b", "", {100}}});
  CHECK(graph.layer({0}).stepped() == Bytes{100});
  for (const std::int64_t devices : {4, 4, 7, 1, 50, 1000}) {
    CAPTURE(devices);
    graph.share_steps(devices);
    // The largest share of 50 B.
    CHECK(graph.layer({0}).stepped() == Bytes{50 + (50 + devices - 1) / devices});
    CHECK(graph.layer({1}).stepped() == Bytes{100});
  }
}

TEST_CASE("reaches agrees with a transitive closure on random graphs") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    test::Dice dice(seed);
    LayerGraph graph = graph_with(8, {});
    bool closure[8][8] = {};
    for (int i = 0; i < 8; ++i) closure[i][i] = true;
    for (int e = 0; e < 9; ++e) {
      const auto from = static_cast<std::uint32_t>(dice.roll(0, 7));
      const auto to = static_cast<std::uint32_t>(dice.roll(0, 7));
      if (from == to) continue;
      graph.add_edges({{{from}, {to}}});
      closure[from][to] = true;
    }
    for (int k = 0; k < 8; ++k) {
      for (int i = 0; i < 8; ++i) {
        for (int j = 0; j < 8; ++j)
          closure[i][j] = closure[i][j] || (closure[i][k] && closure[k][j]);
      }
    }
    bool has_cycle = false;
    for (std::uint32_t i = 0; i < 8; ++i) {
      for (std::uint32_t j = 0; j < 8; ++j) {
        CHECK(graph.reaches({i}, {j}) == closure[i][j]);
        has_cycle = has_cycle || (i != j && closure[i][j] && closure[j][i]);
      }
    }
    CHECK(graph.find_cycle().empty() == !has_cycle);
  }
}

}  // namespace
}  // namespace plumbline
