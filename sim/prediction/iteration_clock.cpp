// Finding the nodes that bound the steady state.
//
// SPDX-License-Identifier: MIT
#include "sim/prediction/iteration_clock.h"

#include <algorithm>

#include "sim/engine/period.h"

namespace plumbline {
namespace {

/// The node that ends the backward of micro-batch `m` on stage 0.
std::uint32_t end_of(const OpGraph& graph, std::uint32_t m) {
  std::uint32_t found = 0;
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const Activity& activity = graph.activities[node];
    const bool ends =
        activity.kind == ActivityKind::backward || activity.kind == ActivityKind::backward_weight;
    if (ends && activity.stage.value == 0 && activity.micro_batch.value == m) found = node;
  }
  return found;
}

}  // namespace

IterationClock::IterationClock(const Outcome& outcome) : timed_(outcome.setup.rules.mini_batches) {
  const auto& steady = outcome.metrics.steady;
  if (!steady) return;
  watched_ = {end_of(outcome.graph, steady->first), end_of(outcome.graph, steady->last)};
  micro_batches_ = outcome.setup.micro_batches;
  timed_ = steady->last - steady->first;
}

std::int64_t IterationClock::length(const OpGraph& graph, const Trace& trace) const {
  if (!watched_.empty())
    return (trace.spans[watched_[1]].end - trace.spans[watched_[0]].end).count();
  if (!graph.flushes) return shortest_period(graph, trace).count();
  SimTime end;
  for (const Span& span : trace.spans) end = std::max(end, span.end);
  return end.time_since_epoch().count();
}

double IterationClock::iteration_time_s(double length) const {
  // This order of the factors gives the same result as TrainingSetup::iteration_time_of, to the
  // last bit.
  return length / 1e9 / timed_ * micro_batches_;
}

}  // namespace plumbline
