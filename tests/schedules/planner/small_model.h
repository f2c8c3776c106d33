// Small models to plan, and what every plan of one must be.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedules/planner/planner.h"
#include "tests/support/text_source.h"

namespace plumbline::test {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// A graph with costs, as one thing.
struct Small {
  LayerGraph graph;
  std::vector<LayerCosts> costs;

  void add(std::int64_t forward, std::int64_t backward, std::int64_t output,
           std::int64_t parameters, std::int64_t activation = 0, std::int64_t update = 0) {
    // All but what every third layer has is replicated; without share_steps() that says nothing.
    const Bytes replicated{graph.size() % 3 == 2 ? 0 : parameters};
    graph.add_layer({"l" + std::to_string(graph.size()), "", {parameters}, replicated});
    LayerCosts cost;
    cost.forward.mean = Duration{forward};
    cost.backward.mean = Duration{backward};
    cost.update.mean = Duration{update};
    cost.output = {output};
    cost.activation = {activation};
    costs.push_back(cost);
  }
  void connect(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges) {
    std::vector<LayerEdge> all;
    for (const auto& [from, to] : edges) all.push_back({{from}, {to}});
    graph.add_edges(all);
  }
};

/// A chain, or a graph with skips, branches and (unless one_source) several sources; some layers
/// cost nothing.
inline Small random_model(Dice& dice, std::uint32_t layers, bool chain, bool one_source) {
  Small model;
  for (std::uint32_t i = 0; i < layers; ++i) {
    const bool is_free = dice.roll(0, 3) == 0;
    model.add(is_free ? 0 : dice.roll(1, 9) * 10, is_free ? 0 : dice.roll(1, 9) * 20,
              dice.roll(0, 6) * 100, is_free ? 0 : dice.roll(0, 5) * 100,
              is_free ? 0 : dice.roll(0, 5) * 50, is_free ? 0 : dice.roll(0, 1) * 5);
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  for (std::uint32_t i = 1; i < layers; ++i) {
    if (chain) {
      edges.emplace_back(i - 1, i);
      continue;
    }
    if (one_source || dice.roll(0, 3) > 0) {
      edges.emplace_back(static_cast<std::uint32_t>(dice.roll(0, i - 1)), i);
    }
    if (dice.roll(0, 1) == 0)
      edges.emplace_back(static_cast<std::uint32_t>(dice.roll(0, i - 1)), i);
  }
  model.connect(edges);
  return model;
}

inline Cluster two_levels(std::uint32_t inner, std::int64_t inner_rate, std::uint32_t outer,
                          std::int64_t outer_rate, Duration latency = {}) {
  return {{{"server", inner, {latency, BytesPerSecond{inner_rate}}},
           {"cluster", outer, {latency * 3, BytesPerSecond{outer_rate}}}},
          std::nullopt};
}

/// All sets of layers that hold their producers, as masks, ascending.
inline std::vector<std::uint32_t> executed_sets(const LayerGraph& graph) {
  std::vector<std::uint32_t> sets;
  for (std::uint32_t set = 0; set < (1U << graph.size()); ++set) {
    bool closed = true;
    for (const LayerEdge& edge : graph.edges()) {
      closed = closed && ((set >> edge.to.value & 1U) == 0 || (set >> edge.from.value & 1U) != 0);
    }
    if (closed) sets.push_back(set);
  }
  return sets;
}

/// A plan is a partition of the model on devices of the cluster, each used once.
inline void check_sound(const PlannerInput& input, const PlanCandidate& plan) {
  std::vector<std::uint32_t> place(input.graph.size(), 0);
  for (std::uint32_t i = 0; i < plan.order.size(); ++i) place[plan.order[i].value] = i;
  REQUIRE(plan.order.size() == input.graph.size());
  for (const LayerEdge& edge : input.graph.edges())
    CHECK(place[edge.from.value] < place[edge.to.value]);
  std::vector<LayerId> runs;
  std::vector<bool> used(input.cluster.device_count(), false);
  REQUIRE(plan.devices.size() == plan.stages.size());
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    CHECK(!plan.stages[s].layers.empty());
    CHECK(plan.devices[s].size() == plan.stages[s].replicas);
    runs.insert(runs.end(), plan.stages[s].layers.begin(), plan.stages[s].layers.end());
    for (const DeviceId device : plan.devices[s]) {
      REQUIRE(device.value < used.size());
      CHECK(!used[device.value]);
      used[device.value] = true;
    }
    if (input.cluster.memory && input.cost_model == CostModel::calibrated)
      CHECK(plan.stages[s].peak_memory <= *input.cluster.memory);
  }
  CHECK(runs == plan.order);
}

}  // namespace plumbline::test
