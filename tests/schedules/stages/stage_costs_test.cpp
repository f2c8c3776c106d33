// Stage sums and the tensors that cross a cut.
//
// SPDX-License-Identifier: MIT
#include "schedules/stages/stage_costs.h"

#include <doctest/doctest.h>

#include "tests/support/text_source.h"

namespace plumbline {
namespace {

TEST_CASE("a tensor crosses every cut between its producer and its last consumer, once each") {
  // 0 -> 1 -> 2 -> 3, and a skip connection 0 -> 3 and 0 -> 2.
  LayerGraph graph =
      LayerGraph::chain({{"a", "", {1}}, {"b", "", {2}}, {"c", "", {4}}, {"d", "", {8}}});
  graph.add_edges({{{0}, {3}}, {{0}, {2}}});
  std::vector<LayerCosts> costs(4);
  for (std::size_t i = 0; i < 4; ++i) {
    costs[i].output = {static_cast<std::int64_t>(10 << i)};
    costs[i].forward.mean = Duration{1 << i};
    costs[i].backward.mean = Duration{2 << i};
  }
  costs[1].split = SplitBackward{{Duration{1}, {}, {}, {}, {}}, {Duration{3}, {}, {}, {}, {}}};
  const Partition partition =
      make_partition(graph.topological_order(), {1, 1, 2}, {{{0}}, {{1}}, {{2}}});
  const StageCosts sums = stage_costs(graph, costs, partition);
  CHECK(sums.cut_bytes(0) == Bytes{10});
  CHECK(sums.cut_bytes(1) == Bytes{10 + 20});
  CHECK(sums.cut_bytes(2) == Bytes{0});
  CHECK(sums.crossing_made_in(1, 1) == Bytes{20});
  CHECK(sums.crossing_made_in(0, 1) == Bytes{30});
  CHECK(sums.stages[2].forward == Duration{4 + 8});
  CHECK(sums.stages[2].parameters == Bytes{12});
  CHECK(sums.stages[1].backward_weight == Duration{3});
  CHECK(sums.stages[2].backward_input == sums.stages[2].backward);
}

}  // namespace
}  // namespace plumbline
