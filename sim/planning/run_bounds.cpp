// The floor of the memory, then the longest chain through one device.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/run_bounds.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "sim/graph/op_classes.h"
#include "sim/planning/planning.h"
#include "sim/planning/recomputation_choices.h"
#include "sim/scenario/placement.h"
#include "sim/setup/resolve_setup.h"

namespace plumbline {
namespace {

/// The times of all ops of a setup, in nanoseconds, as its graph has them.
class OpTimes {
 public:
  explicit OpTimes(const TrainingSetup& setup)
      : early_(setup.rules.recompute_early), classes_(setup.schedule.shape, setup.rules, graph_) {
    graph_.stage_slots = setup.schedule.shape.stage_slots;
    graph_.copies_represented = setup.copies();
    classes_.add(setup.costs);
  }
  OpTimes(const OpTimes&) = delete;
  OpTimes& operator=(const OpTimes&) = delete;

  std::int64_t of(StageId stage, OpKind kind, MicroBatchId micro_batch) const {
    return time(classes_.of(stage, static_cast<std::size_t>(kind), micro_batch.value, 0));
  }
  std::int64_t of(const Op& op) const { return of(op.stage, op.kind, op.micro_batch); }
  /// The part of a whole backward that needs its gradient.
  std::int64_t behind_gradient(StageId stage, MicroBatchId micro_batch) const {
    return early_ ? time(classes_.of_rest_of_backward(stage, micro_batch.value, 0))
                  : of(stage, OpKind::backward, micro_batch);
  }
  std::int64_t update(std::uint32_t stage) const {
    return time(OpGraph::class_of({stage}, OpGraph::kUpdateClass));
  }
  std::int64_t longest() const {
    std::int64_t max = 0;
    for (const Cost& cost : graph_.costs) max = std::max(max, cost.hold.count());
    return max;
  }

 private:
  std::int64_t time(std::uint32_t cost) const { return graph_.costs[cost].hold.count(); }

  bool early_;
  OpGraph graph_;
  OpClasses classes_;
};

/// Whether the longest chain of plain ops says anything of the time.
bool is_plain(const Scenario& scenario, const TrainingSetup& setup) {
  return setup.rules.flushes && !setup.schedule.asynchronous && setup.schedule.partners.empty() &&
         setup.costs.slowdowns.empty() && setup.costs.updates_at_once.empty() && !scenario.noise;
}

/// The longest chain of a setup's ops through one device, in nanoseconds.
class Chains {
 public:
  explicit Chains(const TrainingSetup& setup)
      : setup_(setup),
        shape_(setup.schedule.shape),
        lists_(setup.schedule.lists()),
        stages_of_(stages_of_slots(shape_.stage_slots, shape_.slots)),
        times_(setup),
        splits_(shape_.stages(), false),
        wholes_(shape_.stages(), false) {
    for (const std::vector<Op>& list : lists_) {
      for (const Op& op : list) {
        if (op.kind == OpKind::backward_input) splits_[op.stage.value] = true;
        if (op.kind == OpKind::backward) wholes_[op.stage.value] = true;
      }
    }
  }

  /// `more`: the time by which one backward of each slot is longer, summed over its stages.
  /// `left_out`: further micro-batches that the setup does not have. Nothing if the sums could
  /// overflow.
  std::optional<std::int64_t> longest(const std::vector<std::int64_t>& more,
                                      std::uint32_t left_out) const {
    const std::int64_t micro_batches = std::int64_t{shape_.micro_batches} + left_out;
    constexpr double limit = 1e18;  // of the 9.2e18 ns that 64 bits hold
    const double ops = 4.0 * shape_.stages() * static_cast<double>(micro_batches + 1);
    if (ops * static_cast<double>(times_.longest()) > limit) return std::nullopt;
    std::int64_t passes = 0;
    std::int64_t updates = 0;
    for (std::uint32_t slot = 0; slot < lists_.size(); ++slot) {
      if (static_cast<double>(more[slot]) * static_cast<double>(micro_batches) > limit)
        return std::nullopt;
      passes = std::max(passes, through(lists_[slot]) + left_out * of_micro_batch(slot) +
                                    more[slot] * micro_batches);
      updates = std::max(updates, updates_of(slot));
    }
    return passes + updates + setup_.rules.overheads.per_iteration.count();
  }

 private:
  std::int64_t through(const std::vector<Op>& list) const {
    std::int64_t sum = 0;
    for (const Op& op : list) sum += times_.of(op);
    return list.empty() ? 0 : before(list.front()) + sum + after(list);
  }

  /// The forwards in front of the stage of a list's first op.
  std::int64_t before(const Op& first) const {
    if (first.kind != OpKind::forward) return 0;
    std::int64_t sum = 0;
    for (std::uint32_t s = 0; s < first.stage.value; ++s)
      sum += times_.of({s}, OpKind::forward, first.micro_batch);
    return sum;
  }

  /// The backwards in front of the stage of a list's last backward, without the ops of the list
  /// that may run beside them.
  std::int64_t after(const std::vector<Op>& list) const {
    std::int64_t beside = 0;
    for (auto op = list.rbegin(); op != list.rend(); ++op) {
      if (op->kind != OpKind::backward && op->kind != OpKind::backward_input) {
        beside += times_.of(*op);
        continue;
      }
      std::int64_t sum = 0;
      for (std::uint32_t s = 0; s < op->stage.value; ++s) {
        const std::int64_t whole = times_.behind_gradient({s}, op->micro_batch);
        const std::int64_t input = times_.of({s}, OpKind::backward_input, op->micro_batch);
        sum += !splits_[s] ? whole : !wholes_[s] ? input : std::min(whole, input);
      }
      return std::max<std::int64_t>(0, sum - beside);
    }
    return 0;
  }

  /// The sum of `time(s)` over the stages of a slot.
  template <class Time>
  std::int64_t sum_over(std::uint32_t slot, Time&& time) const {
    std::int64_t sum = 0;
    for (const std::uint32_t s : stages_of_[slot]) sum += time(s);
    return sum;
  }

  std::int64_t updates_of(std::uint32_t slot) const {
    return sum_over(slot, [&](std::uint32_t s) { return times_.update(s); });
  }

  /// All ops of one more micro-batch.
  std::int64_t of_micro_batch(std::uint32_t slot) const {
    return sum_over(slot, [&](std::uint32_t s) {
      const auto of = [&](OpKind kind) { return times_.of({s}, kind, {0}); };
      return of(OpKind::forward) + (splits_[s]
                                        ? of(OpKind::backward_input) + of(OpKind::backward_weight)
                                        : of(OpKind::backward));
    });
  }

  const TrainingSetup& setup_;
  const PipelineShape& shape_;
  OpLists lists_;
  std::vector<std::vector<std::uint32_t>> stages_of_;  ///< By slot.
  OpTimes times_;
  std::vector<bool> splits_;  ///< Whether backwards of a stage are split.
  std::vector<bool> wholes_;  ///< Whether some are not.
};

/// The micro-batches of the scenario's run, or fewer that tell all that a bound asks for: what
/// devices hold, and the first and last ops of each.
std::uint32_t telling_micro_batches(const Scenario& scenario) {
  const ScheduleChoice& schedule = scenario.schedule;
  const Plan& plan = scenario.plan;
  const bool is_straight = !scenario.lengths && schedule.rule && !schedule.file && !plan.replicas &&
                           !plan.devices && !plan.warm_up && schedule.group == 0 &&
                           schedule.slices.count == 1 && scenario.model->profile.in_flight.empty();
  if (!is_straight) return schedule.micro_batches;
  const std::uint32_t devices = stage_count(scenario) / std::max(1U, schedule.chunks);
  return settled_micro_batches(*schedule.rule, devices, schedule.micro_batches);
}

/// The recompute that a device cannot do without, in ns for one micro-batch of each of its stages:
/// one number per slot. Nothing if some device cannot fit.
std::optional<std::vector<std::int64_t>> least_recompute(const Scenario& scenario,
                                                         const TrainingSetup& none) {
  std::vector<std::int64_t> more(none.schedule.shape.slots, 0);
  const RecomputationChoices choices(scenario, none);
  for (std::size_t g = 0; g < choices.groups().size(); ++g) {
    if (!choices.may_fit(g)) return std::nullopt;
    const std::int64_t least = choices.least_by_floor(g);
    if (least > choices.groups()[g].layers) return std::nullopt;
    // Slots that share stages share their recompute in a way that the floor does not know.
    const std::vector<std::uint32_t>& slots = choices.groups()[g].slots;
    if (slots.size() == 1) more[slots.front()] = choices.least_time(g, least).count();
  }
  return more;
}

/// Whether each device may fit with the numbers of recomputed layers that the setup has. Of
/// micro-batches of unlike length, which are in flight together is not known: all as the shortest.
bool may_fit(const TrainingSetup& setup) {
  const auto memory = setup.memory_of_slots();
  if (!memory) return true;
  const auto& lengths = setup.costs.lengths;
  const MemoryFloor floor(setup,
                          {stage_memory(lengths ? lengths->kinds.front() : setup.costs,
                                        setup.schedule.shape.positions, setup.rules.recompute)});
  const std::vector<std::int64_t> counts(setup.partition.stages.size(), 0);
  for (std::uint32_t slot = 0; slot < memory->size(); ++slot) {
    if (floor.of(slot, counts) > (*memory)[slot]) return false;
  }
  return true;
}

}  // namespace

double RunBounds::throughput() const {
  return iteration_time_s > 0 ? samples_per_iteration / iteration_time_s
                              : std::numeric_limits<double>::infinity();
}

Result<RunBounds> run_bounds(const Scenario& scenario) {
  const bool fewest = scenario.schedule.recompute.as_few_as_fit() && scenario.cluster.memory;
  Scenario without = scenario;
  if (fewest) without.schedule.recompute.layers = std::int64_t{0};
  if (!is_resolved(without)) return RunBounds{};
  without.schedule.micro_batches = telling_micro_batches(scenario);
  const auto setup = resolve_setup(without);
  if (!setup) return setup.problems();
  RunBounds bounds;
  bounds.samples_per_iteration = setup->copies() *
                                 static_cast<double>(scenario.schedule.micro_batches) *
                                 static_cast<double>(setup->micro_batch_size);
  bounds.devices =
      static_cast<std::int64_t>(setup->devices.size()) * setup->copies() * setup->group_devices();
  bounds.stages = static_cast<std::int64_t>(setup->partition.stages.size());
  std::vector<std::int64_t> more(setup->schedule.shape.slots, 0);
  if (fewest) {
    auto least = least_recompute(without, *setup);
    bounds.may_fit = least.has_value();
    const bool is_exact = setup->slices == 1 && setup->model->profile.in_flight.empty();
    if (least && is_exact) more = *std::move(least);
  } else {
    bounds.may_fit = may_fit(*setup);
  }
  if (!bounds.may_fit || !is_plain(scenario, *setup)) return bounds;
  const std::uint32_t left_out = scenario.schedule.micro_batches - without.schedule.micro_batches;
  if (const auto chain = Chains(*setup).longest(more, left_out))
    bounds.iteration_time_s = static_cast<double>(*chain) / 1e9;
  return bounds;
}

}  // namespace plumbline
