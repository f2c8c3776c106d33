// The passes from a setup to a prediction.
//
// SPDX-License-Identifier: MIT
#include "sim/prediction/predict_setup.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/engine/simulate.h"
#include "sim/graph/lower.h"
#include "sim/prediction/uncertainty.h"

namespace plumbline {
namespace {

/// Whether the work of other devices makes transfers longer.
bool has_busy_links(const TrainingSetup& setup) {
  const auto& own = setup.rules.blocking_link;
  const std::vector<DeviceRun>& runs = setup.cluster.runs;
  return !setup.cluster.levels.front().link.busy.empty() || (own && !own->busy.empty()) ||
         std::any_of(runs.begin(), runs.end(),
                     [](const DeviceRun& run) { return run.link && !run.link->busy.empty(); });
}

/// Whether all pairs of devices are linked alike.
bool has_one_link(const Cluster& cluster) {
  return cluster.levels.size() == 1 && !cluster.has_own_links();
}

/// Whether the first copy can stand for all. Runs in which copies differ by noise or neighbours are
/// simulated whole.
bool one_tells_all(const TrainingSetup& setup) {
  return setup.copies() > 1 && !setup.whole_model() && !setup.noise &&
         setup.costs.slowdowns.empty() && setup.costs.updates_at_once.empty() &&
         !has_busy_links(setup) &&
         ((setup.costs.tied.empty() && !setup.cluster.overlap_slowdown.any()) ||
          has_one_link(setup.cluster)) &&
         !(setup.costs.lengths && setup.costs.lengths->differs_by_copy()) &&
         copies_are_alike(setup.schedule.shape, setup.devices, setup.cluster, setup.rules);
}

/// Adds a note on how much longer transfers take, over all of them, because others compute.
void add_transfers_note(Outcome& outcome) {
  double at_rest = 0;
  double taken = 0;
  for (std::uint32_t node = 0; node < outcome.graph.size(); ++node) {
    if (outcome.graph.cost(node).beside_work == 0) continue;
    const Span& span = outcome.trace.spans[node];
    at_rest += seconds(outcome.graph.cost(node).hold + outcome.graph.cost(node).latency);
    taken += seconds(span.end - span.begin);
  }
  if (at_rest <= 0 || taken / at_rest < 1.005) return;
  outcome.setup.notes.push_back(
      fmt::format("transfers take {:.2f} times as long as at rest, because other devices compute",
                  taken / at_rest));
}

/// Adds a note where checkpoints cost nothing because a bandwidth has no bytes to move.
void add_checkpoint_note(Outcome& outcome) {
  const auto& goodput = outcome.setup.rates.goodput;
  if (!goodput || outcome.checkpoint_bytes().count > 0) return;
  for (const CheckpointCost& cost : {goodput->pause, goodput->write}) {
    if (!std::holds_alternative<BytesPerSecond>(cost)) continue;
    outcome.setup.notes.emplace_back(
        "checkpoints take no time: they have a bandwidth, but the model has no parameters; give "
        "goodput.checkpoint.pause and write as times");
    return;
  }
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
  add_transfers_note(*outcome);
  add_checkpoint_note(*outcome);

  // Sample runs with noise.
  if (outcome->setup.noise)
    outcome->uncertainty = sample_uncertainty(*outcome->setup.noise, *outcome);
  return outcome;
}

}  // namespace plumbline
