// The order of the ops on each device: by the schedule's rule, its chunks, or a file.
//
// SPDX-License-Identifier: MIT
#include "sim/setup/setup_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "schedules/order/check.h"
#include "schedules/order/pairs.h"
#include "sim/scenario/placement.h"
#include "sim/setup/file_order.h"
#include "sim/setup/setup_checks.h"

namespace plumbline {
namespace {

/// The window of each position: one warm-up per position.
Result<std::vector<std::uint32_t>> position_windows(const Scenario& scenario,
                                                    const PipelineShape& shape,
                                                    const Partition& partition) {
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
      if (*first + 1 < scenario.schedule.slices.count) {
        return input_error(
            given->mark,
            fmt::format(
                "plan.warm_up is {} for stage {}, too few for {} slices: the first backward "
                "is that of a micro-batch's last one",
                *first, position.first_stage, scenario.schedule.slices.count),
            fmt::format("it counts slices: {} or more", scenario.schedule.slices.count - 1));
      }
      warm_up->push_back(static_cast<std::uint32_t>(*first));
    }
  }
  return windows(*scenario.schedule.rule, shape, warm_up);
}

/// The value of plan.warm_up if its length is the number of stages; else empty. position_windows
/// checks the length.
std::vector<std::int64_t> given_warm_up(const Scenario& scenario, std::size_t stages) {
  const auto& given = scenario.plan.warm_up;
  if (!given || given->value.size() != stages) return {};
  return given->value;
}

/// The number of micro-batches to run. Also sets the number of mini-batches and the steady window.
std::int64_t micro_batches_to_run(const Scenario& scenario, bool for_run, TrainingSetup& setup) {
  const ScheduleChoice& choice = scenario.schedule;
  std::int64_t micro_batches = choice.micro_batches;
  setup.rules.mini_batches = choice.mini_batches;
  if (!choice.asynchronous()) return micro_batches * choice.slices.count;
  micro_batches *= choice.mini_batches;
  setup.rules.mini_batches = 1;
  setup.steady_window =
      steady_window(setup.replicas, choice.updates, given_warm_up(scenario, setup.replicas.size()));
  if (scenario.lengths)  // all lengths come once in each mini-batch
    setup.steady_window.multiple =
        std::lcm(setup.steady_window.multiple, std::uint32_t{choice.micro_batches});
  const std::int64_t min = setup.steady_window.min_run();
  if (for_run && micro_batches < min) {
    setup.notes.push_back(
        fmt::format("{} micro-batches are run instead of {}, so that the steady state shows", min,
                    micro_batches));
    micro_batches = min;
  }
  if (scenario.overheads.per_iteration.count() > 0)
    setup.notes.emplace_back("overhead.per_iteration does not apply to an asynchronous schedule");
  return micro_batches;
}

/// Adds a note on the number of micro-batches in a group, if it is not the number of devices.
void note_group(const Scenario& scenario, const ChunkShape& chunks, TrainingSetup& setup) {
  const std::uint32_t group = chunks.group_size();
  if (scenario.schedule.group > 0 || group == chunks.devices) return;
  const std::uint32_t last = chunks.micro_batches % group;
  setup.notes.push_back(fmt::format(
      "{} micro-batches are no multiple of {} devices: groups of {} go round{} (schedule.group)",
      chunks.micro_batches, chunks.devices, group,
      last > 0 ? fmt::format(", the last of {}", last) : ""));
}

/// The lists of a rule with chunks. An order that is still to be found has a stand-in: all
/// forwards, chunk by chunk, then all backwards.
OpLists lists_of(const ScheduleChoice& choice, const ChunkRule& rule, const ChunkShape& chunks,
                 const std::vector<std::uint32_t>& slots) {
  if (rule.lists != nullptr) return by_slot(rule.lists(chunks), slots);
  if (choice.wish && choice.wish->found) return *choice.wish->found;
  OpLists lists(chunks.devices);
  const auto placed = placed_stages(rule.placement, chunks);
  for (std::uint32_t s = 0; s < chunks.stages(); ++s) {
    for (std::uint32_t m = 0; m < chunks.micro_batches; ++m)
      lists[placed[s].front()].push_back({OpKind::forward, {s}, {m}});
  }
  for (std::uint32_t s = chunks.stages(); s-- > 0;) {
    for (std::uint32_t m = 0; m < chunks.micro_batches; ++m)
      lists[placed[s].front()].push_back({OpKind::backward, {s}, {m}});
  }
  return by_slot(lists, slots);
}

/// The order of a schedule with chunks.
std::optional<Diagnostics> add_order_of_chunks(const Scenario& scenario, const PipelineShape& shape,
                                               const ChunkRule& rule, TrainingSetup& setup) {
  const ScheduleChoice& choice = scenario.schedule;
  const ChunkShape chunks = chunk_shape(scenario, shape.stages());
  if (auto refused = rule.refuse(chunks, choice.micro_batches_mark, choice.name_mark))
    return Diagnostics{*refused};
  if (choice.group > choice.micro_batches) {
    return Diagnostics{
        input_error(choice.group_mark,
                    fmt::format("schedule.group is {}, but there are {} micro-batches",
                                choice.group, choice.micro_batches),
                    fmt::format("{} or fewer go round together", choice.micro_batches))};
  }
  if (scenario.plan.warm_up) {
    return Diagnostics{input_error(
        scenario.plan.warm_up->mark,
        fmt::format("plan.warm_up does not apply to the schedule '{}'", choice.rule->name),
        "it is for 1f1b, eager-1f1b and pipedream")};
  }
  const std::vector<std::uint32_t> slots = slots_of(placed_stages(rule.placement, chunks), shape);
  auto schedule = checked_schedule(std::string(choice.rule->name), false, shape,
                                   lists_of(choice, rule, chunks, slots),
                                   choice.group > 0 ? choice.group_mark : choice.name_mark);
  if (!schedule) {
    Diagnostics problems = schedule.problems();
    if (choice.group > 0) {
      problems.front().help = fmt::format(
          "schedule.group: {} or more, and with a last group of as many: without it {} go round",
          chunks.devices, usual_group({chunks.devices, chunks.chunks, chunks.micro_batches}));
    }
    return problems;
  }
  setup.schedule = *std::move(schedule);
  if (rule.takes_group) note_group(scenario, chunks, setup);
  return std::nullopt;
}

/// Whether a device runs the stages of a position directly one after the other: their F upwards,
/// their B (or I) downwards.
bool runs_as_one(const Position& position, const std::vector<Op>& list) {
  const std::uint32_t last = position.last_stage();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Op& op = list[i];
    if (op.stage.value < position.first_stage || op.stage.value > last ||
        op.kind == OpKind::backward_weight)
      continue;
    const bool up = op.kind == OpKind::forward;
    if (op.stage.value != (up ? position.first_stage : last)) return false;
    for (std::uint32_t k = 1; k < position.stages; ++k) {
      const Op next{op.kind, {up ? op.stage.value + k : op.stage.value - k}, op.micro_batch};
      if (++i == list.size() || list[i] != next) return false;
    }
  }
  return true;
}

/// Splits positions into stages where necessary. Neighbouring stages of a device are one position,
/// with two exceptions. In a schedule with chunks each chunk is one position. A file's order may
/// run the stages separately.
void part_positions(const ScheduleChoice& choice, PipelineShape& shape) {
  const auto is_one = [&](const Position& position) {
    return position.stages == 1 ||
           std::all_of(choice.file->lists.begin(), choice.file->lists.end(),
                       [&](const std::vector<Op>& list) { return runs_as_one(position, list); });
  };
  const bool parts = choice.file
                         ? !std::all_of(shape.positions.begin(), shape.positions.end(), is_one)
                         : choice.chunk_rule() != nullptr;
  if (parts) shape.positions = stage_by_stage(shape.positions);
}

/// Adds the order of the ops: by the schedule's rule, or as the file gives it.
std::optional<Diagnostics> add_schedule(const Scenario& scenario, const PipelineShape& shape,
                                        TrainingSetup& setup) {
  const ScheduleChoice& choice = scenario.schedule;
  if (choice.file) return add_order_of_file(scenario, shape, setup);
  if (const ChunkRule* const rule = choice.chunk_rule())
    return add_order_of_chunks(scenario, shape, *rule, setup);
  if (auto refused = check_shared_slots(scenario, shape, setup.devices))
    return Diagnostics{*refused};
  auto windows = position_windows(scenario, shape, setup.partition);
  if (!windows) return windows.problems();
  auto schedule = generate(*choice.rule, shape, *windows,
                           scenario.plan.warm_up ? scenario.plan.warm_up->mark : choice.name_mark);
  if (!schedule) return schedule.problems();
  setup.schedule = *std::move(schedule);
  setup.windows = *std::move(windows);
  return std::nullopt;
}

}  // namespace

std::optional<Diagnostics> add_order(const Scenario& scenario, bool for_run, TrainingSetup& setup) {
  if (auto refused = check_accumulation(scenario, setup.replicas)) return Diagnostics{*refused};
  if (auto refused = check_slices_on(scenario.schedule.slices, setup.replicas))
    return Diagnostics{*refused};
  const std::int64_t micro_batches = micro_batches_to_run(scenario, for_run, setup);
  if (auto refused = check_many_ops(scenario, setup, micro_batches)) return Diagnostics{*refused};
  PipelineShape shape = pipeline_shape(setup.partition, static_cast<std::uint32_t>(micro_batches),
                                       scenario.schedule.slices.count);
  part_positions(scenario.schedule, shape);
  return add_schedule(scenario, shape, setup);
}

Result<std::vector<Schedule>> ways_to_run(const Scenario& scenario, const Schedule& schedule) {
  const ScheduleChoice& choice = scenario.schedule;
  if (!choice.overlaps_pairs) return std::vector<Schedule>{schedule};
  const auto refused = [&](const std::string& with, std::string help) {
    return Diagnostics{
        input_error(choice.pairs_mark, "schedule.pairs is overlapped, " + with, std::move(help))};
  };
  if (choice.asynchronous())
    return refused("but the schedule updates after every backward", "a schedule with a flush");
  if (choice.blocking)
    return refused("and schedule.transfers blocking", "schedule.transfers: overlapped");
  if (choice.slices.count > 1)
    return refused("and micro-batches are cut into slices", "leave schedule.slices out");
  if (scenario.sharing.reduces_each_backward() || scenario.sharing.gathers_passes()) {
    return refused(fmt::format("and training.zero_stage {}, which cuts each backward into buckets",
                               static_cast<int>(scenario.sharing.state)),
                   "training.zero_stage: 1 or 0; or training.reduce: behind-last-backward, and "
                   "with zero_stage 3 training.reshard: after-mini-batch");
  }
  PairStarts marked;
  if (choice.file) marked = choice.file->pairs;
  if (choice.chunk_rule() && choice.chunk_rule()->has_own_pairs) marked = dual_pairs(schedule);
  return pair_up(schedule, marked, choice.pairs_mark);
}

}  // namespace plumbline
