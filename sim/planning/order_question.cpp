// Times from the graph's costs, bytes from the stages' memory.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/order_question.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "sim/engine/stage_memory.h"

namespace plumbline {
namespace {

/// The time of each op, on average over the copies, which all run the same order.
void add_own_times(const TrainingSetup& setup, OrderProblem& problem) {
  const LengthCosts& lengths = *setup.costs.lengths;
  const bool recomputes = setup.rules.recompute != Recompute::none;
  problem.own_time.resize(problem.ops());
  for (std::uint32_t s = 0; s < problem.stage_count(); ++s) {
    for (std::uint32_t m = 0; m < problem.micro_batches; ++m) {
      std::array<OrderTime, kOrderKinds> sums{};
      for (std::uint32_t copy = 0; copy < setup.copies(); ++copy) {
        const StageCost& cost = lengths.kinds[lengths.kind(m, copy)].stages[s];
        const Duration again = recomputes ? cost.again : Duration{};
        sums[0] += cost.forward.count();
        sums[1] += ((problem.split ? cost.backward_input : cost.backward) + again).count();
        sums[2] += cost.backward_weight.count();
      }
      for (std::size_t kind = 0; kind < problem.kinds(); ++kind) {
        problem.own_time[problem.id(static_cast<OrderKind>(kind), s, m)] =
            sums[kind] / setup.copies() + setup.rules.overheads.per_op.count();
      }
    }
  }
}

/// Adds the times of transfers: of each boundary the longest in the graph; of micro-batches of
/// unlike length, the shortest.
void add_transfers(const OpGraph& graph, OrderProblem& problem) {
  const bool shortest = !problem.own_time.empty();
  std::set<std::pair<std::uint32_t, ActivityKind>> seen;
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const Activity& activity = graph.activities[node];
    if (!is_transfer(activity.kind)) continue;
    const OrderTime time = (graph.cost(node).hold + graph.cost(node).latency).count();
    const std::uint32_t fed = activity.stage.value;
    OrderTime& known = activity.kind == ActivityKind::activation_transfer
                           ? problem.stages[fed - 1].to_next
                           : problem.stages[fed + 1].to_previous;
    const bool is_first = seen.insert({fed, activity.kind}).second;
    known = is_first ? time : shortest ? std::min(known, time) : std::max(known, time);
  }
}

/// The limit in bytes. The rest of a device's memory is held throughout.
OrderLimit limit_in_bytes(const Outcome& outcome, const OrderProblem& problem) {
  const TrainingSetup& setup = outcome.setup;
  OrderLimit limit;
  const std::uint32_t copies = outcome.graph.slots() / problem.devices;
  for (std::uint32_t slot = 0; slot < problem.devices; ++slot) {
    const MemoryParts& peak = outcome.memory[std::size_t{slot} * copies].peak;
    const Bytes throughout = peak.sum() - peak.activations - peak.buffers;
    limit.room.push_back(outcome.memory_limit(std::size_t{slot} * copies)->count -
                         throughout.count);
  }
  const auto& lengths = setup.costs.lengths;
  const std::vector<StageMemory> stages =
      stage_memory(lengths ? lengths->kinds.back() : setup.costs, setup.schedule.shape.positions,
                   setup.rules.recompute);
  for (const StageMemory& stage : stages) {
    limit.forward.push_back((stage.kept + stage.received_input).count);
    const Bytes again = problem.split ? stage.recomputed_by_input : stage.again;
    limit.backward.push_back((again + stage.received_gradient).count);
    limit.during.push_back(0);
  }
  return limit;
}

/// What follows the ops of each device in any order: the updates, and the overhead of an iteration.
/// Of several copies of a device, the most.
std::vector<OrderTime> after_ops(const OpGraph& graph, std::uint32_t devices) {
  std::vector<OrderTime> updates(graph.slots(), 0);
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const std::uint32_t slot = graph.nodes[node].resource;
    if (graph.activities[node].kind == ActivityKind::update && slot < graph.slots())
      updates[slot] += graph.cost(node).hold.count();
  }
  const std::uint32_t copies = graph.slots() / devices;
  const OrderTime overhead = graph.cost(graph.mini_batches.front().gate).hold.count();
  std::vector<OrderTime> after(devices, overhead);
  for (std::uint32_t slot = 0; slot < graph.slots(); ++slot)
    after[slot / copies] = std::max(after[slot / copies], overhead + updates[slot]);
  return after;
}

}  // namespace

bool gives_split(const TrainingSetup& setup) {
  const std::vector<Layer>& layers = setup.model->graph.layers();
  const std::vector<LayerCosts>& costs = setup.model->profile.measurements.front().layers;
  const bool knows = std::any_of(layers.begin(), layers.end(),
                                 [](const Layer& layer) { return layer.parameters.count > 0; });
  bool some = false;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (costs[i].split) {
      some = some || costs[i].split->weight.mean.count() > 0;
    } else if (costs[i].backward.mean.count() > 0 &&
               !(knows && layers[i].parameters.count == 0 && layers[i].tied_to.empty())) {
      return false;
    }
  }
  return some;
}

OrderProblem order_question(const Outcome& outcome, std::optional<double> in_flight) {
  const TrainingSetup& setup = outcome.setup;
  const PipelineShape& shape = setup.schedule.shape;
  OrderProblem problem;
  problem.devices = shape.slots;
  problem.micro_batches = shape.micro_batches;
  problem.split = gives_split(setup);
  for (std::uint32_t s = 0; s < shape.stages(); ++s) {
    const auto time = [&](OpKind kind) {
      return outcome.graph.cost_of({s}, static_cast<std::size_t>(kind)).hold.count();
    };
    OrderStage stage;
    stage.device = shape.stage_slots[s].front();
    stage.time[0] = time(OpKind::forward);
    stage.time[1] = time(problem.split ? OpKind::backward_input : OpKind::backward);
    stage.time[2] = problem.split ? time(OpKind::backward_weight) : 0;
    problem.stages.push_back(stage);
  }
  if (setup.costs.lengths) add_own_times(setup, problem);
  add_transfers(outcome.graph, problem);
  if (!outcome.graph.flushes) {
    problem.goal = OrderGoal::span;
    problem.after = after_ops(outcome.graph, problem.devices);
  }
  if (setup.cluster.memory) problem.limits.push_back(limit_in_bytes(outcome, problem));
  if (in_flight) {
    OrderLimit limit;
    limit.room.assign(problem.devices, static_cast<std::int64_t>(std::floor(*in_flight)));
    limit.forward.assign(problem.stages.size(), 1);
    limit.backward.assign(problem.stages.size(), 0);
    limit.during.assign(problem.stages.size(), 0);
    problem.limits.push_back(std::move(limit));
  }
  return problem;
}

}  // namespace plumbline
