// The passes from a scenario to a pipeline: stages, devices, order.
//
// SPDX-License-Identifier: MIT
#include "sim/prediction/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "schedules/order/check.h"
#include "schedules/order/in_flight.h"
#include "schedules/order/pairs.h"
#include "schedules/order/weight_versions.h"
#include "sim/engine/simulate.h"
#include "sim/prediction/buckets.h"
#include "sim/prediction/file_order.h"
#include "sim/prediction/pipeline_checks.h"
#include "sim/prediction/predict_resolved.h"
#include "sim/scenario/placement.h"

namespace plumbline {
namespace {

/// The window of each position: one warm-up a position.
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

/// What plan.warm_up says, where it fits the stages (which is checked with the windows).
std::vector<std::int64_t> given_warm_up(const Scenario& scenario, std::size_t stages) {
  const auto& given = scenario.plan.warm_up;
  if (!given || given->value.size() != stages) return {};
  return given->value;
}

/// The micro-batches that are run, and those of one mini-batch of them.
std::int64_t micro_batches_to_run(const Scenario& scenario, bool for_run, Pipeline& pipeline) {
  const ScheduleChoice& choice = scenario.schedule;
  std::int64_t micro_batches = choice.micro_batches;
  pipeline.mini_batches = choice.mini_batches;
  if (!choice.asynchronous()) return micro_batches * choice.slices.count;
  micro_batches *= choice.mini_batches;
  pipeline.mini_batches = 1;
  pipeline.steady_window = steady_window(pipeline.replicas, choice.updates,
                                         given_warm_up(scenario, pipeline.replicas.size()));
  const std::int64_t min = pipeline.steady_window.min_run();
  if (for_run && micro_batches < min) {
    pipeline.notes.push_back(
        fmt::format("{} micro-batches are run instead of {}, so that the steady state shows", min,
                    micro_batches));
    micro_batches = min;
  }
  if (scenario.overheads.per_iteration.count() > 0)
    pipeline.notes.emplace_back(
        "overhead.per_iteration does not apply to an asynchronous schedule");
  return micro_batches;
}

/// Tells what was assumed of backwards that an order with W runs in two parts.
void tell(const AssumedSplit& split, Pipeline& pipeline) {
  pipeline.split = split;
  if (std::string note = split.note(); !note.empty()) pipeline.notes.push_back(std::move(note));
  if (std::string estimate = split.estimate(); !estimate.empty())
    pipeline.estimated.push_back(std::move(estimate));
}

/// What goes round together, where it is not what the devices say.
void note_group(const Scenario& scenario, const ChunkShape& chunks, Pipeline& pipeline) {
  const std::uint32_t group = chunks.group_size();
  if (scenario.schedule.group > 0 || group == chunks.devices) return;
  const std::uint32_t last = chunks.micro_batches % group;
  pipeline.notes.push_back(fmt::format(
      "{} micro-batches are no multiple of {} devices: groups of {} go round{} (schedule.group)",
      chunks.micro_batches, chunks.devices, group,
      last > 0 ? fmt::format(", the last of {}", last) : ""));
}

/// The order of a schedule with chunks.
std::optional<Diagnostics> add_order_of_chunks(const Scenario& scenario, const PipelineShape& shape,
                                               const ChunkRule& rule, Pipeline& pipeline) {
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
                                   by_slot(rule.lists(chunks), slots),
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
  pipeline.schedule = *std::move(schedule);
  if (rule.takes_group) note_group(scenario, chunks, pipeline);
  return std::nullopt;
}

/// Whether a device runs the stages of a position one right behind the other: their F upwards,
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

/// Neighbouring stages of a device are one position unless the schedule has chunks, each of which
/// is one, or a file's order runs them otherwise.
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

/// The order of the ops: by the schedule's rule, or as the file gives it.
std::optional<Diagnostics> add_schedule(const Scenario& scenario, const PipelineShape& shape,
                                        Pipeline& pipeline) {
  const ScheduleChoice& choice = scenario.schedule;
  if (choice.file) return add_order_of_file(scenario, shape, pipeline);
  if (const ChunkRule* const rule = choice.chunk_rule())
    return add_order_of_chunks(scenario, shape, *rule, pipeline);
  if (auto refused = check_shared_slots(scenario, shape, pipeline.devices))
    return Diagnostics{*refused};
  auto windows = position_windows(scenario, shape, pipeline.partition);
  if (!windows) return windows.problems();
  auto schedule = generate(*choice.rule, shape, *windows,
                           scenario.plan.warm_up ? scenario.plan.warm_up->mark : choice.name_mark);
  if (!schedule) return schedule.problems();
  pipeline.schedule = *std::move(schedule);
  pipeline.windows = *std::move(windows);
  return std::nullopt;
}

/// The schedule, or all ways to make pairs of its neighbours that overlap. Errors: what such a pair
/// cannot be simulated with.
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
  if (scenario.sharded >= Sharded::gradients) {
    return refused(fmt::format("and training.zero_stage {}, which cuts each backward into buckets",
                               static_cast<int>(scenario.sharded)),
                   "training.zero_stage: 1 or 0");
  }
  PairStarts marked;
  if (choice.file) marked = choice.file->pairs;
  if (choice.chunk_rule() && choice.chunk_rule()->has_own_pairs) marked = dual_pairs(schedule);
  return pair_up(schedule, marked, choice.pairs_mark);
}

/// Of each stage, the other devices in use on the server of its first device.
std::vector<std::uint32_t> neighbours_of_stages(const Pipeline& pipeline) {
  const auto server = [&](std::uint32_t device, std::uint32_t copy) {
    return (device * pipeline.copies + copy) / pipeline.cluster.levels.front().size;
  };
  std::map<std::uint32_t, std::uint32_t> used;
  for (const DeviceId device : pipeline.devices) {
    for (std::uint32_t copy = 0; copy < pipeline.copies; ++copy) ++used[server(device.value, copy)];
  }
  std::vector<std::uint32_t> neighbours;
  neighbours.reserve(pipeline.partition.stages.size());
  for (const Stage& stage : pipeline.partition.stages)
    neighbours.push_back(used.at(server(stage.devices.front().value, 0)) - 1);
  return neighbours;
}

/// Of each stage, of how many micro-batches a device has the activations at a time. Where all of
/// them are made again it has those of one, however many are in flight.
std::vector<std::uint32_t> max_kept(const Scenario& scenario, const Schedule& schedule) {
  const RecomputeChoice& recompute = scenario.schedule.recompute;
  const bool recomputes_all = recompute.kind == Recompute::full ||
                              (recompute.kind == Recompute::layers && !recompute.leaves_some());
  if (recomputes_all) return std::vector<std::uint32_t>(schedule.shape.stages(), 1);
  std::vector<std::uint32_t> kept = max_in_flight(schedule);
  for (std::uint32_t& held : kept)  // of whole micro-batches
    held = (held + scenario.schedule.slices.count - 1) / scenario.schedule.slices.count;
  return kept;
}

/// The costs of stages, by the order of their ops, and how they change beside others.
std::optional<Diagnostics> add_costs(const Scenario& scenario, std::vector<LayerCosts>& layers,
                                     Pipeline& pipeline) {
  const LayerGraph& graph = scenario.model.graph;
  const Profile& profile = scenario.model.profile;
  std::vector<std::uint32_t> neighbours(pipeline.partition.stages.size(), 0);
  if (scenario.neighbours_slow) neighbours = neighbours_of_stages(pipeline);
  const bool has_neighbours = std::any_of(neighbours.begin(), neighbours.end(),
                                          [](std::uint32_t count) { return count > 0; });
  std::vector<std::uint32_t> kept;
  if (!profile.in_flight.empty()) kept = max_kept(scenario, pipeline.schedule);
  if (!kept.empty() && !has_neighbours) {
    scale_in_flight(graph, profile.in_flight, pipeline.partition, kept, layers);
    if (auto refused = check_large_sums(scenario, layers)) return Diagnostics{*refused};
  }
  pipeline.costs = stage_costs(graph, layers, pipeline.partition, scenario.gradient_width);
  if (!scenario.neighbours_slow) return std::nullopt;
  std::vector<KindFactors> factors(pipeline.partition.stages.size(), profile.slowdown);
  if (!kept.empty() && has_neighbours) {
    for (std::size_t s = 0; s < factors.size(); ++s) {
      factors[s] = factors_in_flight(profile.slowdown, profile.in_flight, kept[s], neighbours[s]);
    }
  }
  pipeline.costs.slowdowns =
      stage_slowdowns(graph, layers, pipeline.partition, factors, profile.slowdown);
  const auto at_once = profile.slowdown.find(std::string(kUpdatesAtOnce));
  if (has_neighbours && at_once != profile.slowdown.end())
    pipeline.costs.updates_at_once = at_once->second;
  return std::nullopt;
}

void note_unshared(const Scenario& scenario, Pipeline& pipeline) {
  if (scenario.sharded == Sharded::nothing) return;
  const bool alone = std::all_of(pipeline.replicas.begin(), pipeline.replicas.end(),
                                 [&](std::uint32_t r) { return r * pipeline.copies == 1; });
  if (!alone) return;
  const std::vector<Layer>& layers = scenario.model.graph.layers();
  const bool steps_all = std::all_of(layers.begin(), layers.end(), [](const Layer& layer) {
    return layer.stepped() == layer.parameters;
  });
  const bool reduces_all = std::all_of(layers.begin(), layers.end(), [](const Layer& layer) {
    return layer.reduced() == layer.parameters;
  });
  const auto stage = static_cast<int>(scenario.sharded);
  if (steps_all) {
    pipeline.notes.push_back(fmt::format(
        "training.zero_stage is {}, but each stage is on one device: nothing is shared", stage));
  } else if (scenario.sharded >= Sharded::gradients && reduces_all) {
    pipeline.notes.push_back(
        fmt::format("training.zero_stage is {}, but layers that give their times or updates share "
                    "no more than the optimizer within their group, and there are no copies",
                    stage));
  }
}

void note_unreduced(const Scenario& scenario, Pipeline& pipeline) {
  if (!scenario.schedule.bucket || scenario.schedule.asynchronous()) return;  // told by its reader
  for (std::size_t s = 0; s < pipeline.partition.stages.size(); ++s) {
    if (is_shared(scenario, pipeline, s)) return;
  }
  pipeline.notes.emplace_back(
      "schedule.bucket does nothing here: each stage is on one device, and nothing is reduced");
}

/// What depends on the order of the ops: the costs of stages, buckets, versions of weights.
std::optional<Diagnostics> complete(const Scenario& scenario, std::vector<LayerCosts> layers,
                                    Pipeline& pipeline) {
  if (auto hang = order_communication(scenario, pipeline)) return Diagnostics{*hang};
  if (auto refused = check_sharing(scenario, pipeline)) return Diagnostics{*refused};
  // What each stage costs, with as many micro-batches in flight as the order leaves it.
  tell(split_backwards(scenario, pipeline.schedule, layers), pipeline);
  if (auto refused = add_costs(scenario, layers, pipeline)) return refused;
  add_buckets(scenario, layers, pipeline);
  pipeline.weights = weight_versions(pipeline.schedule, scenario.schedule.updates);
  if (auto refused = check_versions(scenario, pipeline)) return Diagnostics{*refused};
  return std::nullopt;
}

SimTime end_of_run(const OpGraph& graph) {
  if (!graph.rates_change()) return longest_path_end(graph);
  SimTime end;
  for (const Span& span : simulate(graph).spans) end = std::max(end, span.end);
  return end;
}

/// The pipeline with the first of the ways to run by which it has ended first.
Result<Pipeline> fastest_way(const Scenario& scenario, const std::vector<LayerCosts>& layers,
                             const Pipeline& pipeline, const std::vector<Schedule>& ways) {
  std::optional<Pipeline> best;
  SimTime earliest;
  for (const Schedule& way : ways) {
    Pipeline one = pipeline;
    one.schedule = way;
    if (auto problems = complete(scenario, layers, one)) return *problems;
    if (ways.size() == 1) return one;
    const auto graph = lower_pipeline(scenario, one);
    if (!graph) return graph.problems();
    const SimTime end = end_of_run(*graph);
    if (best && end >= earliest) continue;
    earliest = end;
    best = std::move(one);
  }
  return *std::move(best);
}

}  // namespace

Result<Pipeline> plan_pipeline(const Scenario& scenario, bool for_run, const Partition* as) {
  Pipeline pipeline;
  pipeline.notes = scenario.notes;
  pipeline.stages_raised_from = scenario.plan.stages_raised_from;

  // What each layer costs at this micro-batch size.
  SizedCosts sized = costs_at(scenario.model.profile, scenario.micro_batch_size);
  if (!sized.estimated.empty()) pipeline.estimated.push_back(sized.estimated);
  if (const SliceChoice& slices = scenario.schedule.slices; slices.count > 1) {
    cut_into_slices(sized.layers, slices.count);
    for (std::string& note : notes_on(slices, scenario.schedule.recompute.kind,
                                      !scenario.model.profile.estimated.empty()))
      pipeline.notes.push_back(std::move(note));
  }

  if (!scenario.neighbours_slow)
    run_alone(scenario.model.graph, scenario.model.profile.slowdown, sized.layers);
  if (auto refused = check_large_sums(scenario, sized.layers)) return *refused;

  // Layers to stages to devices.
  auto partition = as ? Result<Partition>(*as) : place(scenario, sized.layers);
  if (!partition) return partition.problems();
  pipeline.partition = *std::move(partition);
  auto recomputed = recomputed_layers(scenario.schedule.recompute, pipeline.partition);
  if (!recomputed) return recomputed.problems();
  pipeline.recomputed = *std::move(recomputed);
  keep_others(pipeline.partition, pipeline.recomputed, sized.layers);
  const auto stages = static_cast<std::uint32_t>(pipeline.partition.stages.size());
  pipeline.devices = devices_in_use(pipeline.partition);
  pipeline.copies = static_cast<std::uint32_t>(scenario.copies);
  for (const Stage& stage : pipeline.partition.stages)
    pipeline.replicas.push_back(static_cast<std::uint32_t>(stage.devices.size()));
  pipeline.cluster = scenario.cluster;
  if (!scenario.cluster_given)
    pipeline.cluster.levels.front().size = (pipeline.devices.back().value + 1) * pipeline.copies;
  if (const std::uint32_t spare = pipeline.devices_without_stage(); spare > 0)
    pipeline.notes.push_back(
        fmt::format("devices without a stage: {} of {}", spare, pipeline.cluster.device_count()));
  note_unreduced(scenario, pipeline);
  note_unshared(scenario, pipeline);
  // Who does what in which order.
  if (auto refused = check_accumulation(scenario, pipeline.replicas)) return *refused;
  if (auto refused = check_slices_on(scenario.schedule.slices, pipeline.replicas)) return *refused;
  const std::int64_t micro_batches = micro_batches_to_run(scenario, for_run, pipeline);
  if (auto refused = check_many_ops(scenario, stages, micro_batches, pipeline.mini_batches))
    return *refused;
  PipelineShape shape =
      pipeline_shape(pipeline.partition, static_cast<std::uint32_t>(micro_batches),
                     scenario.schedule.slices.count);
  part_positions(scenario.schedule, shape);
  if (auto problems_of_order = add_schedule(scenario, shape, pipeline)) return *problems_of_order;
  const auto ways = ways_to_run(scenario, pipeline.schedule);
  if (!ways) return ways.problems();
  return fastest_way(scenario, sized.layers, pipeline, *ways);
}

}  // namespace plumbline
