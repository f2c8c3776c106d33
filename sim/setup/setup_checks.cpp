// Errors of pipelines, each at the key that asks for too much.
//
// SPDX-License-Identifier: MIT
#include "sim/setup/setup_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sim/setup/buckets.h"
#include "sim/setup/resolve_setup.h"

namespace plumbline {

std::optional<Diagnostic> check_large_sums(const Scenario& scenario,
                                           const std::vector<LayerCosts>& layers) {
  constexpr double max = 1e18;
  const Mark& mark = scenario.model_mark;
  double time = 0;
  double bytes = 0;
  for (const LayerCosts& layer : layers) {
    time += static_cast<double>(layer.forward.mean.count()) +
            static_cast<double>(layer.backward.mean.count()) +
            static_cast<double>(layer.update.mean.count());
    if (layer.split)
      time += static_cast<double>(layer.split->input.mean.count()) +
              static_cast<double>(layer.split->weight.mean.count());
    if (layer.recomputation == Recomputed::selective)
      time += static_cast<double>(layer.again().mean.count());
    bytes += static_cast<double>(layer.output.count) + static_cast<double>(layer.activation.count);
  }
  for (const Layer& layer : scenario.model->graph.layers())
    bytes += static_cast<double>(layer.parameters.count) * std::max(1.0, scenario.gradient_width);
  if (time > max)
    return input_error(
        mark, "the model's times add up to more than the 10^18 ns (30 years) that are simulated");
  if (bytes > max)
    return input_error(mark,
                       "the model's sizes add up to more than the 10^18 B that are simulated");
  return std::nullopt;
}

std::optional<Diagnostic> check_shared_slots(const Scenario& scenario, const PipelineShape& shape,
                                             const std::vector<DeviceId>& devices) {
  std::vector<std::int64_t> position_of(shape.slots, -1);
  for (std::size_t i = 0; i < shape.positions.size(); ++i) {
    for (const std::uint32_t slot : shape.stage_slots[shape.positions[i].first_stage]) {
      if (position_of[slot] < 0) {
        position_of[slot] = static_cast<std::int64_t>(i);
        continue;
      }
      const auto before = static_cast<std::size_t>(position_of[slot]);
      const Position& other = shape.positions[before];
      return input_error(
          scenario.plan.devices->mark,
          fmt::format("stages {} and {} share device {} but are not {}",
                      other.first_stage + other.stages - 1, shape.positions[i].first_stage,
                      devices[slot].value,
                      before + 1 == i ? "on the same devices, in the same order" : "neighbours"),
          fmt::format("the schedule '{}' gives each device one place in the pipeline",
                      scenario.schedule.rule->name));
    }
  }
  return std::nullopt;
}

std::optional<Diagnostic> check_versions(const Scenario& scenario, const TrainingSetup& setup) {
  const ScheduleChoice& choice = scenario.schedule;
  for (std::size_t s = 0; s < setup.weights.size(); ++s) {
    if (const auto m = setup.weights[s].missing) {
      return input_error(
          choice.micro_batches_mark,
          fmt::format("schedule.micro_batches is {}, too few for weights: two: micro-batch {} "
                      "reaches stage {} before version {} is made",
                      choice.micro_batches, *m, s, setup.weights[s].uses[*m].forward),
          "about as many micro-batches as the pipeline is deep");
    }
  }
  return std::nullopt;
}

std::optional<Diagnostic> check_accumulation(const Scenario& scenario,
                                             const std::vector<std::uint32_t>& replicas) {
  const ScheduleChoice& choice = scenario.schedule;
  if (!choice.asynchronous() || choice.updates.weights != WeightRule::two) return std::nullopt;
  for (std::size_t s = 0; s < replicas.size(); ++s) {
    if (choice.micro_batches % replicas[s] == 0) continue;
    return input_error(
        choice.micro_batches_mark,
        fmt::format("schedule.micro_batches is {}, which the {} replicas of stage {} do not divide "
                    "evenly",
                    choice.micro_batches, replicas[s], s),
        "with weights: two an update covers as many micro-batches of each replica");
  }
  return std::nullopt;
}

namespace {

/// The first stage that has replicas.
std::optional<std::size_t> replicated_stage(const TrainingSetup& setup) {
  const auto found = std::find_if(setup.replicas.begin(), setup.replicas.end(),
                                  [](std::uint32_t replicas) { return replicas > 1; });
  if (found == setup.replicas.end()) return std::nullopt;
  return static_cast<std::size_t>(found - setup.replicas.begin());
}

/// Groups of copies that share must be of one size. Replicas share with all.
std::optional<Diagnostic> check_degree(const Scenario& scenario, const TrainingSetup& setup) {
  const std::uint32_t degree = scenario.sharing.degree;
  if (degree == 0) return std::nullopt;
  if (scenario.copies % degree != 0) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= scenario.copies && divisors.size() < 12; ++d) {
      if (scenario.copies % d == 0) divisors.push_back(d);
    }
    return input_error(
        scenario.degree_mark,
        fmt::format("training.shard_degree is {}, which does not divide the number of copies, {}",
                    degree, scenario.copies),
        fmt::format("copies share in groups of one size: {}", fmt::join(divisors, ", ")));
  }
  if (const auto stage = replicated_stage(setup)) {
    return input_error(
        scenario.degree_mark,
        fmt::format("training.shard_degree is {}, but stage {} has {} replicas, which share with "
                    "all others",
                    degree, *stage, setup.replicas[*stage]),
        "plan.data_parallel copies whole pipelines; with replicas leave training.shard_degree out");
  }
  return std::nullopt;
}

}  // namespace

std::optional<Diagnostic> check_sharing(const Scenario& scenario, const TrainingSetup& setup) {
  if (auto refused = check_degree(scenario, setup)) return refused;
  if (scenario.sharing.state < Sharded::gradients) return std::nullopt;
  if (const auto stage = replicated_stage(setup)) {
    return input_error(
        scenario.sharded_mark,
        fmt::format("training.zero_stage is {}, but stage {} has {} replicas, which run different "
                    "micro-batches",
                    static_cast<int>(scenario.sharing.state), *stage, setup.replicas[*stage]),
        "plan.data_parallel copies whole pipelines; with replicas training.zero_stage: 1");
  }
  bool shares_any = false;
  for (std::size_t s = 0; s < setup.replicas.size(); ++s)
    shares_any = shares_any || is_shared(setup, s);
  if (!scenario.sharing.gathers_passes() || !shares_any) return std::nullopt;
  if (scenario.schedule.recompute.kind == Recompute::full) {
    return input_error(scenario.passes_mark(),
                       "training.zero_stage is 3 and schedule.recompute 'full', which needs all "
                       "weights of a stage before the first of its backward",
                       "schedule.recompute: layers, each right before its own backward; or "
                       "training.reshard: after-mini-batch");
  }
  const auto& order = setup.schedule.issue_order;
  const bool splits = std::any_of(order.begin(), order.end(),
                                  [](const Op& op) { return op.kind == OpKind::backward_input; });
  if (!splits) return std::nullopt;
  return input_error(scenario.passes_mark(),
                     "training.zero_stage is 3, but the schedule splits backwards, and weights are "
                     "gathered for whole ones only",
                     "training.zero_stage: 2, training.reshard: after-mini-batch, or a schedule "
                     "without I and W");
}

std::optional<Diagnostic> check_recompute_early(const Scenario& scenario, TrainingSetup& setup) {
  const ScheduleChoice& choice = scenario.schedule;
  if (!choice.recompute.early) return std::nullopt;
  if (!choice.recompute.is_early()) {
    setup.notes.push_back(
        fmt::format("schedule.recompute_early changes nothing: schedule.recompute is {}, not full",
                    name(choice.recompute.kind)));
    return std::nullopt;
  }
  const auto refused = [&](const std::string& with, std::string help) {
    return input_error(choice.recompute.early_mark, "schedule.recompute_early is true, " + with,
                       std::move(help));
  };
  if (choice.asynchronous())
    return refused("but the schedule updates after every backward", "a schedule with a flush");
  if (choice.blocking)
    return refused("and schedule.transfers is blocking", "schedule.transfers: overlapped");
  if (choice.overlaps_pairs)
    return refused("and schedule.pairs is overlapped", "schedule.pairs: apart");
  const auto& order = setup.schedule.issue_order;
  const bool splits = std::any_of(order.begin(), order.end(),
                                  [](const Op& op) { return op.kind == OpKind::backward_input; });
  if (splits)
    return refused("but the schedule splits backwards into I and W", "a schedule without I and W");
  return std::nullopt;
}

std::optional<Diagnostic> check_many_ops(const Scenario& scenario, const TrainingSetup& setup,
                                         std::int64_t micro_batches) {
  const ScheduleChoice& choice = scenario.schedule;
  const std::size_t stages = setup.partition.stages.size();
  const std::uint32_t mini_batches = setup.rules.mini_batches;
  const double ops = 2.0 * static_cast<double>(stages) * static_cast<double>(micro_batches) *
                     mini_batches * static_cast<double>(scenario.copies);
  if (ops <= kMaxOps) return std::nullopt;
  const bool raised = choice.asynchronous() &&
                      micro_batches > std::int64_t{choice.micro_batches} * choice.mini_batches;
  return input_error(
      choice.micro_batches_mark,
      fmt::format("the run has {:.0f} ops, more than the {:.0f} that are simulated", ops, kMaxOps),
      fmt::format("2 x {} (stages) x {} ({}{}) x {} (mini-batches){}: make one of them smaller",
                  stages, micro_batches,
                  choice.slices.count > 1 ? "slices of micro-batches" : "micro-batches",
                  raised ? ", as many as the steady state needs" : "", mini_batches,
                  scenario.copies > 1 ? fmt::format(" x {} (copies)", scenario.copies) : ""));
}

std::optional<Diagnostic> check_memory(const Scenario& scenario, const TrainingSetup& setup) {
  if (max_memory(setup.costs, memory_rules(setup), setup.schedule.shape.micro_batches) <= 9e18)
    return std::nullopt;
  return input_error(scenario.model_mark, "the model's sizes add up to more than 64 bits hold");
}

std::optional<Diagnostic> check_noise(const Scenario& scenario, const TrainingSetup& setup) {
  if (!scenario.noise || !scenario.noise->measured) return std::nullopt;
  const std::vector<OpSpreads>& stages = setup.noise->measured;
  const bool any = std::any_of(stages.begin(), stages.end(), [](const OpSpreads& stage) {
    return std::any_of(stage.begin(), stage.end(), [](double spread) { return spread > 0; });
  });
  if (any) return std::nullopt;
  return input_error(*scenario.noise->measured,
                     "noise.spread is 'measured', but the model holds no quartiles",
                     "only a profile whose times have q1 and q3 does");
}

}  // namespace plumbline
