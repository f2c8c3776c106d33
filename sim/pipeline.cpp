// The passes from a scenario to a pipeline: stages, devices, order.
// SPDX-License-Identifier: MIT
#include "sim/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "schedules/weight_versions.h"
#include "sim/metrics.h"

namespace plumbline {
namespace {

std::string wrong_length(std::string_view key, std::size_t length, std::size_t stages) {
  return fmt::format("{} has length {}, but the number of stages is {}", key, length, stages);
}

/// The number of stages: given, or the length of a list that has one entry a stage, or one a
/// device.
std::uint32_t stage_count(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  if (plan.stages) return static_cast<std::uint32_t>(plan.stages->value);
  if (const auto* counts = std::get_if<std::vector<std::int64_t>>(&plan.partition)) {
    return static_cast<std::uint32_t>(counts->size());
  }
  if (plan.replicas) return static_cast<std::uint32_t>(plan.replicas->value.size());
  if (plan.devices) return static_cast<std::uint32_t>(plan.devices->value.size());
  return scenario.cluster.device_count();
}

/// Sums over the layers must stay far from the end of 64 bits, so they are taken in floating point
/// first.
std::optional<Diagnostic> refuse_large_sums(const LayerGraph& graph,
                                            const std::vector<LayerCosts>& layers,
                                            const Mark& mark) {
  constexpr double most = 1e18;
  double time = 0;
  double bytes = 0;
  for (const LayerCosts& layer : layers) {
    time += static_cast<double>(layer.forward.mean.count()) +
            static_cast<double>(layer.backward.mean.count()) +
            static_cast<double>(layer.update.mean.count());
    if (layer.split)
      time += static_cast<double>(layer.split->input.mean.count()) +
              static_cast<double>(layer.split->weight.mean.count());
    bytes += static_cast<double>(layer.output.count) + static_cast<double>(layer.activation.count);
  }
  for (const Layer& layer : graph.layers()) bytes += static_cast<double>(layer.parameters.count);
  if (time > most)
    return input_error(
        mark, "the model's times add up to more than the 10^18 ns (30 years) that are simulated");
  if (bytes > most)
    return input_error(mark,
                       "the model's sizes add up to more than the 10^18 B that are simulated");
  return std::nullopt;
}

/// The devices of each stage: as the plan gives them, or 0, 1, ... in order.
Result<std::vector<std::vector<DeviceId>>> stage_devices(const Scenario& scenario,
                                                         std::uint32_t stages) {
  std::vector<std::vector<DeviceId>> devices;
  const Plan& plan = scenario.plan;
  const std::uint32_t available = scenario.cluster.device_count();
  if (plan.replicas && plan.replicas->value.size() != stages) {
    return input_error(plan.replicas->mark,
                       wrong_length("plan.replicas", plan.replicas->value.size(), stages));
  }
  if (!plan.devices) {
    for (std::uint32_t s = 0; s < stages; ++s) devices.push_back({DeviceId{s}});
    if (scenario.cluster_given && stages > available) {
      return input_error(
          plan.stages ? plan.stages->mark : scenario.cluster_mark,
          fmt::format("the number of stages is {}, but that of devices is {}", stages, available),
          "fewer stages, more devices, or plan.devices with several stages on one device");
    }
    return devices;
  }
  if (plan.devices->value.size() != stages) {
    return input_error(plan.devices->mark,
                       wrong_length("plan.devices", plan.devices->value.size(), stages));
  }
  for (std::size_t s = 0; s < plan.devices->value.size(); ++s) {
    std::vector<DeviceId>& of_stage = devices.emplace_back();
    for (const std::int64_t device : plan.devices->value[s]) {
      if (scenario.cluster_given && device >= available) {
        return input_error(
            plan.devices->mark,
            fmt::format("plan.devices puts stage {} on device {}, but the devices are 0 to {}", s,
                        device, available - 1));
      }
      of_stage.push_back({static_cast<std::uint32_t>(device)});
    }
    if (of_stage.size() != 1) {
      return input_error(
          plan.devices->mark,
          fmt::format("plan.devices lists {} devices for stage {}, which has 1 replica",
                      of_stage.size(), s));
    }
  }
  return devices;
}

Result<std::vector<std::uint32_t>> layer_counts(const Scenario& scenario,
                                                const std::vector<LayerCosts>& costs,
                                                const std::vector<LayerId>& order,
                                                std::uint32_t stages) {
  const auto layers = static_cast<std::uint32_t>(order.size());
  const Plan& plan = scenario.plan;
  if (const auto* given = std::get_if<std::vector<std::int64_t>>(&plan.partition)) {
    const std::int64_t sum = std::accumulate(given->begin(), given->end(), std::int64_t{0});
    if (given->size() != stages) {
      return input_error(plan.partition_mark,
                         wrong_length("plan.partition", given->size(), stages));
    }
    if (sum != layers) {
      return input_error(
          plan.partition_mark,
          fmt::format("plan.partition adds up to {} layers, but the model has {}", sum, layers));
    }
    return std::vector<std::uint32_t>(given->begin(), given->end());
  }
  if (stages > layers) {
    return input_error(
        plan.stages ? plan.stages->mark : scenario.plan_mark,
        fmt::format("the number of stages is {}, but that of layers is {}", stages, layers),
        plan.stages ? "" : "without plan.stages there is a stage for each device");
  }
  if (std::get<PartitionRule>(plan.partition) == PartitionRule::even)
    return even_counts(layers, stages);
  if (std::int64_t{stages} * layers > kMostBalanced) {
    return input_error(
        plan.partition_mark,
        fmt::format("{} layers in {} stages are too many for partition: balanced", layers, stages),
        "use even, or a list of layers per stage");
  }
  std::vector<Duration> times;
  times.reserve(order.size());
  for (const LayerId layer : order) {
    times.push_back(costs[layer.value].forward.mean + costs[layer.value].backward.mean);
  }
  return balanced_counts(times, stages);
}

/// One place in the pipeline a device, and one warm-up a position.
Result<std::vector<std::uint32_t>> position_windows(const Scenario& scenario,
                                                    const PipelineShape& shape,
                                                    const Partition& partition,
                                                    const std::vector<DeviceId>& devices) {
  std::vector<std::int64_t> position_of(shape.slots, -1);
  for (std::size_t i = 0; i < shape.positions.size(); ++i) {
    const std::uint32_t slot = shape.stage_slots[shape.positions[i].first_stage].front();
    if (position_of[slot] >= 0) {
      const Position& other = shape.positions[static_cast<std::size_t>(position_of[slot])];
      return input_error(
          scenario.plan.devices->mark,
          fmt::format("stages {} and {} share device {} but are not neighbours",
                      other.first_stage + other.stages - 1, shape.positions[i].first_stage,
                      devices[slot].value),
          fmt::format("the schedule '{}' gives each device one place in the pipeline",
                      scenario.schedule.rule->name));
    }
    position_of[slot] = static_cast<std::int64_t>(i);
  }
  std::optional<std::vector<std::uint32_t>> warm_up;
  if (const auto& given = scenario.plan.warm_up) {
    if (!scenario.schedule.rule->takes_warm_up) {
      return input_error(given->mark,
                         fmt::format("plan.warm_up does not apply to the schedule '{}'",
                                     scenario.schedule.rule->name),
                         "it is for 1f1b, eager-1f1b and pipedream");
    }
    if (given->value.size() != partition.stages.size()) {
      return input_error(
          given->mark, wrong_length("plan.warm_up", given->value.size(), partition.stages.size()));
    }
    warm_up.emplace();
    for (const Position& position : shape.positions) {
      const auto first = given->value.begin() + position.first_stage;
      if (std::any_of(first, first + position.stages,
                      [&](std::int64_t w) { return w != *first; })) {
        return input_error(
            given->mark,
            fmt::format("plan.warm_up differs between stages {} and {}, which share a device",
                        position.first_stage, position.first_stage + position.stages - 1));
      }
      warm_up->push_back(static_cast<std::uint32_t>(*first));
    }
  }
  return windows(*scenario.schedule.rule, static_cast<std::uint32_t>(shape.positions.size()),
                 shape.micro_batches, warm_up);
}

/// The versions that each stage keeps: 1 with a flush, by the order of its ops without.
std::vector<std::uint32_t> kept_versions(const Schedule& schedule) {
  std::vector<std::uint32_t> kept(schedule.shape.stages(), 1);
  if (!schedule.asynchronous) return kept;
  std::vector<std::vector<Op>> of_stage(schedule.shape.stages());
  for (const Op& op : schedule.issue_order) of_stage[op.stage.value].push_back(op);
  for (std::size_t s = 0; s < kept.size(); ++s) kept[s] = stage_versions(of_stage[s]).kept;
  return kept;
}

}  // namespace

Result<Pipeline> plan_pipeline(const Scenario& scenario, bool for_run) {
  Pipeline pipeline;
  pipeline.notes = scenario.notes;

  // What each layer costs at this micro-batch size.
  SizedCosts sized = costs_at(scenario.model.profile, scenario.micro_batch_size);
  if (!sized.estimated.empty()) pipeline.estimated.push_back(sized.estimated);

  if (auto refused = refuse_large_sums(scenario.model.graph, sized.layers, scenario.model_mark))
    return *refused;

  // Layers to stages to devices.
  const std::uint32_t stages = stage_count(scenario);
  const std::vector<LayerId> order = scenario.model.graph.topological_order();
  Diagnostics problems;
  auto counts = layer_counts(scenario, sized.layers, order, stages);
  auto devices = stage_devices(scenario, stages);
  const bool counts_hold = keep(counts, problems);
  if (!keep(devices, problems) || !counts_hold) return problems;
  pipeline.partition = make_partition(order, *counts, *std::move(devices));
  pipeline.devices = devices_in_use(pipeline.partition);
  pipeline.cluster = scenario.cluster;
  if (!scenario.cluster_given)
    pipeline.cluster.levels.front().size = pipeline.devices.back().value + 1;
  const std::size_t spare = pipeline.cluster.device_count() - pipeline.devices.size();
  if (spare > 0)
    pipeline.notes.push_back(
        fmt::format("devices without a stage: {} of {}", spare, pipeline.cluster.device_count()));
  pipeline.costs = stage_costs(scenario.model.graph, sized.layers, pipeline.partition);

  // Who does what in which order.
  const ScheduleChoice& choice = scenario.schedule;
  std::int64_t micro_batches = choice.micro_batches;
  pipeline.mini_batches = choice.mini_batches;
  if (choice.rule->asynchronous) {
    micro_batches *= choice.mini_batches;
    pipeline.mini_batches = 1;
    const std::int64_t least = least_asynchronous_run(std::vector<std::uint32_t>(stages, 1));
    if (for_run && micro_batches < least) {
      pipeline.notes.push_back(
          fmt::format("{} micro-batches are run instead of {}, so that the steady state shows",
                      least, micro_batches));
      micro_batches = least;
    }
    if (scenario.overheads.per_iteration.count() > 0)
      pipeline.notes.emplace_back(
          "overhead.per_iteration does not apply to an asynchronous schedule");
  }
  const double ops = 2.0 * stages * static_cast<double>(micro_batches) * pipeline.mini_batches;
  if (ops > kMostOps) {
    return input_error(
        choice.micro_batches_mark,
        fmt::format("the run has {:.0f} ops, more than the {:.0f} that are simulated", ops,
                    kMostOps),
        fmt::format(
            "2 x {} (stages) x {} (micro-batches{}) x {} (mini-batches): make one of them smaller",
            stages, micro_batches,
            micro_batches > std::int64_t{choice.micro_batches} * choice.mini_batches
                ? ", as many as the steady state needs"
                : "",
            pipeline.mini_batches));
  }
  const PipelineShape shape =
      pipeline_shape(pipeline.partition, static_cast<std::uint32_t>(micro_batches));
  auto windows = position_windows(scenario, shape, pipeline.partition, pipeline.devices);
  if (!windows) return windows.problems();
  auto schedule = generate(*choice.rule, shape, *windows,
                           scenario.plan.warm_up ? scenario.plan.warm_up->mark : choice.name_mark);
  if (!schedule) return schedule.problems();
  pipeline.schedule = *std::move(schedule);
  pipeline.windows = *std::move(windows);
  pipeline.weight_versions = kept_versions(pipeline.schedule);
  return pipeline;
}

}  // namespace plumbline
