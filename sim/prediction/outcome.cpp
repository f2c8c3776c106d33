// The meaning of a trace: metrics, memory, closed form, notes.
//
// SPDX-License-Identifier: MIT
#include "sim/prediction/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/quantity.h"
#include "base/statistics.h"
#include "models/network/model_flops.h"
#include "sim/engine/period.h"

namespace plumbline {
namespace {

/// The time of an op of a stage.
Duration time_of(const OpGraph& graph, std::uint32_t stage, ActivityKind kind) {
  const auto place = kind == ActivityKind::update ? std::size_t{OpGraph::kUpdateClass}
                                                  : static_cast<std::size_t>(kind);
  return graph.cost_of({stage}, place).hold;
}

/// The times of each micro-batch of the first copy's first mini-batch, position by position.
std::vector<PipelineTimes> times_by_micro_batch(const TrainingSetup& setup, const OpGraph& graph) {
  const PipelineShape& shape = setup.schedule.shape;
  const std::size_t positions = shape.positions.size();
  PipelineTimes none;
  none.forward.resize(positions);
  none.backward.resize(positions);
  const bool early = setup.rules.recompute_early;
  if (early) none.again.resize(positions);
  std::vector<PipelineTimes> times(shape.micro_batches, none);
  std::vector<std::size_t> position_of(shape.stages());
  for (std::size_t i = 0; i < positions; ++i) {
    for (std::uint32_t k = 0; k < shape.positions[i].stages; ++k)
      position_of[shape.positions[i].first_stage + k] = i;
  }
  std::vector<bool> begun(std::size_t{shape.stages()} * shape.micro_batches, false);
  for (std::uint32_t node = 0; node <= graph.mini_batches.front().gate; ++node) {
    const Activity& activity = graph.activities[node];
    const ActivityKind kind = op_of(activity.kind);
    if (!is_op(kind) || graph.nodes[node].resource % graph.written_copies != 0) continue;
    const std::uint32_t m = activity.micro_batch.value;
    const std::size_t position = position_of[activity.stage.value];
    const Duration hold = graph.cost(node).hold;
    if (kind == ActivityKind::forward) {
      times[m].forward[position] += hold;
      continue;
    }
    const std::size_t place = std::size_t{activity.stage.value} * shape.micro_batches + m;
    const bool is_again = early && !begun[place];
    begun[place] = true;
    (is_again ? times[m].again : times[m].backward)[position] += hold;
  }
  return times;
}

/// The closed form for a schedule with chunks. All stages must be alike and links free.
std::optional<ClosedForm> formula_of_chunks(const TrainingSetup& setup, const OpGraph& graph) {
  const std::uint32_t stages = setup.schedule.shape.stages();
  const auto& order = setup.schedule.issue_order;
  const bool splits = std::any_of(order.begin(), order.end(),
                                  [](const Op& op) { return op.kind == OpKind::backward_input; });
  const bool has_whole = std::any_of(order.begin(), order.end(),
                                     [](const Op& op) { return op.kind == OpKind::backward; });
  ChunkTimes times;
  times.shape = {stages / setup.chunks, setup.chunks, setup.schedule.shape.micro_batches,
                 setup.group};
  for (std::uint32_t s = 0; s < stages; ++s) {
    const Duration backward = time_of(graph, s, ActivityKind::backward);
    const ChunkTimes own{times.shape, time_of(graph, s, ActivityKind::forward),
                         splits ? time_of(graph, s, ActivityKind::backward_input) : backward,
                         splits ? time_of(graph, s, ActivityKind::backward_weight) : Duration{}};
    if (time_of(graph, s, ActivityKind::update).count() > 0) return std::nullopt;
    if (has_whole && own.backward_input + own.backward_weight != backward) return std::nullopt;
    const bool alike = own.forward == times.forward && own.backward_input == times.backward_input &&
                       own.backward_weight == times.backward_weight;
    if (s > 0 && !alike) return std::nullopt;
    times = own;
  }
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    const ActivityKind kind = graph.activities[i].kind;
    const bool moves = is_transfer(kind) || is_collective(kind);
    if (moves && (graph.cost(i).hold + graph.cost(i).latency).count() > 0) return std::nullopt;
  }
  return chunk_closed_form(setup.rule->name, times);
}

}  // namespace

std::optional<ClosedForm> formula_of(const TrainingSetup& setup, const OpGraph& graph) {
  if (graph.blocking || graph.asynchronous() || !graph.flushes) return std::nullopt;
  if (graph.cost(graph.mini_batches.front().gate).hold.count() > 0) return std::nullopt;
  if (graph.has_slowdowns() || !setup.schedule.partners.empty()) return std::nullopt;
  const LengthCosts* const lengths = setup.costs.lengths.get();
  const PipelineShape& shape = setup.schedule.shape;
  if (!setup.rule || setup.whole_model()) return std::nullopt;
  const bool early = setup.rules.recompute_early;
  if (setup.chunk_rule() && (early || lengths)) return std::nullopt;
  if (lengths && lengths->differs_by_copy()) return std::nullopt;
  if (setup.chunk_rule()) return formula_of_chunks(setup, graph);
  if (setup.windows != windows(*setup.rule, shape, std::nullopt)) return std::nullopt;
  if (shape.slots != shape.positions.size()) return std::nullopt;  // replicas
  PipelineTimes times;
  if (!setup.rules.slice_work.empty()) return std::nullopt;
  std::vector<PipelineTimes> by_micro_batch;
  if (early || lengths) {
    by_micro_batch = times_by_micro_batch(setup, graph);
    times = by_micro_batch.front();
  }
  times.micro_batches = shape.micro_batches;
  times.slices = shape.slices;
  for (const Position& position : setup.schedule.shape.positions) {
    Duration forward{}, backward{};
    for (std::uint32_t i = 0; i < position.stages; ++i) {
      const std::uint32_t stage = position.first_stage + i;
      forward += time_of(graph, stage, ActivityKind::forward);
      backward += time_of(graph, stage, ActivityKind::backward);
      if (time_of(graph, stage, ActivityKind::update).count() > 0) return std::nullopt;
    }
    if (!by_micro_batch.empty()) continue;
    times.forward.push_back(forward);
    times.backward.push_back(backward);
  }
  std::vector<std::optional<Duration>> latency(shape.stages());  // of the boundary above a stage
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    const Activity& activity = graph.activities[i];
    const Cost& cost = graph.cost(i);
    if (is_collective(activity.kind) && (cost.hold + cost.latency).count() > 0) return std::nullopt;
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
  const bool alike =
      std::all_of(by_micro_batch.begin(), by_micro_batch.end(), [&](const PipelineTimes& one) {
        return one.forward == times.forward && one.backward == times.backward &&
               one.again == times.again;
      });
  if (alike) return closed_form(setup.rule->name, times);
  for (PipelineTimes& one : by_micro_batch) one.latency = times.latency;
  return closed_form_of_lengths(setup.rule->name, by_micro_batch);
}

namespace {

Duration longest_end(const Trace& trace) {
  SimTime end;
  for (const Span& span : trace.spans) end = std::max(end, span.end);
  return end.time_since_epoch();
}

/// The model FLOPs of one mini-batch in all copies.
std::optional<double> model_flops_of(const TrainingSetup& setup) {
  auto flops = setup.mean_flops ? setup.mean_flops
                                : model_flops(setup.model->profile, setup.micro_batch_size);
  if (!flops && setup.network && !setup.costs.lengths)
    flops = model_flops(*setup.network, setup.micro_batch_size);
  if (!flops) return std::nullopt;
  return *flops * setup.copies() * setup.micro_batches;
}

/// The time in which an op of a stage sends within groups, in seconds. `sharers` devices share an
/// update.
double sent_by(const StageCost& stage, ActivityKind kind, bool recomputes, double sharers) {
  const double again = recomputes ? stage.sent.again : 0;
  switch (kind) {
    case ActivityKind::forward:
      return stage.sent.forward;
    case ActivityKind::backward:
      return stage.sent.backward + again;
    case ActivityKind::backward_input:
      return stage.sent.backward_input + again;
    case ActivityKind::backward_weight:
      return stage.sent.backward_weight;
    case ActivityKind::update:
      return seconds(stage.update_before) +
             seconds(stage.update_in_group - stage.update_before) / sharers;
    default:
      return 0;
  }
}

/// The time of an F, B, I or W of a stage.
Duration whole_time(const StageCost& stage, ActivityKind kind, bool recomputes) {
  const Duration again = recomputes ? stage.again : Duration{};
  switch (kind) {
    case ActivityKind::forward:
      return stage.forward;
    case ActivityKind::backward:
      return stage.backward + again;
    case ActivityKind::backward_input:
      return stage.backward_input + again;
    default:
      return stage.backward_weight;
  }
}

/// The sum of that time over all ops; nothing if no layer sends. Slices, and parts of an op, send
/// in proportion to their share of the op's time, launches excluded.
std::optional<double> sent_in_groups_of(const TrainingSetup& setup, const OpGraph& graph) {
  const std::vector<StageCost>& stages = setup.costs.stages;
  const bool any = std::any_of(stages.begin(), stages.end(), [](const StageCost& stage) {
    return stage.sent.forward + stage.sent.backward + seconds(stage.update_in_group) > 0;
  });
  if (!any) return std::nullopt;
  const bool recomputes = setup.rules.recompute != Recompute::none;
  double sum_s = 0;
  const LengthCosts* const lengths = setup.costs.lengths.get();
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const Activity& activity = graph.activities[node];
    const std::uint32_t stage = activity.stage.value;
    if (!is_compute(activity.kind)) continue;
    const ActivityKind kind = op_of(activity.kind);
    const Duration per_op = time_of(graph, stage, ActivityKind::forward) - stages[stage].forward;
    const StageCost* own = &stages[stage];
    Duration of_op = time_of(graph, stage, kind) - per_op;
    if (lengths && kind != ActivityKind::update) {
      const std::uint32_t copy = graph.nodes[node].resource % graph.written_copies;
      own = &lengths->kinds[lengths->kind(activity.micro_batch.value, copy)].stages[stage];
      of_op = whole_time(*own, kind, recomputes);
    }
    if (of_op.count() <= 0) continue;
    const double sharers = setup.rules.sharing.sharers(graph.members(stage));
    const Cost& cost = graph.cost(node);
    sum_s += sent_by(*own, kind, recomputes, sharers) * seconds(cost.hold + cost.hidden - per_op) /
                 seconds(of_op) -
             seconds(cost.hidden);
  }
  return sum_s;
}

/// Adds a note on the total slow-down by neighbours, over all compute.
void add_slowdown_note(Outcome& outcome, bool has_in_flight) {
  if (!outcome.graph.has_slowdowns()) return;
  double at_full_pace = 0;
  double taken = 0;
  for (std::uint32_t node = 0; node < outcome.graph.size(); ++node) {
    if (!is_compute(outcome.graph.activities[node].kind)) continue;
    const Span& span = outcome.trace.spans[node];
    at_full_pace += seconds(outcome.graph.cost(node).hold);
    taken += seconds(span.end - span.begin);
  }
  if (at_full_pace <= 0) return;
  const double more = taken / at_full_pace - 1;
  if (std::abs(more) < 0.0005) return;  // 0.0 %
  const bool crowded = outcome.graph.has_neighbours();
  outcome.setup.notes.push_back(fmt::format(
      "all ops together take {:.1f} % {} than in the profile, because of {}{}{}{}",
      100 * std::abs(more), more < 0 ? "less" : "longer", crowded ? "busy neighbours" : "",
      crowded && outcome.graph.overlap.any() ? " and " : "",
      outcome.graph.overlap.any() ? "what their devices send and receive beside them" : "",
      has_in_flight ? " and micro-batches in flight" : ""));
}

/// Adds a note on the number of pairs, and on whether they hide anything.
void add_pairs_note(Outcome& outcome) {
  const OpGraph& graph = outcome.graph;
  if (outcome.setup.schedule.partners.empty()) return;
  if (graph.pairs.empty()) {
    outcome.setup.notes.emplace_back(
        "schedule.pairs: every pair has an op that is cut into buckets and runs by itself");
    return;
  }
  const bool hides = std::any_of(graph.pairs.begin(), graph.pairs.end(), [&](const auto& pair) {
    return (graph.cost(pair.first).hidden + graph.cost(pair.second).hidden).count() > 0;
  });
  const std::size_t runs =
      graph.mini_batches.size() * (graph.slots() / outcome.setup.schedule.shape.slots);
  outcome.setup.notes.push_back(fmt::format(
      "schedule.pairs: {} pairs of a forward and a backward in each mini-batch{}",
      graph.pairs.size() / runs,
      hides ? ""
            : ", which hide nothing of each other: nothing that is sent within groups is left to "
              "hide, as far as is known (of layers that give their times it is not)"));
}

/// Adds notes for the reader of the period of a run without a flush.
void add_period_notes(Outcome& outcome) {
  if (!outcome.metrics.period) return;
  if (outcome.graph.has_slowdowns()) {
    outcome.setup.notes.emplace_back(
        "neighbours slow each other down as in one mini-batch by itself, though they run the next "
        "one beside it (training.flush: none)");
  }
  const Duration of_devices = longest(device_spans(outcome.graph, outcome.trace)).length() +
                              outcome.setup.rules.overheads.per_iteration;
  if (*outcome.metrics.period == of_devices) return;
  outcome.setup.notes.push_back(fmt::format(
      "the period is longer than the {} of the slowest device: transfers of two mini-batches would "
      "meet on a link or a network card (training.flush: none)",
      to_text(of_devices)));
}

/// Adds notes for the reader of the steady period.
void add_steady_notes(Outcome& outcome) {
  const auto& steady = outcome.metrics.steady;
  if (!steady) return;
  const auto& weights = outcome.setup.weights;
  const auto differs =
      std::count_if(weights.begin(), weights.end(), [](const StageVersions& stage) {
        return std::any_of(stage.uses.begin(), stage.uses.end(),
                           [](const VersionUse& use) { return use.forward != use.backward; });
      });
  if (differs > 0) {
    outcome.setup.notes.push_back(fmt::format(
        "forward and backward see different weights on {} of {} stages: their gradients "
        "belong to no version (schedule.weights: none)",
        differs, weights.size()));
  }
  if (!steady->settled) {
    outcome.setup.notes.emplace_back(
        "the period still changes at the end of the run: more schedule.mini_batches bring it "
        "closer to its limit");
  }
  if (steady->warm_up_limited) {
    outcome.setup.notes.push_back(
        fmt::format("warm-up limited: no device or link is busy for more than {} of each period, "
                    "so a deeper plan.warm_up could shorten it",
                    to_text(round_up(steady->bottleneck_s * 1e9))));
  }
}

}  // namespace

double Uncertainty::iteration_time_s(double share) const {
  return nearest_rank(iteration_times_s, share);
}

Bytes Outcome::checkpoint_bytes() const {
  Bytes most;
  const MemoryRules rules = memory_rules(setup);
  for (const std::vector<std::uint32_t>& stages : graph.stages_by_slot())
    most = std::max(most, saved_bytes(graph, setup.costs, rules, stages));
  return most;
}

std::optional<Goodput> Outcome::goodput() const {
  const auto& asked = setup.rates.goodput;
  if (!asked || iteration_time_s <= 0) return std::nullopt;
  const auto bytes = static_cast<double>(checkpoint_bytes().count);
  const auto time_of = [&](const CheckpointCost& cost) {
    const auto* const time = std::get_if<Duration>(&cost);
    return time ? seconds(*time)
                : bytes / static_cast<double>(std::get<BytesPerSecond>(cost).count);
  };
  const double devices = asked->of_one_device ? static_cast<double>(devices_used()) : 1;
  const FailingJob job{iteration_time_s, devices / asked->mtbf.seconds(), time_of(asked->pause),
                       time_of(asked->write), seconds(asked->restart)};
  std::optional<std::int64_t> iterations = asked->iterations;
  if (asked->interval)
    iterations = std::max<std::int64_t>(
        1, std::llround(std::min(seconds(*asked->interval) / iteration_time_s, 1e15)));
  return goodput_of(job, iterations, iterations_in_all());
}

std::optional<std::int64_t> Outcome::iterations_in_all() const {
  if (!setup.rates.tokens || !setup.rates.per_sample) return std::nullopt;
  const double samples =
      static_cast<double>(*setup.rates.tokens) / static_cast<double>(*setup.rates.per_sample);
  return std::max<std::int64_t>(1, std::llround(std::ceil(samples / samples_per_iteration())));
}

std::optional<SampledGoodput> Outcome::sampled_goodput() const {
  const auto expected = goodput();
  const auto work = iterations_in_all();
  if (!expected || !work) return std::nullopt;
  return sample_goodput(*expected, *work, setup.rates.goodput->samples, setup.rates.goodput->seed);
}

std::optional<bool> Outcome::fits(std::size_t slot) const {
  const auto limit = memory_limit(slot);
  return limit ? std::optional(memory[slot].peak.sum() <= *limit) : std::nullopt;
}

std::optional<Bytes> Outcome::memory_limit(std::size_t slot) const {
  return setup.cluster.memory_of(graph.devices[slot]);
}

std::string Outcome::device_kind(std::size_t slot) const {
  const std::vector<DeviceRun>& runs = setup.cluster.runs;
  return runs.empty() ? "" : runs[setup.cluster.run_of(graph.devices[slot])].name;
}

std::optional<bool> Outcome::fits() const {
  if (!setup.cluster.memory) return std::nullopt;
  for (std::size_t slot = 0; slot < memory.size(); ++slot) {
    if (!*fits(slot)) return false;
  }
  return true;
}

std::optional<TimeRange> Outcome::likely_iteration_time() const {
  if (!setup.errors) return std::nullopt;
  return TimeRange{setup.errors->low * iteration_time_s, setup.errors->high * iteration_time_s};
}

double Outcome::samples_per_iteration() const {
  return setup.copies() * static_cast<double>(setup.micro_batches) *
         static_cast<double>(setup.micro_batch_size);
}

std::int64_t Outcome::layers() const {
  std::int64_t sum = 0;
  for (const Stage& stage : setup.partition.stages)
    sum += static_cast<std::int64_t>(stage.layers.size());
  return sum;
}

std::optional<Bytes> Outcome::parameters() const {
  if (setup.group_devices() > 1) return std::nullopt;
  Bytes sum;
  for (const StageCost& stage : setup.costs.stages) sum += stage.parameters;
  return sum;
}

std::optional<double> Outcome::throughput_per_device() const {
  return per_device(throughput_samples_per_s, devices_used());
}

std::optional<double> Outcome::sent_in_groups_fraction() const {
  const double device_time_s = seconds(metrics.whole()) * graph.slots();
  if (!sent_in_groups_s || device_time_s <= 0) return std::nullopt;
  return *sent_in_groups_s / device_time_s;
}

std::optional<double> Outcome::flops_per_s_per_device() const {
  if (!model_flops || iteration_time_s <= 0) return std::nullopt;
  return per_device(*model_flops / iteration_time_s, devices_used());
}

std::optional<double> Outcome::model_flops_utilization() const {
  const auto rate = flops_per_s_per_device();
  if (!rate || !setup.peak) return std::nullopt;
  return *rate / static_cast<double>(setup.peak->count);
}

std::optional<Diagnostic> check_device_time(const OpGraph& graph, const Trace& trace) {
  constexpr double max_s = 4e9;
  if (seconds(longest_end(trace)) * graph.slots() * graph.copies_represented <= max_s)
    return std::nullopt;
  return input_error(
      {}, "the devices' times add up to more than 120 years, more than 64 bits of nanoseconds hold",
      "make the times or the number of micro-batches smaller");
}

Result<Outcome> assess(TrainingSetup given, OpGraph graph, Trace trace) {
  if (auto refused = check_device_time(graph, trace)) return *refused;
  Outcome outcome;
  outcome.setup = std::move(given);
  outcome.graph = std::move(graph);
  outcome.trace = std::move(trace);
  const TrainingSetup& setup = outcome.setup;
  outcome.metrics = measure(outcome.graph, outcome.trace, setup.steady_window);
  const MemoryRules rules = memory_rules(setup);
  outcome.memory = measure_memory(outcome.graph, outcome.trace, setup.costs,
                                  setup.schedule.shape.positions, rules);
  outcome.formula = formula_of(setup, outcome.graph);
  outcome.sent_in_groups_s = sent_in_groups_of(setup, outcome.graph);
  add_slowdown_note(outcome, !setup.model->profile.in_flight.empty());
  add_steady_notes(outcome);
  add_period_notes(outcome);
  add_pairs_note(outcome);
  outcome.model_flops = model_flops_of(setup);
  outcome.iteration_time_s = setup.iteration_time_of(outcome.metrics);
  if (outcome.iteration_time_s > 0) {
    outcome.throughput_samples_per_s = outcome.samples_per_iteration() / outcome.iteration_time_s;
  }
  return outcome;
}

std::string shortage(const Outcome& p) {
  std::size_t worst = 0;
  const auto beyond = [&](std::size_t slot) {
    return p.memory[slot].peak.sum() - *p.memory_limit(slot);
  };
  for (std::size_t slot = 1; slot < p.memory.size(); ++slot) {
    if (beyond(slot) > beyond(worst)) worst = slot;
  }
  const Bytes peak = p.memory[worst].peak.sum();
  const Bytes limit = *p.memory_limit(worst);
  return fmt::format("does not fit: device {} needs {}, {} more than its {}", p.device_name(worst),
                     to_text(peak), to_text(peak - limit), to_text(limit));
}

}  // namespace plumbline
