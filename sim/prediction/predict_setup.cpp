// The passes from a setup to a prediction.
//
// SPDX-License-Identifier: MIT
#include "sim/prediction/predict_setup.h"

#include "sim/engine/simulate.h"
#include "sim/graph/lower.h"
#include "sim/prediction/uncertainty.h"

namespace plumbline {
namespace {

/// Whether the first copy can stand for all. Runs in which copies differ by noise or neighbours are
/// simulated whole.
bool one_tells_all(const TrainingSetup& setup) {
  return setup.copies() > 1 && !setup.whole_model() && !setup.noise &&
         setup.costs.slowdowns.empty() && setup.costs.updates_at_once.empty() &&
         copies_are_alike(setup.schedule.shape, setup.devices, setup.cluster, setup.copies());
}

Trace evaluate(const OpGraph& graph, Evaluation evaluation) {
  const bool by_events = evaluation == Evaluation::events || graph.rates_change();
  return by_events ? simulate(graph) : longest_path(graph);
}

}  // namespace

Result<Outcome> predict(TrainingSetup setup, Evaluation evaluation) {
  // Lower it. From here on the order is fixed.
  auto graph = lower(setup, evaluation == Evaluation::fastest && one_tells_all(setup));
  if (!graph) return graph.problems();

  // Simulate.
  Trace trace = evaluate(*graph, evaluation);

  // Compute the outcome.
  auto outcome = assess(std::move(setup), *std::move(graph), std::move(trace));
  if (!outcome) return outcome;

  // Sample runs with noise.
  if (outcome->setup.noise)
    outcome->uncertainty = sample_uncertainty(*outcome->setup.noise, *outcome);
  return outcome;
}

}  // namespace plumbline
