// Sums over rows of bits.
//
// SPDX-License-Identifier: MIT
#include "schedules/planner/frontier_sums.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "schedules/planner/executed_sets.h"

namespace plumbline {

FrontierSums frontier_sums(const LayerGraph& graph, const std::vector<LayerCosts>& costs,
                           const Frontiers& frontiers) {
  const LayerPositions positions = positions_of(graph, costs);
  FrontierSums sums;
  for (std::uint32_t s = 0; s < frontiers.size(); ++s) {
    const std::uint64_t* const row = frontiers.row(s);
    Duration forward{}, backward{}, again{}, update{}, update_before{};
    Bytes parameters, stepped, reduced, activation, cut_bytes;
    for (std::uint32_t i = 0; i < positions.size(); ++i) {
      if (!has_bit(row, i)) continue;
      const LayerCosts& cost = costs[positions.order[i].value];
      forward += cost.forward.mean;
      backward += cost.backward.mean;
      again += cost.again().mean;
      update += cost.update.mean;
      if (graph.layer(positions.order[i]).reduced_elsewhere.count > 0)
        update_before += cost.update_in_group();
      parameters += graph.layer(positions.order[i]).parameters;
      stepped += graph.layer(positions.order[i]).stepped();
      reduced += graph.layer(positions.order[i]).reduced();
      activation += cost.activation;
      const auto& consumers = positions.consumers[i];
      if (std::any_of(consumers.begin(), consumers.end(),
                      [&](std::uint32_t c) { return !has_bit(row, c); })) {
        cut_bytes += cost.output;
      }
    }
    sums.forward.push_back(forward);
    sums.backward.push_back(backward);
    sums.again.push_back(again);
    sums.update.push_back(update);
    sums.update_before.push_back(update_before);
    sums.parameters.push_back(parameters);
    sums.stepped.push_back(stepped);
    sums.reduced.push_back(reduced);
    sums.activation.push_back(activation);
    sums.cut_bytes.push_back(cut_bytes);
  }
  return sums;
}

FrontierCheckpoints::FrontierCheckpoints(const LayerGraph& graph,
                                         const std::vector<LayerCosts>& costs) {
  LayerPositions positions = positions_of(graph, costs);
  costs_.reserve(costs.size());
  for (const LayerId layer : positions.order) costs_.push_back(costs[layer.value]);
  consumers_ = std::move(positions.consumers);
}

Checkpoints FrontierCheckpoints::between(const Frontiers& frontiers, std::uint32_t first,
                                         std::uint32_t last) const {
  Checkpoints sum;
  const std::uint64_t* const before = frontiers.row(first);
  const std::uint64_t* const after = frontiers.row(last);
  for (std::uint32_t w = 0; w < frontiers.words; ++w) {
    for (std::uint64_t layers = after[w] & ~before[w]; layers != 0; layers &= layers - 1) {
      const auto i = w * 64 + static_cast<std::uint32_t>(std::countr_zero(layers));
      sum.add(costs_[i], std::any_of(consumers_[i].begin(), consumers_[i].end(),
                                     [&](std::uint32_t c) { return frontiers.holds(last, c); }));
    }
  }
  return sum;
}

}  // namespace plumbline
