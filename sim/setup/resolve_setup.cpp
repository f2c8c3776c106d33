// The passes from a scenario to a setup.
//
// SPDX-License-Identifier: MIT
#include "sim/setup/resolve_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "schedules/order/weight_versions.h"
#include "sim/engine/period.h"
#include "sim/engine/simulate.h"
#include "sim/scenario/placement.h"
#include "sim/setup/buckets.h"
#include "sim/setup/file_order.h"
#include "sim/setup/measured_spreads.h"
#include "sim/setup/setup_checks.h"
#include "sim/setup/setup_costs.h"
#include "sim/setup/setup_order.h"
#include "sim/setup/split_backward.h"

namespace plumbline {
namespace {

/// Reports the assumptions about backwards that an order with W runs in two parts.
void tell(const AssumedSplit& split, TrainingSetup& setup) {
  setup.split = split;
  if (std::string note = split.note(); !note.empty()) setup.notes.push_back(std::move(note));
  if (std::string estimate = split.estimate(); !estimate.empty())
    setup.estimated.push_back(std::move(estimate));
}

void note_unshared(const Scenario& scenario, TrainingSetup& setup) {
  if (scenario.sharing.state == Sharded::nothing) return;
  const bool alone = std::all_of(setup.replicas.begin(), setup.replicas.end(),
                                 [&](std::uint32_t r) { return r * setup.copies() == 1; });
  if (!alone) return;
  const std::vector<Layer>& layers = scenario.model->graph.layers();
  const bool steps_all = std::all_of(layers.begin(), layers.end(), [](const Layer& layer) {
    return layer.stepped() == layer.parameters;
  });
  const bool reduces_all = std::all_of(layers.begin(), layers.end(), [](const Layer& layer) {
    return layer.reduced() == layer.parameters;
  });
  const auto stage = static_cast<int>(scenario.sharing.state);
  if (steps_all) {
    setup.notes.push_back(fmt::format(
        "training.zero_stage is {}, but each stage is on one device: nothing is shared", stage));
  } else if (scenario.sharing.state >= Sharded::gradients && reduces_all) {
    setup.notes.push_back(
        fmt::format("training.zero_stage is {}, but layers that give their times or updates share "
                    "no more than the optimizer within their group, and there are no copies",
                    stage));
  }
}

void note_unreduced(const Scenario& scenario, TrainingSetup& setup) {
  if (!scenario.schedule.bucket || scenario.schedule.asynchronous())
    return;  // reported by its reader
  for (std::size_t s = 0; s < setup.partition.stages.size(); ++s) {
    if (is_shared(setup, s)) return;
  }
  setup.notes.emplace_back(
      "schedule.bucket does nothing here: each stage is on one device, and nothing is reduced");
}

void note_unsummed(const Scenario& scenario, TrainingSetup& setup) {
  if (!scenario.schedule.asynchronous()) return;
  for (const Layer& layer : setup.model->graph.layers()) {
    if (layer.tied.count == 0) continue;
    return setup.notes.push_back(fmt::format(
        "layer '{}' is tied to '{}' on another device: without a flush, their gradients are not "
        "added up",
        clipped(layer.name), clipped(layer.tied_to)));
  }
}

/// Adds the versions of weights that each stage keeps.
void add_versions(const Scenario& scenario, TrainingSetup& setup) {
  setup.weights = weight_versions(setup.schedule, scenario.schedule.updates);
  setup.rules.weight_versions.clear();
  for (const StageVersions& stage : setup.weights)
    setup.rules.weight_versions.push_back(stage.kept);
}

/// Adds the sampling of runs with noise.
void add_noise(const Scenario& scenario, TrainingSetup& setup) {
  if (!scenario.noise) return;
  setup.noise = NoiseSampling{scenario.noise->noise, scenario.noise->samples, {}};
  if (scenario.noise->measured) setup.noise->measured = measured_spreads(setup);
}

/// Adds all that depends on the order of the ops: costs of stages, buckets, versions of weights.
std::optional<Diagnostics> complete(const Scenario& scenario, std::vector<LayerCosts> layers,
                                    TrainingSetup& setup) {
  if (auto hang = order_communication(scenario, setup)) return Diagnostics{*hang};
  if (auto refused = check_sharing(scenario, setup)) return Diagnostics{*refused};
  if (auto refused = check_recompute_early(scenario, setup)) return Diagnostics{*refused};
  // The costs of each stage, with the number of micro-batches in flight in this order.
  tell(split_backwards(setup, layers), setup);
  if (auto refused = add_costs(scenario, layers, setup)) return refused;
  add_versions(scenario, setup);
  if (auto refused = check_versions(scenario, setup)) return Diagnostics{*refused};
  if (auto refused = check_memory(scenario, setup)) return Diagnostics{*refused};
  add_noise(scenario, setup);
  if (auto refused = check_noise(scenario, setup)) return Diagnostics{*refused};
  return std::nullopt;
}

/// The end of a run; without a flush, the begin of the next mini-batch.
SimTime end_of_run(const OpGraph& graph) {
  if (!graph.flushes) {
    const Trace trace = graph.rates_change() ? simulate(graph) : longest_path(graph);
    return SimTime(shortest_period(graph, trace));
  }
  if (!graph.rates_change()) return longest_path_end(graph);
  SimTime end;
  for (const Span& span : simulate(graph).spans) end = std::max(end, span.end);
  return end;
}

/// The setup with the fastest of the ways to run; of equal ones, the first.
Result<TrainingSetup> fastest_way(const Scenario& scenario, const std::vector<LayerCosts>& layers,
                                  const TrainingSetup& setup, const std::vector<Schedule>& ways) {
  std::optional<TrainingSetup> best;
  SimTime earliest;
  for (const Schedule& way : ways) {
    TrainingSetup one = setup;
    one.schedule = way;
    if (auto problems = complete(scenario, layers, one)) return *problems;
    if (ways.size() == 1) return one;
    const auto graph = lower(one);
    if (!graph) return located(graph.problems(), scenario.schedule.micro_batches_mark);
    const SimTime end = end_of_run(*graph);
    if (best && end >= earliest) continue;
    earliest = end;
    best = std::move(one);
  }
  return *std::move(best);
}

/// The part of the setup that does not depend on the plan.
TrainingSetup without_plan(const Scenario& scenario) {
  const ScheduleChoice& choice = scenario.schedule;
  TrainingSetup setup;
  setup.name = scenario.name;
  setup.model = scenario.model;
  setup.network = scenario.network;
  setup.micro_batch_size = scenario.micro_batch_size;
  setup.micro_batches = choice.micro_batches;
  setup.slices = choice.slices.count;
  setup.mini_batches = choice.mini_batches;
  setup.optimizer_state = scenario.optimizer_state;
  setup.gradient_width = scenario.gradient_width;
  setup.peak = scenario.peak;
  setup.rates = scenario.rates;
  setup.cluster = scenario.cluster;
  setup.link_measured = scenario.link_measured;
  setup.rule = choice.rule;
  setup.chunks = choice.chunks;
  setup.group = choice.group;
  setup.notes = scenario.notes;
  setup.rules = {.mini_batches = choice.mini_batches,
                 .flushes = scenario.flushes,
                 .blocking = choice.blocking,
                 .blocking_link = scenario.blocking_link,
                 .recompute = choice.recompute.kind,
                 .recompute_early = choice.recompute.is_early(),
                 .copies = static_cast<std::uint32_t>(scenario.copies),
                 .hierarchical = choice.whole_model(),
                 .sharing = scenario.sharing,
                 .gather_ahead = scenario.gather_ahead,
                 .group_on_network = scenario.model->profile.group.spans_servers(),
                 .updates = choice.updates,
                 .weight_versions = {},
                 .slice_work = choice.slices.work,
                 .overheads = scenario.overheads};
  std::uint32_t& degree = setup.rules.sharing.degree;
  if (degree == setup.copies()) degree = 0;  // all share, as without a degree
  return setup;
}

/// Adds stages and devices. Layers that do not recompute keep their activations.
std::optional<Diagnostics> add_stages(const Scenario& scenario, const Partition* as,
                                      const DeviceCosts& costs, std::vector<LayerCosts>& layers,
                                      TrainingSetup& setup) {
  auto partition = as ? Result<Partition>(*as) : place(scenario, costs);
  if (!partition) return partition.problems();
  setup.partition = *std::move(partition);
  for (std::size_t s = 0; as && s < as->stages.size(); ++s) {
    const auto kind = kind_of_stage(scenario, s, as->stages[s].devices);
    if (!kind) return kind.problems();
  }
  layers = on_their_devices(scenario, costs, setup.partition);
  share_tables(setup);
  note_unsummed(scenario, setup);
  setup.stages_raised_from = scenario.plan.stages_raised_from;
  auto recomputed = recomputed_layers(scenario.schedule.recompute, setup.partition);
  if (!recomputed) return recomputed.problems();
  setup.recomputed = *std::move(recomputed);
  keep_others(setup.partition, setup.recomputed, layers);
  setup.devices = devices_in_use(setup.partition);
  for (const Stage& stage : setup.partition.stages)
    setup.replicas.push_back(static_cast<std::uint32_t>(stage.devices.size()));
  if (!scenario.cluster_given)
    setup.cluster.levels.front().size = (setup.devices.back().value + 1) * setup.copies();
  if (const std::uint32_t spare = setup.devices_without_stage(); spare > 0)
    setup.notes.push_back(
        fmt::format("devices without a stage: {} of {}", spare, setup.cluster.device_count()));
  note_unreduced(scenario, setup);
  note_unshared(scenario, setup);
  return std::nullopt;
}

/// Where devices are not all alike, their peak is the mean of those that hold a stage.
void take_mean_peak(const Scenario& scenario, TrainingSetup& setup) {
  if (scenario.unlike.empty()) return;
  double sum = 0;
  for (const DeviceId device : setup.devices) {
    const DeviceId first{device.value * setup.copies()};
    const auto& peak = scenario.unlike[scenario.cluster.kind_of(first)].peak;
    if (!peak) return setup.peak.reset();
    sum += static_cast<double>(peak->count);
  }
  setup.peak = FlopsPerSecond{std::llround(sum / static_cast<double>(setup.devices.size()))};
}

}  // namespace

Result<TrainingSetup> resolve_setup(const Scenario& scenario, bool for_run, const Partition* as) {
  TrainingSetup setup = without_plan(scenario);
  const auto costs = layer_costs(scenario, setup);
  if (!costs) return costs.problems();
  std::vector<LayerCosts> layers;
  if (auto refused = add_stages(scenario, as, *costs, layers, setup)) return *refused;
  take_mean_peak(scenario, setup);
  if (auto refused = add_order(scenario, for_run, setup)) return *refused;
  const auto ways = ways_to_run(scenario, setup.schedule);
  if (!ways) return ways.problems();
  return fastest_way(scenario, layers, setup, *ways);
}

}  // namespace plumbline
