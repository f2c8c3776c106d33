// Levers evaluated on longest paths, 16 at a time: the ends that are timed, and their derivatives.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/compiled_graph.h"
#include "sim/prediction/iteration_clock.h"
#include "sim/whatif/dual_time.h"
#include "sim/whatif/levers.h"

namespace plumbline {

/// What one evaluation tells at a point x of an end: when it is, and by how much later as x goes
/// down from there (or earlier as x goes up), both in nanoseconds.
struct TimedEnd {
  double length = 0;
  double slope = 0;
};

/// The ends between which the clock times: each is a convex function of x, being the longest of
/// many paths; what lies between them need not be.
struct TimedEnds {
  TimedEnd first;  ///< The begin of the run, which nothing moves, or that of the steady state.
  TimedEnd last;

  TimedEnd between() const { return {last.length - first.length, last.slope - first.slope}; }
};

/// A graph with the places of its times in a table.
struct IndexedGraph {
  OpGraph graph;
  CostIndex index;
};

/// What lies on any longest path. What is infinitely little shorter moves its end as it moves that
/// of the whole: whatever a node on a longest path had to wait for to the end lies on one too.
IndexedGraph critical_part(const Outcome& outcome, const CostIndex& index);

/// Evaluates sensitivities at points, 16 at a time.
class LeverEvaluator {
 public:
  LeverEvaluator(const OpGraph& graph, const CostIndex& index, const IterationClock& clock);

  /// `levers[i]` made shorter by the share `x[i]`, for each i; at most 16 of them.
  std::vector<TimedEnds> at(const std::vector<const Lever*>& levers, const std::vector<double>& x,
                            DualSide side);

  /// How much of an op's part of a slope the steps may miss.
  double missed_by_steps(const Lever& lever) const;

 private:
  static std::int64_t steps_in(std::int64_t weight, double step);

  /// Weights are counted in steps of the unit, which keeps their ratio; in longer ones where those
  /// on one path could add up to more than what times are multiplied by. No path has more than its
  /// end holds, nor more than all nodes together.
  double step_of(const Lever& lever) const;

  TimedEnd read(std::int64_t packed, DualSide side, double per_step) const;

  const IterationClock& clock_;
  CompiledGraph compiled_;
  CompiledGraph::Tables plain_;
  CompiledGraph::Workspace workspace_;
  std::vector<std::int64_t> rows_;
  std::int64_t end_ = 1;
  DualScale scale_{1};
  std::vector<std::uint32_t> holds_;  ///< How many nodes have each entry.
  std::vector<std::uint32_t> latencies_;
};

}  // namespace plumbline
