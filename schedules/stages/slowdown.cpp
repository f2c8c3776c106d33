// Sums over layers, each slowed by the factors of its kind.
//
// SPDX-License-Identifier: MIT
#include "schedules/stages/slowdown.h"

#include <algorithm>
#include <cmath>

namespace plumbline {
namespace {

const std::vector<double>* factors_of(const KindFactors& factors, const Layer& layer) {
  const auto found = factors.find(layer.kind);
  return found == factors.end() || found->second.empty() ? nullptr : &found->second;
}

}  // namespace

std::vector<StageSlowdown> stage_slowdowns(const LayerGraph& graph,
                                           const std::vector<LayerCosts>& costs,
                                           const Partition& partition,
                                           const std::vector<KindFactors>& factors,
                                           const KindFactors& slowdown) {
  std::size_t longest = 1;
  bool any = false;
  for (std::size_t s = 0; s < partition.stages.size(); ++s) {
    for (const LayerId id : partition.stages[s].layers) {
      for (const KindFactors* of : {&factors[s], &slowdown}) {
        const auto* const own = factors_of(*of, graph.layer(id));
        if (!own) continue;
        longest = std::max(longest, own->size());
        any = any || std::any_of(own->begin(), own->end(), [](double f) { return f != 1; });
      }
    }
  }
  std::vector<StageSlowdown> result;
  if (!any) return result;
  result.reserve(partition.stages.size());
  for (std::size_t s = 0; s < partition.stages.size(); ++s) {
    StageSlowdown sum;
    for (auto* list : {&sum.forward, &sum.backward, &sum.backward_input, &sum.backward_weight,
                       &sum.again, &sum.update})
      list->assign(longest, 0.0);
    for (const LayerId id : partition.stages[s].layers) {
      const auto* const own = factors_of(factors[s], graph.layer(id));
      const auto* const of_updates = factors_of(slowdown, graph.layer(id));
      const LayerCosts& cost = costs[id.value];
      for (std::size_t k = 0; k < longest; ++k) {
        const auto slowed = [&](const MeasuredTime& time, const std::vector<double>* list) {
          const double factor = list ? (*list)[std::min(k, list->size() - 1)] : 1;
          return factor * static_cast<double>(time.mean.count());
        };
        sum.forward[k] += slowed(cost.forward, own);
        sum.backward[k] += slowed(cost.backward, own);
        sum.backward_input[k] += slowed(cost.split ? cost.split->input : cost.backward, own);
        if (cost.split) sum.backward_weight[k] += slowed(cost.split->weight, own);
        sum.again[k] += slowed(cost.again(), own);
        sum.update[k] += slowed(cost.update, of_updates);
      }
    }
    result.push_back(std::move(sum));
  }
  return result;
}

void run_alone(const LayerGraph& graph, const KindFactors& factors,
               std::vector<LayerCosts>& costs) {
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    const auto* const own = factors_of(factors, graph.layer({i}));
    if (!own || own->front() == 1) continue;
    const auto scale = [&](MeasuredTime& time) {
      constexpr double max = 4e18;  // ns; 64 bits hold 9.2e18
      const double alone = own->front() * static_cast<double>(time.mean.count());
      time.mean = Duration{std::llround(std::min(alone, max))};
    };
    scale(costs[i].forward);
    scale(costs[i].backward);
    if (costs[i].split) {
      scale(costs[i].split->input);
      scale(costs[i].split->weight);
    }
    if (costs[i].selective) scale(costs[i].selective->forward);
    scale(costs[i].update);
  }
}

}  // namespace plumbline
