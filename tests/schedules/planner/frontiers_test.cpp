// The cuts that the planner searches.
//
// SPDX-License-Identifier: MIT
#include "schedules/planner/frontiers.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "schedules/planner/planner.h"
#include "tests/schedules/planner/small_model.h"

namespace plumbline::test {
namespace {

/// `width` branches of `length` layers between a first and a last one.
Small branches(std::uint32_t width, std::uint32_t length) {
  Small model;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  model.add(10, 20, 100, 10);
  const std::uint32_t last = width * length + 1;
  for (std::uint32_t b = 0; b < width; ++b) {
    for (std::uint32_t i = 0; i < length; ++i) {
      const std::uint32_t layer = 1 + b * length + i;
      model.add(10, 20, 100, 10);
      edges.emplace_back(i == 0 ? 0 : layer - 1, layer);
    }
    edges.emplace_back(1 + b * length + length - 1, last);
  }
  model.add(10, 20, 100, 10);
  model.connect(edges);
  return model;
}

TEST_CASE("above 20,000 frontiers the cuts are those of one order, and the plan says so") {
  const Small few = branches(3, 4);
  // Nothing, the first, (4 + 1)^3 states of the branches less their start, the last.
  CHECK(all_frontiers(few.graph, few.costs, {}).size() == 125 + 2);
  const Small many = branches(5, 7);
  const Frontiers frontiers = all_frontiers(many.graph, many.costs, {});
  CHECK(frontiers.restricted);
  CHECK(frontiers.totally_ordered);
  CHECK(frontiers.size() == many.graph.size() + 1);
  const Cluster cluster = flat_cluster(4, {Duration{}, BytesPerSecond{1'000'000'000'000}});
  const PlannerInput input{.graph = many.graph, .costs = many.costs, .cluster = cluster};
  const auto plans = plan(input);
  REQUIRE(plans);
  CHECK(plans->restricted);
  check_sound(input, plans->best[0]);
}

TEST_CASE("free layers go with their producers: such cuts cannot pay") {
  Small model;  // 0 -> view 1 -> 2, and a free layer that makes more than it takes
  model.add(10, 10, 100, 0);
  model.add(0, 0, 100, 0);
  model.add(10, 10, 100, 0);
  model.add(0, 0, 300, 0);
  model.add(10, 10, 100, 0);
  model.connect({{0, 1}, {1, 2}, {2, 3}, {3, 4}});
  const Frontiers frontiers = all_frontiers(model.graph, model.costs, {});
  CHECK(frontiers.size() == 5);  // nothing, 0-1, -2, -3, all
}

}  // namespace
}  // namespace plumbline::test
