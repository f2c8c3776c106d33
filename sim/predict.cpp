// The passes from a scenario to a prediction.
// SPDX-License-Identifier: MIT
#include "sim/predict.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/quantity.h"
#include "schedules/lower.h"
#include "sim/simulate.h"

namespace plumbline {
namespace {

/// The closed form for this run, where its conditions hold: overlapped transfers without bandwidth,
/// nothing but F and B that takes time, one mini-batch like the other.
std::optional<ClosedForm> formula_of(const Scenario& scenario, const Pipeline& pipeline,
                                     const OpGraph& graph) {
  if (graph.blocking || graph.asynchronous() || scenario.overheads.per_iteration.count() > 0)
    return std::nullopt;
  const PipelineShape& shape = pipeline.schedule.shape;
  if (!scenario.schedule.rule || scenario.schedule.whole_model()) return std::nullopt;
  if (pipeline.windows != windows(*scenario.schedule.rule, shape, std::nullopt))
    return std::nullopt;
  if (shape.slots != shape.positions.size()) return std::nullopt;  // replicas
  PipelineTimes times;
  times.micro_batches = pipeline.schedule.shape.micro_batches;
  constexpr std::size_t kinds = 5;  // the cost classes of a stage, as lowering lays them out
  for (const Position& position : pipeline.schedule.shape.positions) {
    Duration forward{}, backward{};
    for (std::uint32_t i = 0; i < position.stages; ++i) {
      const Cost* const stage = &graph.costs[(position.first_stage + i) * kinds];
      forward += stage[0].hold;
      backward += stage[1].hold;
      if (stage[4].hold.count() > 0) return std::nullopt;
    }
    times.forward.push_back(forward);
    times.backward.push_back(backward);
  }
  std::vector<std::optional<Duration>> latency(shape.stages());  // of the boundary above a stage
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    const Activity& activity = graph.activities[i];
    const Cost& cost = graph.cost(i);
    if (activity.kind == ActivityKind::all_reduce && (cost.hold + cost.latency).count() > 0)
      return std::nullopt;
    if (!is_transfer(activity.kind)) continue;
    if (cost.hold.count() > 0) return std::nullopt;
    auto& known = latency[activity.stage.value -
                          (activity.kind == ActivityKind::activation_transfer ? 1 : 0)];
    if (known.value_or(cost.latency) != cost.latency) return std::nullopt;
    known = cost.latency;
  }
  for (std::size_t i = 0; i + 1 < shape.positions.size(); ++i) {
    const Position& position = shape.positions[i];
    times.latency.push_back(*latency[position.first_stage + position.stages - 1]);
  }
  return closed_form(scenario.schedule.rule->name, times);
}

std::vector<std::uint32_t> kept_versions(const std::vector<StageVersions>& stages) {
  std::vector<std::uint32_t> kept;
  kept.reserve(stages.size());
  for (const StageVersions& stage : stages) kept.push_back(stage.kept);
  return kept;
}

Duration longest_end(const Trace& trace) {
  SimTime end;
  for (const Span& span : trace.spans) end = std::max(end, span.end);
  return end.time_since_epoch();
}

/// What a reader of the steady period should know of it.
void add_steady_notes(Prediction& prediction) {
  const auto& steady = prediction.metrics.steady;
  if (!steady) return;
  const auto& weights = prediction.pipeline.weights;
  const auto differs =
      std::count_if(weights.begin(), weights.end(), [](const StageVersions& stage) {
        return std::any_of(stage.uses.begin(), stage.uses.end(),
                           [](const VersionUse& use) { return use.forward != use.backward; });
      });
  if (differs > 0) {
    prediction.pipeline.notes.push_back(fmt::format(
        "forward and backward see different weights on {} of {} stages: their gradients "
        "belong to no version (schedule.weights: none)",
        differs, weights.size()));
  }
  if (!steady->settled) {
    prediction.pipeline.notes.emplace_back(
        "the period still changes at the end of the run: more schedule.mini_batches bring it "
        "closer to its limit");
  }
  if (steady->warm_up_limited) {
    prediction.pipeline.notes.push_back(
        fmt::format("warm-up limited: no device or link is busy for more than {} of each period, "
                    "so a deeper plan.warm_up could shorten it",
                    to_text(round_up(steady->bottleneck_s * 1e9))));
  }
}

}  // namespace

std::optional<bool> Prediction::fits(std::size_t slot) const {
  if (!memory_limit) return std::nullopt;
  return memory[slot].peak.sum() <= *memory_limit;
}

std::optional<bool> Prediction::fits() const {
  if (!memory_limit) return std::nullopt;
  for (std::size_t slot = 0; slot < memory.size(); ++slot) {
    if (!*fits(slot)) return false;
  }
  return true;
}

Result<OpGraph> lower_pipeline(const Scenario& scenario, const Pipeline& pipeline) {
  const ScheduleChoice& choice = scenario.schedule;
  return lower(pipeline.schedule, pipeline.costs, pipeline.devices, pipeline.cluster,
               {.mini_batches = pipeline.mini_batches,
                .blocking = choice.blocking,
                .recompute = choice.recompute,
                .copies = pipeline.copies,
                .hierarchical = choice.whole_model(),
                .updates = choice.updates,
                .overheads = scenario.overheads},
               choice.micro_batches_mark);
}

Result<Prediction> predict(const Scenario& scenario) {
  // Partition, stage costs and schedule.
  auto pipeline = plan_pipeline(scenario, /*for_run=*/true);
  if (!pipeline) return pipeline.problems();
  Prediction prediction;
  prediction.pipeline = *std::move(pipeline);
  const Pipeline& plan = prediction.pipeline;
  const MemoryRules memory_rules{scenario.optimizer_state, scenario.schedule.recompute,
                                 kept_versions(plan.weights)};
  if (most_memory(plan.costs, memory_rules, plan.schedule.shape.micro_batches) > 9e18) {
    return input_error(scenario.model_mark, "the model's sizes add up to more than 64 bits hold");
  }

  // Lower it. From here on the order is fixed.
  auto graph = lower_pipeline(scenario, plan);
  if (!graph) return graph.problems();
  prediction.graph = *std::move(graph);

  // Simulate.
  prediction.trace = simulate(prediction.graph);

  const double device_time = seconds(longest_end(prediction.trace)) * prediction.graph.slots();
  if (device_time > 4e9) {
    return input_error(
        scenario.schedule.micro_batches_mark,
        "the devices' times add up to more than 120 years, more than 64 bits of nanoseconds hold",
        "make the times or the number of micro-batches smaller");
  }

  // Read off what it means.
  prediction.metrics = measure(prediction.graph, prediction.trace, plan.steady_window);
  prediction.memory_rules = memory_rules;
  prediction.memory = measure_memory(prediction.graph, plan.costs, memory_rules,
                                     memory_steps(prediction.graph, prediction.trace, plan.costs,
                                                  plan.schedule.shape.positions, memory_rules));
  prediction.formula = formula_of(scenario, plan, prediction.graph);
  add_steady_notes(prediction);
  prediction.scenario = scenario.name;
  prediction.memory_limit = scenario.cluster.memory;
  prediction.micro_batches = scenario.schedule.micro_batches;
  prediction.mini_batches = scenario.schedule.mini_batches;
  prediction.micro_batch_size = scenario.micro_batch_size;
  prediction.iteration_time_s =
      prediction.metrics.steady
          ? prediction.metrics.steady->period_s * scenario.schedule.micro_batches
          : seconds(prediction.metrics.makespan) / plan.mini_batches;
  if (prediction.iteration_time_s > 0) {
    prediction.throughput_samples_per_s =
        plan.copies * static_cast<double>(prediction.micro_batches) *
        static_cast<double>(prediction.micro_batch_size) / prediction.iteration_time_s;
  }
  return prediction;
}

}  // namespace plumbline
