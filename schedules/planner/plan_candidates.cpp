// Prices of candidates, and plans next to them.
//
// SPDX-License-Identifier: MIT
#include "schedules/planner/plan_candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "schedules/planner/plan_formula.h"
#include "schedules/planner/published_planner.h"
#include "schedules/stages/partition.h"
#include "schedules/stages/stage_costs.h"

namespace plumbline {
namespace {

std::vector<FormulaStage> formula_stages(const PlannerInput& input, const Partition& partition) {
  const StageCosts costs = stage_costs(input.graph, input.costs, partition, input.gradient_width);
  const Duration per_op = input.overheads.per_op;
  const auto count = [](Duration time) { return static_cast<double>(time.count()); };
  std::vector<FormulaStage> stages;
  for (std::uint32_t s = 0; s < costs.stages.size(); ++s) {
    const StageCost& cost = costs.stages[s];
    const std::size_t steppers =
        input.residency.sharded_optimizer ? partition.stages[s].devices.size() : 1;
    stages.push_back(
        {.forward_ns = count(cost.forward + per_op),
         .backward_ns = count(cost.backward + per_op),
         .update_ns = count(cost.update - cost.update_before) / static_cast<double>(steppers) +
                      count(cost.update_before) + count(per_op),
         .parameters = cost.parameters,
         .stepped = cost.stepped,
         .gradients = cost.gradients,
         .gathered = cost.gathered,
         .reduced = cost.reduced,
         .activation = cost.activation,
         .checkpoints = costs.checkpoints(s, s),
         .cut_bytes = costs.cut_bytes(s),
         .devices = partition.stages[s].devices,
         .recompute_ns = count(cost.again),
         .entering = s > 0 ? costs.cut_bytes(s - 1) : Bytes{}});
  }
  return stages;
}

/// Adds the recomputation that a stage needs to fit, if only as few layers as needed recompute.
void add_recomputation(const PlannerInput& input, std::uint32_t in_flight, std::uint32_t replicas,
                       FormulaStage& stage) {
  const Residency& residency = input.residency;
  if (!residency.as_few_as_fit) return;
  stage.backward_ns +=
      recompute_that_fits_ns(stage, in_flight, *input.memory(), residency,
                             input.optimizer_state * residency.optimizer_share(replicas));
}

bool fits(const PlannerInput& input, const PlanCandidate& plan) {
  return !input.memory() ||
         std::all_of(plan.stages.begin(), plan.stages.end(), [&](const PlannedStage& stage) {
           return stage.peak_memory <= *input.memory();
         });
}

void set_warm_ups(const Residency& residency, PlanCandidate& plan) {
  std::uint32_t devices = 0;
  for (std::size_t s = plan.stages.size(); s-- > 0;) {
    devices += plan.stages[s].replicas;
    plan.stages[s].warm_up = residency.in_flight(devices, plan.stages[s].replicas) - 1;
  }
}

/// The first devices in order, for each stage as many as it has replicas.
std::vector<std::vector<DeviceId>> first_devices(const std::vector<std::uint32_t>& replicas) {
  std::vector<std::vector<DeviceId>> devices;
  std::uint32_t next = 0;
  for (const std::uint32_t count : replicas) {
    devices.emplace_back();
    for (std::uint32_t i = 0; i < count; ++i) devices.back().push_back({next++});
  }
  return devices;
}

/// The same cut with more micro-batches in flight; see full_rate_warm_ups.
PlanCandidate with_deeper_warm_ups(const PlannerInput& input, const PlanCandidate& plan,
                                   std::uint32_t extra) {
  PlanCandidate deeper = plan;
  deeper.deeper_warm_up = true;
  std::vector<std::uint32_t> replicas;
  for (const PlannedStage& stage : plan.stages) replicas.push_back(stage.replicas);
  const std::vector<std::uint32_t> warm_ups = full_rate_warm_ups(replicas, extra);
  for (std::size_t s = 0; s < warm_ups.size(); ++s)
    deeper.stages[s].warm_up = std::max(plan.stages[s].warm_up, warm_ups[s]);
  price(input, deeper);
  return deeper;
}

bool same_warm_ups(const PlanCandidate& a, const PlanCandidate& b) {
  return std::equal(
      a.stages.begin(), a.stages.end(), b.stages.begin(), b.stages.end(),
      [](const PlannedStage& x, const PlannedStage& y) { return x.warm_up == y.warm_up; });
}

/// The whole model on each of `devices` devices; see DataParallelPlan.
DataParallelPlan data_parallel(const PlannerInput& input, std::uint32_t devices) {
  DataParallelPlan result;
  result.devices = devices;
  Stage all{.layers = input.graph.topological_order(), .devices = {}};
  for (std::uint32_t d = 0; d < result.devices; ++d) all.devices.push_back({d});
  const Partition partition{.stages = {std::move(all)}};
  const StageCost cost = stage_costs(input.graph, input.costs, partition).stages.front();
  FormulaStage whole = formula_stages(input, partition).front();
  add_recomputation(input, 1, devices, whole);
  if (input.cost_model == CostModel::published) {
    result.period_s = published_data_parallel(cost.forward + cost.backward, whole.parameters,
                                              published_levels(input.cluster, result.devices));
  } else {
    const double ring = all_reduce_ns(input.cluster, whole.devices, whole.reduced);
    const double per_op = static_cast<double>(input.overheads.per_op.count());
    // With a sharded optimizer, the gather, half of a ring, comes after the update of a share.
    const bool sharded = input.residency.sharded_optimizer;
    const double reduce = sharded ? ring / 2 : ring;
    const double behind =
        sharded ? all_reduce_ns(input.cluster, whole.devices, whole.gathered) / 2 : 0;
    const double updates = static_cast<double>((cost.update - cost.update_before).count()) /
                               (sharded ? result.devices : 1) +
                           static_cast<double>(cost.update_before.count());
    const double f = static_cast<double>(cost.forward.count()) + per_op;
    const double b = whole.backward_ns;
    const double own = share_of_micro_batches(input.residency.micro_batches, devices);
    const double step = f + std::max(b, reduce) + updates + per_op + behind;
    result.period_s = ((own - 1) * (f + b) + step) / own / devices / 1e9;
  }
  const double state = input.optimizer_state * input.residency.optimizer_share(result.devices);
  result.peak_memory = {std::llround(std::ceil(peak_memory(whole, 1, {}, input.residency, state)))};
  result.fits = !input.memory() || result.peak_memory <= *input.memory();
  return result;
}

}  // namespace

std::uint32_t devices_of(const PlannerInput& input) {
  return std::min(input.cluster.device_count(),
                  input.devices_at_most.value_or(std::numeric_limits<std::uint32_t>::max()));
}

double one_device_ns(const PlannerInput& input) {
  Stage all{.layers = input.graph.topological_order(), .devices = {{0}}};
  FormulaStage whole = formula_stages(input, {.stages = {std::move(all)}}).front();
  add_recomputation(input, 1, 1, whole);
  return compute_ns(whole, input.residency, 1);
}

PlanCandidate cut_plan(const PlannerInput& input, const std::vector<LayerId>& order,
                       const std::vector<std::uint32_t>& stage_of,
                       std::vector<std::vector<DeviceId>> devices) {
  PlanCandidate plan;
  plan.stages.resize(devices.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    plan.stages[stage_of[i]].layers.push_back(order[i]);
  for (std::size_t s = 0; s < devices.size(); ++s) {
    plan.stages[s].replicas = static_cast<std::uint32_t>(devices[s].size());
    plan.order.insert(plan.order.end(), plan.stages[s].layers.begin(), plan.stages[s].layers.end());
  }
  plan.devices = std::move(devices);
  set_warm_ups(input.residency, plan);
  return plan;
}

void price(const PlannerInput& input, PlanCandidate& plan) {
  std::vector<FormulaStage> stages = formula_stages(input, plan.partition());
  for (std::size_t s = 0; s < stages.size(); ++s)
    add_recomputation(input, plan.stages[s].warm_up + 1, plan.stages[s].replicas, stages[s]);
  const FormulaTime time =
      formula_time(input.cluster, stages, input.residency, input.activation_transfers);
  plan.period_s = time.period_ns / 1e9;
  plan.bottleneck = time.bottleneck;
  plan.flush = time.flush;
  plan.traffic = time.traffic;
  for (std::uint32_t s = 0; s < stages.size(); ++s) {
    PlannedStage& stage = plan.stages[s];
    stage.compute = round_up(compute_ns(stages[s], input.residency, stage.replicas));
    stage.synchronization = round_up(
        all_reduce_ns(input.cluster, stages[s].devices, reduced_bytes(stages[s], input.residency)));
    stage.weight_versions = input.residency.versions(stage.warm_up + 1);
    HeldInputs inputs;
    if (s > 0) {
      const PlannedStage& front = plan.stages[s - 1];
      inputs = {stages[s - 1].cut_bytes,
                inputs_held(front.replicas, front.warm_up + 1, stage.replicas)};
    }
    const double state = input.optimizer_state * input.residency.optimizer_share(stage.replicas);
    stage.peak_memory = {std::llround(
        std::ceil(peak_memory(stages[s], stage.warm_up + 1, inputs, input.residency, state)))};
  }
}

std::vector<PlanCandidate> with_variants(const PlannerInput& input,
                                         const std::vector<PlanCandidate>& plans) {
  std::vector<PlanCandidate> all;
  for (const PlanCandidate& plan : plans) {
    all.push_back(plan);
    if (plan.stages.size() == 1 || input.residency.micro_batches) continue;
    for (const std::uint32_t extra : {0U, 1U}) {
      PlanCandidate deeper = with_deeper_warm_ups(input, plan, extra);
      if (same_warm_ups(deeper, all.back())) continue;
      if (!fits(input, deeper)) break;
      all.push_back(std::move(deeper));
    }
  }
  if (all.size() > std::max(1U, input.candidates)) all.resize(std::max(1U, input.candidates));
  return all;
}

std::vector<PlanCandidate> even_plans(const PlannerInput& input) {
  const std::uint32_t devices = devices_of(input);
  const std::vector<LayerId> order = input.graph.topological_order();
  std::vector<Duration> times;
  times.reserve(order.size());
  for (const LayerId layer : order) {
    const LayerCosts& cost = input.costs[layer.value];
    times.push_back(cost.forward.mean + cost.backward.mean);
  }
  const auto layers = static_cast<std::uint32_t>(order.size());
  std::vector<PlanCandidate> plans;
  const auto add = [&](std::uint32_t stages, std::uint32_t replicas) {
    std::vector<std::uint32_t> stage_of;
    stage_of.reserve(layers);
    for (const std::uint32_t count : balanced_counts(times, stages))
      stage_of.insert(stage_of.end(), count, stage_of.empty() ? 0 : stage_of.back() + 1);
    plans.push_back(cut_plan(input, order, stage_of, first_devices(std::vector(stages, replicas))));
    price(input, plans.back());
  };
  add(1, 1);
  const std::uint32_t max = std::min({devices, layers, input.stages_at_most.value_or(devices)});
  for (std::uint32_t stages = 1; stages <= max; ++stages) {
    if (std::int64_t{stages} * layers > kMaxBalanced) break;
    int tried = 0;
    for (std::uint32_t r = input.straight ? 1 : devices / stages; r > 0 && tried < 3; --r) {
      if (!input.residency.takes(r) || (stages == 1 && r == 1)) continue;
      add(stages, r);
      ++tried;
    }
  }
  return plans;
}

std::vector<PlanCandidate> plans_next_to(const PlannerInput& input, const PlanCandidate& plan) {
  struct Shape {
    std::vector<std::size_t> layers;  // per stage
    std::vector<std::uint32_t> replicas;
  };
  Shape own;
  for (const PlannedStage& stage : plan.stages) {
    own.layers.push_back(stage.layers.size());
    own.replicas.push_back(stage.replicas);
  }
  const std::uint32_t devices = devices_of(input);
  std::vector<PlanCandidate> plans;
  const auto add = [&](const Shape& shape) {
    std::uint32_t used = 0;
    for (std::size_t s = 0; s < shape.layers.size(); ++s) {
      const std::uint32_t r = shape.replicas[s];
      used += r;
      if (shape.layers[s] == 0 || r == 0 || !input.residency.takes(r)) return;
      if (input.straight && r > 1) return;
    }
    if (used > devices || shape.layers.size() > input.stages_at_most.value_or(devices)) return;
    std::vector<std::uint32_t> stage_of;
    for (std::uint32_t s = 0; s < shape.layers.size(); ++s)
      stage_of.insert(stage_of.end(), shape.layers[s], s);
    plans.push_back(
        cut_plan(input, plan.order, stage_of,
                 shape.replicas == own.replicas ? plan.devices : first_devices(shape.replicas)));
    price(input, plans.back());
  };
  const std::size_t stages = own.layers.size();
  for (std::size_t s = 0; s < stages; ++s) {
    for (const int more : {1, -1}) {
      Shape shape = own;
      do shape.replicas[s] += static_cast<std::uint32_t>(more);
      while (shape.replicas[s] > 0 && shape.replicas[s] < devices &&
             !input.residency.takes(shape.replicas[s]));
      add(shape);
    }
    if (own.layers[s] > 1) {
      Shape shape = own;
      const auto at = static_cast<std::ptrdiff_t>(s);
      shape.layers[s] = own.layers[s] / 2;
      shape.layers.insert(shape.layers.begin() + at, own.layers[s] - shape.layers[s]);
      shape.replicas[s] = std::max(1U, own.replicas[s] / 2);
      shape.replicas.insert(shape.replicas.begin() + at, shape.replicas[s]);
      add(shape);
    }
    if (s + 1 == stages) continue;
    for (const bool forwards : {true, false}) {
      const std::size_t from = forwards ? s : s + 1;
      const std::size_t to = forwards ? s + 1 : s;
      Shape cut = own;
      --cut.layers[from];
      ++cut.layers[to];
      add(cut);
      Shape moved = own;
      --moved.replicas[from];
      ++moved.replicas[to];
      add(moved);
    }
    Shape merged = own;
    merged.layers[s] += own.layers[s + 1];
    merged.replicas[s] += own.replicas[s + 1];
    while (!input.residency.takes(merged.replicas[s])) --merged.replicas[s];
    const auto next = static_cast<std::ptrdiff_t>(s) + 1;
    merged.layers.erase(merged.layers.begin() + next);
    merged.replicas.erase(merged.replicas.begin() + next);
    add(merged);
  }
  return plans;
}

Plans plans_by_hand(const PlannerInput& input) {
  Plans plans;
  plans.by_hand = true;
  plans.one_device_s = one_device_ns(input) / 1e9;
  add_whole_model(input, plans);
  return plans;
}

void add_whole_model(const PlannerInput& input, Plans& plans) {
  plans.data_parallel = data_parallel(input, devices_of(input));
  const DataParallelPlan alone = data_parallel(input, 1);
  plans.one_device_memory = alone.peak_memory;
  plans.one_device_fits = alone.fits;
}

Diagnostic planning_cancelled() {
  Diagnostic diagnostic;
  diagnostic.message = "planning was interrupted";
  diagnostic.fault = Fault::infeasible;
  return diagnostic;
}

}  // namespace plumbline
