// Costs of layers at the size of the micro-batch, and of stages in the order of their ops.
//
// SPDX-License-Identifier: MIT
#include "sim/setup/setup_costs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "models/network/model_flops.h"
#include "schedules/order/in_flight.h"
#include "sim/scenario/recomputation.h"
#include "sim/setup/buckets.h"
#include "sim/setup/expected_errors.h"
#include "sim/setup/setup_checks.h"
#include "sim/setup/split_backward.h"

namespace plumbline {
namespace {

/// One number per stage: the other devices in use on the server of its first device.
std::vector<std::uint32_t> neighbours_of_stages(const TrainingSetup& setup) {
  const auto server = [&](std::uint32_t device, std::uint32_t copy) {
    return (device * setup.copies() + copy) / setup.cluster.levels.front().size;
  };
  std::map<std::uint32_t, std::uint32_t> used;
  for (const DeviceId device : setup.devices) {
    for (std::uint32_t copy = 0; copy < setup.copies(); ++copy) ++used[server(device.value, copy)];
  }
  std::vector<std::uint32_t> neighbours;
  neighbours.reserve(setup.partition.stages.size());
  for (const Stage& stage : setup.partition.stages)
    neighbours.push_back(used.at(server(stage.devices.front().value, 0)) - 1);
  return neighbours;
}

/// One number per stage: the micro-batches whose activations a device holds at the same time. If
/// all activations are recomputed, it holds those of one, for any number in flight.
std::vector<std::uint32_t> max_kept(const Scenario& scenario, const Schedule& schedule) {
  const RecomputeChoice& recompute = scenario.schedule.recompute;
  const bool recomputes_all = recompute.kind == Recompute::full ||
                              (recompute.kind == Recompute::layers && !recompute.leaves_some());
  if (recomputes_all) return std::vector<std::uint32_t>(schedule.shape.stages(), 1);
  std::vector<std::uint32_t> kept = max_in_flight(schedule);
  for (std::uint32_t& held : kept)  // in whole micro-batches
    held = (held + scenario.schedule.slices.count - 1) / scenario.schedule.slices.count;
  return kept;
}

/// Adds the costs of stages, which depend on the order of their ops, and their slow-down by
/// neighbours.
std::optional<Diagnostics> add_stage_costs(const Scenario& scenario,
                                           std::vector<LayerCosts>& layers, TrainingSetup& setup) {
  const LayerGraph& graph = setup.model->graph;
  const Profile& profile = scenario.model->profile;
  std::vector<std::uint32_t> neighbours(setup.partition.stages.size(), 0);
  if (scenario.neighbours_slow) neighbours = neighbours_of_stages(setup);
  const bool has_neighbours = std::any_of(neighbours.begin(), neighbours.end(),
                                          [](std::uint32_t count) { return count > 0; });
  std::vector<std::uint32_t> kept;
  if (!profile.in_flight.empty()) kept = max_kept(scenario, setup.schedule);
  if (!kept.empty() && !has_neighbours) {
    scale_in_flight(graph, profile.in_flight, setup.partition, kept, layers);
    if (auto refused = check_large_sums(scenario, layers)) return Diagnostics{*refused};
  }
  setup.costs = stage_costs(graph, layers, setup.partition, scenario.gradient_width);
  if (!scenario.neighbours_slow) return std::nullopt;
  std::vector<KindFactors> factors(setup.partition.stages.size(), profile.slowdown);
  if (!kept.empty() && has_neighbours) {
    for (std::size_t s = 0; s < factors.size(); ++s) {
      factors[s] = factors_in_flight(profile.slowdown, profile.in_flight, kept[s], neighbours[s]);
    }
  }
  setup.costs.slowdowns =
      stage_slowdowns(graph, layers, setup.partition, factors, profile.slowdown);
  const auto at_once = profile.slowdown.find(std::string(kUpdatesAtOnce));
  if (has_neighbours && at_once != profile.slowdown.end())
    setup.costs.updates_at_once = at_once->second;
  return std::nullopt;
}

}  // namespace

Result<DeviceCosts> layer_costs(const Scenario& scenario, TrainingSetup& setup) {
  DeviceCosts costs;
  const std::size_t runs = std::max<std::size_t>(1, scenario.unlike.size());
  for (std::size_t run = 0; run < runs; ++run) {
    const auto& model = scenario.unlike.empty() ? scenario.model : scenario.unlike[run].model;
    const Profile& profile = model->profile;
    SizedCosts sized = costs_at(profile, scenario.micro_batch_size);
    const bool is_new = std::find(setup.estimated.begin(), setup.estimated.end(),
                                  sized.estimated) == setup.estimated.end();
    if (!sized.estimated.empty() && is_new) setup.estimated.push_back(sized.estimated);
    if (!scenario.unlike.empty()) speed_up(sized.layers, scenario.unlike[run].speed);
    if (scenario.schedule.slices.count > 1)
      cut_into_slices(sized.layers, scenario.schedule.slices.count);
    if (!scenario.neighbours_slow) run_alone(model->graph, profile.slowdown, sized.layers);
    if (auto refused = check_large_sums(scenario, sized.layers)) return *refused;
    costs.push_back(std::move(sized.layers));
  }
  setup.errors = expected_errors(scenario);
  if (setup.errors) setup.estimated.push_back(estimate_of(*setup.errors));
  if (const SliceChoice& slices = scenario.schedule.slices; slices.count > 1) {
    for (std::string& note : notes_on(slices, scenario.schedule.recompute.kind,
                                      !scenario.model->profile.estimated.empty()))
      setup.notes.push_back(std::move(note));
  }
  return costs;
}

namespace {

/// Leaves the update of a table out of the layers that use it on its own devices.
void update_tables_once(const LayerGraph& graph, const Partition& partition,
                        std::vector<LayerCosts>& layers) {
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    const Layer& layer = graph.layer({i});
    if (layer.tied.count == 0 || !shares_table(graph, partition, {i})) continue;
    Duration& update = layers[i].update.mean;
    const double rest = static_cast<double>((layer.parameters - layer.tied).count) /
                        static_cast<double>(layer.parameters.count);
    update = Duration{std::llround(rest * static_cast<double>(update.count()))};
  }
}

}  // namespace

std::vector<LayerCosts> on_their_devices(const Scenario& scenario, const DeviceCosts& costs,
                                         const Partition& partition) {
  std::vector<LayerCosts> layers = costs.front();
  for (std::size_t s = 0; costs.size() > 1 && s < partition.stages.size(); ++s) {
    const auto kind = kind_of_stage(scenario, s, partition.stages[s].devices);
    for (const LayerId layer : partition.stages[s].layers)
      layers[layer.value] = costs[*kind][layer.value];
  }
  update_tables_once(scenario.model->graph, partition, layers);
  return layers;
}

void share_tables(TrainingSetup& setup) {
  for (std::uint32_t i = 0; i < setup.model->graph.size(); ++i) {
    const bool has_copy = setup.model->graph.layer({i}).tied.count > 0;
    if (has_copy && shares_table(setup.model->graph, setup.partition, {i}))
      setup.model.edit().graph.drop_copy({i});
  }
}

namespace {

/// The costs of the setup's stages for micro-batches of the scenario's only length.
Result<StageCosts> costs_of_length(const Scenario& scenario, const TrainingSetup& setup) {
  TrainingSetup one = setup;  // gets notes, which nobody reads
  const auto costs = layer_costs(scenario, one);
  if (!costs) return costs.problems();
  std::vector<LayerCosts> layers = on_their_devices(scenario, *costs, setup.partition);
  keep_others(setup.partition, setup.recomputed, layers);
  split_backwards(one, layers);
  if (auto refused = add_costs(scenario, layers, one)) return *refused;
  return std::move(one.costs);
}

/// The mean of a time, or of seconds, over all micro-batches.
class MeanOfLengths {
 public:
  explicit MeanOfLengths(const LengthCosts& lengths) : lengths_(lengths) {}

  template <class Value>
  double of(Value&& value) const {
    double sum = 0;
    for (const std::uint32_t kind : lengths_.kind_of) sum += value(lengths_.kinds[kind]);
    return sum / static_cast<double>(lengths_.kind_of.size());
  }
  template <class Value>
  Duration time(Value&& value) const {
    return Duration{std::llround(
        of([&](const StageCosts& costs) { return static_cast<double>(value(costs).count()); }))};
  }

 private:
  const LengthCosts& lengths_;
};

/// Gives the stages the mean times and activations of all micro-batches. What was the sum of I and
/// W still is.
void take_mean(const LengthCosts& lengths, StageCosts& costs) {
  const MeanOfLengths mean(lengths);
  for (std::size_t s = 0; s < costs.stages.size(); ++s) {
    StageCost& stage = costs.stages[s];
    const bool is_sum = stage.backward == stage.backward_input + stage.backward_weight;
    for (Duration StageCost::*const time :
         {&StageCost::forward, &StageCost::backward, &StageCost::backward_input,
          &StageCost::backward_weight, &StageCost::again})
      stage.*time = mean.time([&](const StageCosts& one) { return one.stages[s].*time; });
    if (is_sum) stage.backward = stage.backward_input + stage.backward_weight;
    for (double SentTimes::*const sent :
         {&SentTimes::forward, &SentTimes::backward, &SentTimes::backward_input,
          &SentTimes::backward_weight, &SentTimes::again})
      stage.sent.*sent = mean.of([&](const StageCosts& one) { return one.stages[s].sent.*sent; });
    stage.activation = {std::llround(mean.of([&](const StageCosts& one) {
      return static_cast<double>(one.stages[s].activation.count);
    }))};
    for (std::size_t b = 0; b < stage.buckets.size(); ++b) {
      for (Duration Bucket::*const time :
           {&Bucket::forward, &Bucket::backward, &Bucket::backward_weight, &Bucket::again}) {
        stage.buckets[b].*time =
            mean.time([&](const StageCosts& one) { return one.stages[s].buckets[b].*time; });
      }
    }
  }
}

/// Adds the costs of each length. A device needs the room for the longest.
std::optional<Diagnostics> add_lengths(const Scenario& scenario, TrainingSetup& setup) {
  if (!scenario.lengths) return std::nullopt;
  auto lengths = std::make_shared<LengthCosts>();
  lengths->kind_of = scenario.lengths->kind_of;
  lengths->micro_batches = scenario.schedule.micro_batches;
  double flops = 0;
  for (std::size_t kind = 0; kind < scenario.lengths->lengths.size(); ++kind) {
    const Scenario one = with_length(scenario, kind);
    auto costs = costs_of_length(one, setup);
    if (!costs) return costs.problems();
    for (std::size_t s = 0; s < costs->stages.size(); ++s) {
      Bytes& temporary = setup.costs.stages[s].temporary;
      temporary = std::max(temporary, costs->stages[s].temporary);
    }
    lengths->kinds.push_back(*std::move(costs));
    const auto own = model_flops(one.model->profile, one.micro_batch_size);
    const auto count = std::count(lengths->kind_of.begin(), lengths->kind_of.end(),
                                  static_cast<std::uint32_t>(kind));
    flops += own.value_or(0) * static_cast<double>(count);
  }
  take_mean(*lengths, setup.costs);
  setup.mean_flops.reset();
  if (flops > 0) setup.mean_flops = flops / static_cast<double>(lengths->kind_of.size());
  setup.costs.lengths = std::move(lengths);
  return std::nullopt;
}

}  // namespace

std::optional<Diagnostics> add_costs(const Scenario& scenario, std::vector<LayerCosts>& layers,
                                     TrainingSetup& setup) {
  if (auto refused = add_stage_costs(scenario, layers, setup)) return refused;
  if (const auto min = scenario.min_bucket()) add_buckets(*min, layers, setup);
  return add_lengths(scenario, setup);
}

std::optional<Diagnostics> set_recomputed(const Scenario& scenario, std::vector<LayerCosts> layers,
                                          const std::vector<std::uint32_t>& recomputed,
                                          TrainingSetup& setup) {
  setup.recomputed = recomputed;
  keep_others(setup.partition, setup.recomputed, layers);
  split_backwards(setup, layers);
  if (auto refused = add_costs(scenario, layers, setup)) return refused;
  if (auto refused = check_memory(scenario, setup)) return Diagnostics{*refused};
  return std::nullopt;
}

}  // namespace plumbline
