// Simulations on all cores.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/lever_trials.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/parallel.h"
#include "sim/engine/simulate.h"

namespace plumbline {
namespace {

/// Simulations of a graph with a lever made shorter.
class LeverTrials {
 public:
  LeverTrials(const Outcome& outcome, const CostIndex& index)
      : index_(index), clock_(outcome), graph_(outcome.graph) {
    // A class of cost for each node, so that a link can be changed by itself.
    graph_.costs.clear();
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      graph_.costs.push_back(outcome.graph.cost(node));
      graph_.nodes[node].cost = node;
    }
    costs_ = graph_.costs;
    before_ = static_cast<double>(clock_.length(outcome.graph, outcome.trace));
  }

  const IterationClock& clock() const { return clock_; }

  /// The time that the run saves if the lever is made shorter by this share.
  double saved(const Lever& lever, double share) {
    graph_.costs = costs_;
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      Cost& cost = graph_.costs[node];
      for (const LeverPart& part : lever.parts) {
        if ((part.is_latency ? index_.latency : index_.hold)[node] != part.entry) continue;
        const Duration less(std::llround(share * static_cast<double>(part.weight)));
        if (part.is_latency) {
          cost.latency -= less;
        } else {
          cost.hold -= less;
          if (lever.sensitivity.kind == SensitivityKind::latency) cost.lead -= less;
        }
        if (lever.sensitivity.kind == SensitivityKind::bandwidth)
          cost.bytes = {std::llround((1 - share) * static_cast<double>(cost.bytes.count))};
      }
    }
    return before_ - static_cast<double>(clock_.length(graph_, simulate(graph_)));
  }

 private:
  const CostIndex& index_;
  IterationClock clock_;
  OpGraph graph_;
  std::vector<Cost> costs_;
  double before_ = 0;
};

}  // namespace

void try_each(const Outcome& outcome, const CostIndex& index, const std::vector<Lever*>& levers,
              const std::vector<double>& shares) {
  constexpr std::size_t max_nodes = 20'000'000;
  const std::size_t room = max_nodes / std::max<std::size_t>(outcome.graph.size(), 1);
  const auto jobs = static_cast<unsigned>(
      std::clamp<std::size_t>(std::min(room, levers.size()), 1, available_cores()));
  const std::atomic<bool> never{false};
  for_each_parallel(jobs, jobs, never, [&](std::uint64_t job) {
    LeverTrials trials(outcome, index);
    for (std::size_t i = job; i < levers.size(); i += jobs) {
      double products = 0;
      double squares = 0;
      for (const double share : shares) {
        products += share * trials.saved(*levers[i], share);
        squares += share * share;
      }
      settle(levers[i]->sensitivity, products / squares, trials.clock());
    }
  });
}

}  // namespace plumbline
