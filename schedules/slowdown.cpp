// Sums of layers, each at the pace of its kind. SPDX-License-Identifier: MIT
#include "schedules/slowdown.h"

#include <algorithm>
#include <cmath>

namespace plumbline {
namespace {

using Factors = std::map<std::string, std::vector<double>>;

const std::vector<double>* factors_of(const Factors& factors, const Layer& layer) {
  const auto found = factors.find(layer.kind);
  return found == factors.end() || found->second.empty() ? nullptr : &found->second;
}

}  // namespace

std::vector<StageSlowdown> stage_slowdowns(const LayerGraph& graph,
                                           const std::vector<LayerCosts>& costs,
                                           const Partition& partition, const Factors& factors) {
  std::size_t longest = 1;
  bool any = false;
  for (const Stage& stage : partition.stages) {
    for (const LayerId id : stage.layers) {
      const auto* const own = factors_of(factors, graph.layer(id));
      if (!own) continue;
      longest = std::max(longest, own->size());
      any = any || std::any_of(own->begin(), own->end(), [](double f) { return f != 1; });
    }
  }
  std::vector<StageSlowdown> result;
  if (!any) return result;
  result.reserve(partition.stages.size());
  for (const Stage& stage : partition.stages) {
    StageSlowdown sum;
    for (auto* list :
         {&sum.forward, &sum.backward, &sum.backward_input, &sum.backward_weight, &sum.update})
      list->assign(longest, 0.0);
    for (const LayerId id : stage.layers) {
      const auto* const own = factors_of(factors, graph.layer(id));
      const LayerCosts& cost = costs[id.value];
      for (std::size_t k = 0; k < longest; ++k) {
        const double factor = own ? (*own)[std::min(k, own->size() - 1)] : 1;
        const auto slowed = [&](const MeasuredTime& time) {
          return factor * static_cast<double>(time.mean.count());
        };
        sum.forward[k] += slowed(cost.forward);
        sum.backward[k] += slowed(cost.backward);
        sum.backward_input[k] += slowed(cost.split ? cost.split->input : cost.backward);
        if (cost.split) sum.backward_weight[k] += slowed(cost.split->weight);
        sum.update[k] += slowed(cost.update);
      }
    }
    result.push_back(std::move(sum));
  }
  return result;
}

void run_alone(const LayerGraph& graph, const Factors& factors, std::vector<LayerCosts>& costs) {
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    const auto* const own = factors_of(factors, graph.layer({i}));
    if (!own || own->front() == 1) continue;
    const auto scale = [&](MeasuredTime& time) {
      constexpr double most = 4e18;  // ns; 64 bits hold 9.2e18
      const double alone = own->front() * static_cast<double>(time.mean.count());
      time.mean = Duration{std::llround(std::min(alone, most))};
    };
    scale(costs[i].forward);
    scale(costs[i].backward);
    if (costs[i].split) {
      scale(costs[i].split->input);
      scale(costs[i].split->weight);
    }
    scale(costs[i].update);
  }
}

}  // namespace plumbline
