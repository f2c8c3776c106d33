// Counting along the order; scaling layer by layer.
//
// SPDX-License-Identifier: MIT
#include "schedules/order/in_flight.h"

#include <algorithm>
#include <cmath>

namespace plumbline {
namespace {

double factor_of(const std::vector<double>& factors, std::uint32_t max) {
  return factors[std::min<std::size_t>(max, factors.size()) - 1];
}

}  // namespace

std::vector<std::uint32_t> max_in_flight(const Schedule& schedule) {
  const PipelineShape& shape = schedule.shape;
  std::vector<std::uint32_t> in_flight(shape.stages(), 1);
  // Replicas of a stage hold different micro-batches.
  std::vector<std::vector<std::int64_t>> now(shape.stages());
  for (std::uint32_t s = 0; s < shape.stages(); ++s) now[s].assign(shape.stage_slots[s].size(), 0);
  const auto held_by = [&](const Op& op) -> std::int64_t& {
    auto& of_stage = now[op.stage.value];
    return of_stage[op.micro_batch.value % of_stage.size()];
  };
  const auto let_go = [&](const Op& op) {
    if (op.kind == OpKind::backward || op.kind == OpKind::backward_weight) --held_by(op);
  };
  for (std::uint32_t i = 0; i < schedule.issue_order.size(); ++i) {
    const Op& op = schedule.issue_order[i];
    if (op.kind == OpKind::forward) {
      std::uint32_t& max_of_stage = in_flight[op.stage.value];
      max_of_stage = std::max(max_of_stage, static_cast<std::uint32_t>(++held_by(op)));
    }
    // A pair frees its micro-batch when both of its ops have ended.
    const std::uint32_t partner = schedule.partners.empty() ? i : schedule.partners[i];
    if (partner < i) let_go(schedule.issue_order[partner]);
    if (partner <= i) let_go(op);
  }
  return in_flight;
}

KindFactors factors_in_flight(const KindFactors& slowdown, const KindFactors& in_flight,
                              std::uint32_t max, std::uint32_t neighbours) {
  KindFactors all = slowdown;
  for (const auto& [kind, factors] : in_flight) {
    if (factors.empty() || factor_of(factors, max) == 1) continue;
    std::vector<double>& list = all[kind];
    if (list.size() <= neighbours) list.resize(neighbours + 1, list.empty() ? 1.0 : list.back());
    for (std::uint32_t k = 0; k < list.size(); ++k) {
      const double busy =
          neighbours == 0 ? 1 : static_cast<double>(std::min(k, neighbours)) / neighbours;
      list[k] *= 1 + busy * (factor_of(factors, max) - 1);
    }
  }
  return all;
}

void scale_in_flight(const LayerGraph& graph, const KindFactors& factors,
                     const Partition& partition, const std::vector<std::uint32_t>& max,
                     std::vector<LayerCosts>& costs) {
  for (std::size_t s = 0; s < partition.stages.size(); ++s) {
    for (const LayerId id : partition.stages[s].layers) {
      const auto found = factors.find(graph.layer(id).kind);
      if (found == factors.end() || found->second.empty()) continue;
      const double factor = factor_of(found->second, max[s]);
      const auto scale = [&](MeasuredTime& time) {
        constexpr double longest = 4e18;  // ns; 64 bits hold 9.2e18
        time.mean = Duration{
            std::llround(std::min(factor * static_cast<double>(time.mean.count()), longest))};
      };
      LayerCosts& cost = costs[id.value];
      scale(cost.forward);
      scale(cost.backward);
      if (cost.selective) scale(cost.selective->forward);
      if (!cost.split) continue;
      scale(cost.split->input);
      scale(cost.split->weight);
    }
  }
}

}  // namespace plumbline
