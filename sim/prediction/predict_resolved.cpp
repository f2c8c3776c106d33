// The passes from a scenario to a prediction.
//
// SPDX-License-Identifier: MIT
#include "sim/prediction/predict_resolved.h"

#include "sim/engine/simulate.h"
#include "sim/graph/lower.h"
#include "sim/prediction/uncertainty.h"

namespace plumbline {

Result<OpGraph> lower_pipeline(const Scenario& scenario, const Pipeline& pipeline,
                               bool first_copy_only) {
  const ScheduleChoice& choice = scenario.schedule;
  return lower(pipeline.schedule, pipeline.costs, pipeline.devices, pipeline.cluster,
               {.mini_batches = pipeline.mini_batches,
                .blocking = choice.blocking,
                .blocking_link = scenario.blocking_link,
                .recompute = choice.recompute.kind,
                .copies = pipeline.copies,
                .first_copy_only = first_copy_only,
                .hierarchical = choice.whole_model(),
                .sharded = scenario.sharded,
                .gather_ahead = scenario.gather_ahead,
                .group_on_network = scenario.model.profile.group.spans_servers(),
                .updates = choice.updates,
                .weight_versions = pipeline.versions_kept(),
                .slice_work = choice.slices.work,
                .overheads = scenario.overheads},
               choice.micro_batches_mark);
}

namespace {

/// Whether the first copy tells what all do. Runs that noise or neighbours part are simulated
/// whole.
bool one_tells_all(const Scenario& scenario, const Pipeline& pipeline) {
  return pipeline.copies > 1 && !scenario.schedule.whole_model() && !scenario.noise &&
         pipeline.costs.slowdowns.empty() && pipeline.costs.updates_at_once.empty() &&
         copies_are_alike(pipeline.schedule.shape, pipeline.devices, pipeline.cluster,
                          pipeline.copies);
}

Trace evaluate(const OpGraph& graph, Evaluation evaluation) {
  const bool by_events = evaluation == Evaluation::events || graph.rates_change();
  return by_events ? simulate(graph) : longest_path(graph);
}

}  // namespace

Result<Outcome> predict_resolved(const Scenario& scenario, Evaluation evaluation,
                                 const Partition* as) {
  // Partition, stage costs and schedule.
  auto pipeline = plan_pipeline(scenario, /*for_run=*/true, as);
  if (!pipeline) return pipeline.problems();

  // Lower it. From here on the order is fixed.
  auto graph = lower_pipeline(
      scenario, *pipeline, evaluation == Evaluation::fastest && one_tells_all(scenario, *pipeline));
  if (!graph) return graph.problems();

  // Simulate.
  Trace trace = evaluate(*graph, evaluation);

  // Read off what it means.
  auto outcome = assess(scenario, *std::move(pipeline), *std::move(graph), std::move(trace));
  if (!outcome) return outcome;

  // Sample what noise does to it.
  return with_uncertainty(scenario, *std::move(outcome));
}

}  // namespace plumbline
