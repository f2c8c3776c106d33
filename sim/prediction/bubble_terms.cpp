// Adds one difference of costs after the other to a graph, each time with its longest path.
//
// SPDX-License-Identifier: MIT
#include "sim/prediction/bubble_terms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "base/bug.h"
#include "sim/engine/simulate.h"
#include "sim/prediction/outcome.h"

namespace plumbline {
namespace {

constexpr std::size_t kKinds = OpGraph::kStageClasses;  // F, B, I, W, U
constexpr std::size_t kUpdate = OpGraph::kUpdateClass;

using StageTimes = std::array<Duration, kKinds>;

std::size_t kind_index(ActivityKind kind) {
  return kind == ActivityKind::update ? kUpdate : static_cast<std::size_t>(op_of(kind));
}

/// `time` x a / b, to the nearest nanosecond. Requires: b > 0.
Duration share(Duration time, double a, double b) {
  return Duration{std::llround(static_cast<double>(time.count()) * a / b)};
}

Duration scaled(Duration time, Duration by, Duration of) {
  return of.count() == 0
             ? by
             : share(time, static_cast<double>(by.count()), static_cast<double>(of.count()));
}

/// The times of each stage if all devices take the same time: the mean of all for each kind of op.
std::vector<StageTimes> equal_times(const Outcome& p, const std::vector<StageTimes>& own) {
  const PipelineShape& shape = p.setup.schedule.shape;
  std::vector<std::uint32_t> stages_of(shape.slots, 0);
  for (const auto& slots : shape.stage_slots) {
    for (const std::uint32_t slot : slots) ++stages_of[slot];
  }
  const bool as_many = std::all_of(stages_of.begin(), stages_of.end(),
                                   [&](std::uint32_t n) { return n == stages_of.front(); });
  std::vector<StageTimes> equal(own.size());
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    double sum = 0;
    for (const StageTimes& stage : own) sum += static_cast<double>(stage[kind].count());
    const double of_device = sum / shape.slots;
    std::vector<bool> begun(shape.slots, false);
    for (std::size_t s = 0; s < own.size(); ++s) {
      const std::uint32_t slot = shape.stage_slots[s].front();
      const auto replicas = static_cast<std::int64_t>(shape.stage_slots[s].size());
      if (as_many) {
        equal[s][kind] =
            Duration{std::llround(of_device * static_cast<double>(replicas) / stages_of[slot])};
        continue;
      }
      // The first stage of a device takes the remainder of the division.
      const std::int64_t whole = std::llround(of_device);
      const std::int64_t part = whole / stages_of[slot];
      equal[s][kind] =
          Duration{replicas * (begun[slot] ? part : whole - (stages_of[slot] - 1) * part)};
      begun[slot] = true;
    }
  }
  // A whole backward is the sum of its parts, if that holds for every stage.
  const bool adds_up = std::all_of(own.begin(), own.end(), [](const StageTimes& stage) {
    return stage[1] == stage[2] + stage[3];
  });
  if (adds_up) {
    for (StageTimes& stage : equal) stage[1] = stage[2] + stage[3];
  }
  return equal;
}

/// The total time of equal stages, divided among the kinds in the proportions of each stage's own
/// times.
std::vector<StageTimes> with_mean_sums(const std::vector<StageTimes>& equal,
                                       const std::vector<StageTimes>& own,
                                       const std::vector<std::size_t>& kinds) {
  std::vector<StageTimes> times = equal;
  for (std::size_t s = 0; s < own.size(); ++s) {
    Duration sum{};
    Duration mean{};
    for (const std::size_t kind : kinds) {
      sum += own[s][kind];
      mean += equal[s][kind];
    }
    if (sum.count() == 0) continue;
    Duration left = mean;
    bool is_same = true;  // except for rounding
    for (const std::size_t kind : kinds) {
      Duration& time = times[s][kind];
      time = kind == kinds.back() ? left
                                  : share(own[s][kind], static_cast<double>(mean.count()),
                                          static_cast<double>(sum.count()));
      left -= time;
      const std::int64_t off = std::abs((time - equal[s][kind]).count());
      is_same = is_same && off <= static_cast<std::int64_t>(kinds.size());
    }
    if (is_same) times[s] = equal[s];
  }
  return times;
}

/// Effects on the times of ops beyond the times of their stage.
struct OpDetails {
  bool cut = false;     ///< Each part is launched by itself.
  bool hidden = false;  ///< In pairs, the time that one op hides of the other is subtracted.
  bool sliced = false;  ///< Slices take different times.
};

/// A copy of a run's graph with its classes of cost sorted by kind. It times runs with other costs.
class Variant {
 public:
  explicit Variant(const Outcome& p) : outcome_(p), graph_(p.graph) {
    take_rates_away();
    part_collectives();
    actual_ = graph_.costs;
    find_classes();
  }

  const OpGraph& graph() const { return graph_; }
  bool is_changed() const { return changed_; }
  /// Whether all costs are the run's own.
  bool is_actual() const { return graph_.costs == actual_; }

  /// Sets all times to 0.
  void clear() {
    for (Cost& cost : graph_.costs) cost.hold = cost.latency = cost.lead = cost.hidden = Duration{};
    changed_ = true;
  }

  /// Sets the times of ops: these times, changed by the details. Parts of an op share its time.
  void set_ops(const std::vector<StageTimes>& times, const OpDetails& details) {
    for (const OpClass& op : ops_) {
      if (op.kind == kUpdate && !graph_.asynchronous()) continue;
      const Duration plain = op_time(outcome_, op.stage, op.kind);
      Duration actual{};
      Duration hidden{};
      for (const std::uint32_t part : op.parts) {
        actual += actual_[part].hold + actual_[part].hidden;
        hidden += actual_[part].hidden;
      }
      const auto more_parts = static_cast<std::int64_t>(op.parts.size()) - 1;
      const Duration launches = more_parts * launch(op.stage);
      Duration time = times[op.stage][op.kind];
      if (details.sliced)
        time = time == plain ? actual - launches : scaled(actual - launches, time, plain);
      if (details.cut) time += launches;
      if (details.hidden) time -= std::min(time, hidden);
      set_op(op, time);
    }
  }

  void set_transfers() { set_actual(transfers_); }
  void set_updates() { set_actual(updates_); }
  void set_overhead() { set_actual({graph_.nodes[gate()].cost}); }
  void set_collectives() { set_actual(collectives_); }

  /// The run with the current costs.
  struct Run {
    Duration time{};
    double bubble = 0;
  };
  Run run() {
    changed_ = false;
    if (graph_.asynchronous()) {
      const Metrics metrics = measure(graph_, longest_path(graph_), outcome_.setup.steady_window);
      return {metrics.steady->length, metrics.steady->bubble_fraction};
    }
    if (!graph_.flushes) {
      const Metrics metrics = measure(graph_, longest_path(graph_), {});
      return {*metrics.period, metrics.bubble_fraction()};
    }
    Metrics metrics;
    metrics.makespan = longest_path_end(graph_).time_since_epoch();
    metrics.devices.resize(graph_.slots());
    Duration busy{};
    for (std::size_t i = 0; i < weights_.size(); ++i) busy += weights_[i] * graph_.costs[i].hold;
    metrics.devices.front().idle =
        static_cast<std::int64_t>(graph_.slots()) * metrics.makespan - busy;
    return {metrics.makespan, metrics.bubble_fraction()};
  }

 private:
  /// The cost classes of one kind of op of one stage: one class, or, if the op is cut, one per
  /// part.
  struct OpClass {
    std::uint32_t stage = 0;
    std::size_t kind = 0;
    std::vector<std::uint32_t> parts;
  };

  std::uint32_t gate() const { return graph_.mini_batches.front().gate; }

  void take_rates_away() {
    graph_.slowdowns.resize(1);
    graph_.updates_at_once.clear();
    graph_.overlap = {};
    for (Channel& channel : graph_.channels) channel.path.out = channel.path.in = std::nullopt;
    graph_.beside_work.resize(1);
    for (Cost& cost : graph_.costs) cost.slowdown = cost.beside_work = 0;
  }

  /// Gives collectives cost classes of their own, since a hop may have the same cost as a transfer.
  void part_collectives() {
    const auto first = static_cast<std::uint32_t>(graph_.costs.size());
    bool any = false;
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      if (!is_collective(graph_.activities[node].kind)) continue;
      graph_.nodes[node].cost += first;
      any = true;
    }
    if (!any) return;
    const std::vector<Cost> copy = graph_.costs;
    graph_.costs.insert(graph_.costs.end(), copy.begin(), copy.end());
  }

  void find_classes() {
    std::vector<bool> seen(graph_.costs.size(), false);
    std::map<std::uint32_t, std::vector<std::uint32_t>> parts;  // by the class of the last part
    const bool any_parts =
        std::any_of(graph_.activities.begin(), graph_.activities.end(),
                    [](const Activity& activity) { return is_part(activity.kind); });
    const std::vector<std::uint32_t> ops =
        any_parts ? ops_of_parts(graph_) : std::vector<std::uint32_t>();
    weights_.assign(graph_.costs.size(), 0);
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      const Node& n = graph_.nodes[node];
      if (n.resource < graph_.slots()) ++weights_[n.cost];
      if (n.peer_resource != n.resource && n.peer_resource < graph_.slots()) ++weights_[n.cost];
      if (seen[n.cost]) continue;
      seen[n.cost] = true;
      const Activity& activity = graph_.activities[node];
      if (is_part(activity.kind)) {
        parts[graph_.nodes[ops[node]].cost].push_back(n.cost);
      } else if (is_compute(activity.kind)) {
        ops_.push_back({activity.stage.value, kind_index(activity.kind), {n.cost}});
        if (activity.kind == ActivityKind::update) updates_.push_back(n.cost);
      } else if (is_transfer(activity.kind)) {
        transfers_.push_back(n.cost);
      } else if (is_collective(activity.kind)) {
        collectives_.push_back(n.cost);
      }
    }
    for (OpClass& op : ops_) {
      const auto before = parts.find(op.parts.front());
      if (before != parts.end())
        op.parts.insert(op.parts.begin(), before->second.begin(), before->second.end());
    }
  }

  /// The launch time of each op, and of each part of an op.
  Duration launch(std::uint32_t stage) const {
    return op_time(outcome_, stage, 0) - outcome_.setup.costs.stages[stage].forward;
  }

  void set_hold(std::uint32_t index, Duration hold) {
    Duration& now = graph_.costs[index].hold;
    changed_ = changed_ || now != hold;
    now = hold;
  }

  void set_op(const OpClass& op, Duration time) {
    double sum = 0;
    for (const std::uint32_t part : op.parts)
      sum += static_cast<double>(actual_[part].hold.count());
    Duration left = time;
    for (const std::uint32_t part : op.parts) {
      const bool is_last = part == op.parts.back();
      const auto own = static_cast<double>(actual_[part].hold.count());
      const Duration hold = is_last ? left : sum > 0 ? share(time, own, sum) : Duration{};
      set_hold(part, std::min(hold, left));
      left -= std::min(hold, left);
    }
  }

  void set_actual(const std::vector<std::uint32_t>& classes) {
    for (const std::uint32_t index : classes) {
      changed_ = changed_ || !(graph_.costs[index] == actual_[index]);
      graph_.costs[index] = actual_[index];
    }
  }

  const Outcome& outcome_;
  OpGraph graph_;
  std::vector<Cost> actual_;
  std::vector<std::int64_t> weights_;  ///< One number per class: the streams that its nodes hold.
  std::vector<OpClass> ops_;
  std::vector<std::uint32_t> transfers_;
  std::vector<std::uint32_t> collectives_;
  std::vector<std::uint32_t> updates_;
  bool changed_ = false;  ///< Costs have changed since the last run.
};

}  // namespace

std::string_view name(BubbleCause cause) {
  constexpr std::array<std::string_view, kBubbleCauses> names = {
      "measured", "changing_rates", "uneven_stages", "uneven_passes", "uneven_slices",
      "pairs",    "transfers",      "collectives",   "updates",       "overhead"};
  return names[static_cast<std::size_t>(cause)];
}

Duration op_time(const Outcome& p, std::uint32_t stage, std::size_t kind) {
  return p.graph.cost_of({stage}, kind).hold;
}

std::vector<std::size_t> kinds_of_work(const Outcome& p) {
  std::array<bool, kKinds> runs{};
  for (const Op& op : p.setup.schedule.issue_order) runs[static_cast<std::size_t>(op.kind)] = true;
  runs[kUpdate] = p.graph.asynchronous();
  if (runs[1]) runs[2] = runs[3] = false;  // a whole backward is the sum of both
  std::vector<std::size_t> kinds;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    if (runs[kind]) kinds.push_back(kind);
  }
  return kinds;
}

BubbleTerms bubble_terms(const Outcome& p, bool measured) {
  BubbleTerms found;
  const auto& steady = p.metrics.steady;
  found.steady = steady.has_value();
  found.whole = steady ? steady->bubble_fraction : p.metrics.bubble_fraction();
  const Duration whole_time = steady ? steady->length : p.metrics.whole();
  std::vector<StageTimes> own(p.graph.stage_slots.size());
  for (std::uint32_t s = 0; s < own.size(); ++s) {
    for (std::size_t kind = 0; kind < kKinds; ++kind) own[s][kind] = op_time(p, s, kind);
  }
  const bool asynchronous = p.graph.asynchronous();
  const std::vector<StageTimes> equal = equal_times(p, own);

  // Only equal stages take time.
  Variant variant(p);
  OpDetails details;
  variant.clear();
  variant.set_ops(equal, details);
  const bool is_equal = variant.is_actual() && !measured && !p.graph.rates_change();
  Variant::Run before = is_equal ? Variant::Run{whole_time, found.whole} : variant.run();
  found.base = before.bubble;
  found.base_time = before.time;
  found.formula = formula_of(p.setup, variant.graph());

  // The differences are put in one after the other, in the reverse order of taking them away.
  const auto add = [&](BubbleCause cause, const Variant::Run& run) {
    if (run.time != before.time || run.bubble != before.bubble)
      found.terms.push_back({cause, run.bubble - before.bubble, run.time - before.time});
    before = run;
  };
  const auto put_in = [&](BubbleCause cause, auto&& change) {
    change();
    if (variant.is_changed()) add(cause, variant.run());
  };
  if (!asynchronous) put_in(BubbleCause::overhead, [&] { variant.set_overhead(); });
  if (!asynchronous) put_in(BubbleCause::updates, [&] { variant.set_updates(); });
  put_in(BubbleCause::collectives, [&] {
    variant.set_collectives();
    details.cut = true;
    variant.set_ops(equal, details);
  });
  put_in(BubbleCause::transfers, [&] { variant.set_transfers(); });
  put_in(BubbleCause::pairs, [&] {
    details.hidden = true;
    variant.set_ops(equal, details);
  });
  put_in(BubbleCause::uneven_slices, [&] {
    details.sliced = true;
    variant.set_ops(equal, details);
  });
  put_in(BubbleCause::uneven_passes,
         [&] { variant.set_ops(with_mean_sums(equal, own, kinds_of_work(p)), details); });
  put_in(BubbleCause::uneven_stages, [&] { variant.set_ops(own, details); });
  add(measured ? BubbleCause::measured : BubbleCause::changing_rates, {whole_time, found.whole});
  std::reverse(found.terms.begin(), found.terms.end());

  found.slowest = slowest_stage(p);
  return found;
}

}  // namespace plumbline
