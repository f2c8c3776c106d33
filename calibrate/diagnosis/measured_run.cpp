// One pass over the nodes of the graph: recorded ones have their times, others follow.
//
// SPDX-License-Identifier: MIT
#include "calibrate/diagnosis/measured_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/table.h"
#include "sim/engine/period.h"
#include "sim/engine/release.h"
#include "sim/prediction/bubble_terms.h"

namespace plumbline {
namespace {

Diagnostic misfit(std::string message, std::string help = "", std::string detail = "") {
  Diagnostic problem = input_error({}, std::move(message), std::move(help));
  problem.detail = std::move(detail);
  return problem;
}

/// The device of the run that a slot stands for.
std::uint32_t device_of_slot(const OpGraph& graph, std::uint32_t slot, const RecordedRun& run) {
  for (std::uint32_t stage = 0; stage < graph.stage_slots.size(); ++stage) {
    const auto& slots = graph.stage_slots[stage];
    if (std::find(slots.begin(), slots.end(), slot) != slots.end()) return run.device_of(stage);
  }
  return 0;
}

/// Errors where a setup is not what was recorded.
std::optional<Diagnostic> check_shape(const TrainingSetup& setup, const RecordedRun& run) {
  const std::string help = "diagnose TRACE... -o FILE writes a scenario of the run";
  const PipelineShape& shape = setup.schedule.shape;
  if (setup.schedule.asynchronous)
    return misfit("the run was recorded in iterations, and the schedule has none", help);
  if (setup.mini_batches != 1)
    return misfit(fmt::format("schedule.mini_batches is {}; a recorded iteration is one",
                              setup.mini_batches));
  if (shape.slices != 1) return misfit("the schedule has slices, and the run has none", help);
  if (std::any_of(shape.stage_slots.begin(), shape.stage_slots.end(),
                  [](const auto& slots) { return slots.size() != 1; }))
    return misfit("a stage has replicas; a recorded run has whole copies", help);
  if (shape.stages() != run.stages)
    return misfit(fmt::format("the scenario has {}, and the run had {}",
                              plural(shape.stages(), "stage"), run.stages),
                  help);
  if (shape.slots != run.devices.size())
    return misfit(fmt::format("the scenario has {}, and the run had {}",
                              plural(shape.slots, "device"), run.devices.size()),
                  help);
  if (shape.micro_batches != run.micro_batches)
    return misfit(fmt::format("the scenario has {}, and the run had {}",
                              plural(shape.micro_batches, "micro-batch"), run.micro_batches),
                  fmt::format("schedule.micro_batches={}", run.micro_batches));
  return std::nullopt;
}

/// Errors where a device did its ops in another order.
std::optional<Diagnostic> check_order(const TrainingSetup& setup, const RecordedRun& run) {
  const OpLists lists = setup.schedule.lists();
  for (std::uint32_t slot = 0; slot < lists.size(); ++slot) {
    const std::uint32_t device = run.device_of(lists[slot].front().stage.value);
    const auto& recorded = run.lists[device];
    if (lists[slot] == recorded) continue;
    const auto differ =
        std::mismatch(lists[slot].begin(), lists[slot].end(), recorded.begin(), recorded.end());
    const auto at = static_cast<std::size_t>(differ.first - lists[slot].begin());
    const auto op = [&](const std::vector<Op>& list) {
      return at < list.size() ? to_text(list[at]) : std::string("nothing");
    };
    return misfit(
        fmt::format("the run had another order: op {} of device {} is {} in the scenario and was "
                    "{} in the run",
                    at, setup.devices[slot].value, op(lists[slot]), op(recorded)),
        "diagnose TRACE... -o FILE writes a scenario with the run's own order",
        "in the scenario\n" + list_grid(lists, slot, at) + "in the run\n" +
            list_grid(run.lists, device, at));
  }
  return std::nullopt;
}

/// The ops of an iteration by their activities, from the begin of the iteration.
class RecordedTimes {
 public:
  RecordedTimes(const OpGraph& graph, const RecordedRun& run, const RunIteration& iteration,
                const RunCosts& costs)
      : graph_(graph),
        run_(run),
        iteration_(iteration),
        usual_(costs.latency().value_or(Duration{})),
        inputs_(run, iteration) {
    for (const auto& device : iteration.ops) {
      for (const RunOp& op : device) ops_[op.op] = &op;
    }
    for (const std::uint32_t node : ops_of_parts(graph)) ++parts_[node];
  }

  Trace trace() {
    Trace trace;
    trace.spans.resize(graph_.size());
    const auto op_of = ops_of_parts(graph_);
    std::map<std::uint32_t, std::int64_t> part;  // of an op that is cut: how many came before
    std::vector<SimTime> free(graph_.resources());
    const auto joins = joins_by_node(graph_);
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      const Node& n = graph_.nodes[node];
      SimTime ready = std::max(free[n.resource], free[n.peer_resource]);
      const auto wait = [&](std::uint32_t input) {
        ready = std::max(ready, trace.spans[input].end);
      };
      if (n.input != graph_.size()) wait(n.input);
      if (joins[node]) std::for_each(joins[node]->inputs.begin(), joins[node]->inputs.end(), wait);
      Span& span = trace.spans[node];
      span = {ready, ready, kNobody};
      const Activity& activity = graph_.activities[op_of[node]];
      if (is_op(activity.kind)) {
        const std::int64_t parts = parts_[op_of[node]];
        set_op(activity, part[op_of[node]]++, parts, free[n.resource], span);
      } else if (is_transfer(activity.kind)) {
        set_transfer(activity, span);
      } else if (activity.kind == ActivityKind::update) {
        set_update(activity, n.resource, span);
      } else if (activity.kind == ActivityKind::overhead) {
        span.end = span.begin + overhead_behind(span.begin, trace);
      }
      free[n.resource] = free[n.peer_resource] = span.end - graph_.cost(node).latency;
    }
    attribute_releases(graph_, trace);
    return trace;
  }

 private:
  SimTime own(SimTime at) const { return SimTime{at - iteration_.begin}; }

  const RunOp& op(OpKind kind, const Activity& activity) const {
    return *ops_.at({kind, activity.stage, activity.micro_batch});
  }

  /// An op begins when its device is free: kernels of several streams may have been recorded at
  /// once, and a device of the graph does one op at a time.
  void set_op(const Activity& activity, std::int64_t part, std::int64_t parts, SimTime free,
              Span& span) const {
    const RecordedSpan& work = op(static_cast<OpKind>(activity.kind), activity).work;
    span.begin = std::max(free, own(work.begin) + work.length() * part / parts);
    span.end = std::max(span.begin, own(work.begin) + work.length() * (part + 1) / parts);
  }

  /// The transfer that feeds an op.
  void set_transfer(const Activity& activity, Span& span) const {
    const RunOp* fed = nullptr;
    const auto kinds = activity.kind == ActivityKind::activation_transfer
                           ? std::vector{OpKind::forward}
                           : std::vector{OpKind::backward, OpKind::backward_input};
    for (const OpKind kind : kinds) {
      const auto found = ops_.find({kind, activity.stage, activity.micro_batch});
      if (found != ops_.end()) fed = found->second;
    }
    const OpInput input = inputs_.of(*fed);
    if (!input.producer) return;  // both stages are on one device
    const SimTime made = own(input.producer->work.end);
    const SimTime latest = std::max(made, own(fed->work.begin));
    const SimTime arrival = input.arrival ? own(*input.arrival) : std::min(latest, made + usual_);
    span.begin = made;
    span.end = std::clamp(arrival, made, latest);
    const auto recorded = iteration_.transfers.find(fed->op);
    if (recorded == iteration_.transfers.end()) return;
    if (const auto moved = recorded->second.moved_from())
      span.begin = std::clamp(own(*moved), made, span.end);
  }

  /// The overhead behind an iteration. Without a flush, the next one begins behind the longest part
  /// of a device, else behind the end of all.
  Duration overhead_behind(SimTime end, const Trace& trace) const {
    if (graph_.flushes) return std::max(Duration{}, SimTime{iteration_.time()} - end);
    return std::max(Duration{}, iteration_.time() - longest(device_spans(graph_, trace)).length());
  }

  /// Devices with several stages update one after the other. Where the graph flushes, an update
  /// that was recorded before the flush follows it.
  void set_update(const Activity& activity, std::uint32_t slot, Span& span) const {
    const std::uint32_t device = device_of_slot(graph_, slot, run_);
    const auto& update = iteration_.updates[device];
    if (!update) return;
    const auto& stages = run_.devices[device].stages;
    const auto count = static_cast<std::int64_t>(stages.size());
    const auto place =
        std::lower_bound(stages.begin(), stages.end(), activity.stage.value) - stages.begin();
    const Duration length = update->length() / count;
    span.begin = std::max(span.begin, own(update->begin) + length * place);
    span.end = span.begin + length;
  }

  const OpGraph& graph_;
  const RecordedRun& run_;
  const RunIteration& iteration_;
  Duration usual_;
  OpInputs inputs_;
  std::map<Op, const RunOp*> ops_;
  std::map<std::uint32_t, std::int64_t> parts_;  // nodes of each op
};

/// The index in `timed` of the iteration in the middle, by time.
std::size_t middle_of(const RecordedRun& run, const std::vector<std::size_t>& timed) {
  std::vector<std::size_t> order(timed.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return run.iterations[timed[a]].time() < run.iterations[timed[b]].time();
  });
  return order[(order.size() - 1) / 2];
}

std::string source_of_times(OpClock clock) {
  switch (clock) {
    case OpClock::kernels:
      return "kernels of GPUs";
    case OpClock::work:
      return "calls on the CPU";
    case OpClock::ranges:
      return "ranges on the CPU";
  }
  return "";
}

}  // namespace

Result<RealRun> measured_run(TrainingSetup setup, const RecordedRun& run, const RunCosts& costs) {
  if (auto wrong = check_shape(setup, run)) return *wrong;
  if (auto wrong = check_order(setup, run)) return *wrong;
  auto graph = lower(setup);
  if (!graph) return graph.problems();
  RealRun real;
  const auto timed = run.timed();
  std::vector<double> times;
  for (const std::size_t k : timed) {
    MeasuredIteration iteration;
    iteration.trace = RecordedTimes(*graph, run, run.iterations[k], costs).trace();
    count_hand_over(*graph, iteration);
    real.iterations.push_back(std::move(iteration));
    times.push_back(seconds(run.iterations[k].time()));
  }
  real.times_s = times;
  real.time_s = statistics_of(times);
  real.clean = times.size();
  real.knows_memory = false;
  real.shown = middle_of(run, timed);
  const Trace& trace = real.iterations[real.shown].trace;
  setup.forget_errors();
  setup.forget_split();
  setup.noise.reset();
  auto outcome = assess(std::move(setup), *std::move(graph), trace);
  if (!outcome) return outcome.problems();
  real.outcome = *std::move(outcome);
  real.outcome.bubble_terms = bubble_terms(real.outcome, /*measured=*/true);
  real.outcome.iteration_time_s = times[real.shown];
  real.outcome.throughput_samples_per_s = real.outcome.samples_per_iteration() / times[real.shown];
  real.rounds_s = {times[real.shown]};
  real.backend = "traces";
  real.device = source_of_times(run.clock);
  real.cores = 0;
  real.remarks = run.notes;
  return real;
}

}  // namespace plumbline
