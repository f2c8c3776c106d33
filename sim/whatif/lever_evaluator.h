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

/// The result of one evaluation for an end, at a point x, in nanoseconds. `length` is its time.
/// `slope` is how much later it gets per unit as x goes down from there (or earlier as x goes up).
struct TimedEnd {
  double length = 0;
  double slope = 0;
};

/// The two ends between which the clock measures. Each is the longest of many paths, and so a
/// convex function of x. The time between them need not be convex.
struct TimedEnds {
  TimedEnd first;  ///< The begin of the run, which nothing moves, or that of the steady state.
  TimedEnd last;

  TimedEnd between() const { return {last.length - first.length, last.slope - first.slope}; }
};

/// A graph, and the table entries of its times.
struct IndexedGraph {
  OpGraph graph;
  CostIndex index;
};

/// The part of a graph that lies on some longest path. An infinitely small step moves its end as it
/// moves that of the whole graph. The reason: where a node on a longest path begins when another
/// one ends, that one lies on a longest path, too.
IndexedGraph critical_part(const Outcome& outcome, const CostIndex& index);

/// Evaluates sensitivities at points, 16 at a time.
class LeverEvaluator {
 public:
  LeverEvaluator(const OpGraph& graph, const CostIndex& index, const IterationClock& clock);

  /// The ends with `levers[i]` made shorter by the share `x[i]`, for each i; at most 16 of them.
  std::vector<TimedEnds> at(const std::vector<const Lever*>& levers, const std::vector<double>& x,
                            DualSide side);

  /// The largest part of an op's share of a slope that whole steps may miss.
  double missed_by_steps(const Lever& lever) const;

 private:
  static std::int64_t steps_in(std::int64_t weight, double step);

  /// The length of the steps in which a lever's weights are counted. It is the unit, which keeps
  /// the ratio of the weights. It is longer if the steps on one path could add up to more than the
  /// scale of times. A path has no more weight than the time of its end, nor than all nodes
  /// together.
  double step_of(const Lever& lever) const;

  TimedEnd read(std::int64_t packed, DualSide side, double per_step) const;

  const IterationClock& clock_;
  CompiledGraph compiled_;
  CompiledGraph::Tables plain_;
  CompiledGraph::Workspace workspace_;
  std::vector<std::int64_t> rows_;
  std::int64_t end_ = 1;
  DualScale scale_{1};
  std::vector<std::uint32_t> holds_;  ///< The number of nodes that have each entry.
  std::vector<std::uint32_t> latencies_;
};

}  // namespace plumbline
