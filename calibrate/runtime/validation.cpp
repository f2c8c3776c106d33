// Errors, and the evaluation of a run with measured durations in place of predicted ones.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/validation.h"

#include <algorithm>
#include <cmath>

#include "base/bug.h"
#include "sim/engine/critical.h"
#include "sim/engine/release.h"

namespace plumbline {
namespace {

/// The durations of a node: how long it holds its resource, its latency after that, and its delay
/// before it begins.
struct Length {
  Duration hold{};
  Duration latency{};
  Duration gap{};
};

std::vector<Length> lengths_of(const OpGraph& graph, const Trace& trace) {
  std::vector<Length> lengths(graph.size());
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const Span& span = trace.spans[node];
    const Duration latency = graph.cost(node).latency;
    lengths[node] = {span.end - span.begin - latency, latency,
                     span.begin - released(graph, trace, node)};
  }
  return lengths;
}

/// The run with these durations. One pass is enough, as every node comes after all that it waits
/// for.
Trace evaluate(const OpGraph& graph, const std::vector<Length>& lengths) {
  Trace trace;
  trace.spans.resize(graph.size());
  std::vector<SimTime> free(graph.resources());
  auto join = graph.joins.begin();
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const Node& n = graph.nodes[node];
    SimTime begin = std::max(free[n.resource], free[n.peer_resource]);
    if (n.input != graph.size()) begin = std::max(begin, trace.spans[n.input].end);
    if (join != graph.joins.end() && join->node == node) {
      for (const std::uint32_t producer : join->inputs)
        begin = std::max(begin, trace.spans[producer].end);
      ++join;
    }
    begin += lengths[node].gap;
    free[n.resource] = free[n.peer_resource] = begin + lengths[node].hold;
    trace.spans[node] = {begin, begin + lengths[node].hold + lengths[node].latency, kNobody};
  }
  attribute_releases(graph, trace);
  return trace;
}

/// `traced_s` is the time of the measured iteration whose trace was recorded.
ErrorShares shares_of(const Outcome& predicted, const Outcome& measured, double traced_s) {
  const OpGraph& graph = predicted.graph;
  std::vector<Length> lengths = lengths_of(graph, predicted.trace);
  const std::vector<Length> real = lengths_of(measured.graph, measured.trace);
  const auto time_with = [&](auto&& change) {
    for (std::uint32_t node = 0; node < graph.size(); ++node)
      change(node, is_compute(graph.activities[node].kind));
    const Trace trace = evaluate(graph, lengths);
    return predicted.setup.iteration_time_of(measure(graph, trace, predicted.setup.steady_window));
  };
  const double with_compute = time_with([&](std::uint32_t node, bool compute) {
    if (compute) lengths[node].hold = real[node].hold;
  });
  // A hand-over that the run has of its own is part of the transfer in a prediction. In a
  // measurement it is before the op that waits for the transfer. It counts with the hand-overs of
  // ops.
  const Duration own = graph.hand_over - measured.graph.hand_over;
  const auto lengthen = [&](std::uint32_t node, Duration by) {
    (graph.holds_channel(node) ? lengths[node].latency : lengths[node].hold) +=
        graph.hand_overs(node) * by;
  };
  const double with_transfers = time_with([&](std::uint32_t node, bool compute) {
    if (compute) return;
    lengths[node] = real[node];
    lengthen(node, own);
  });
  const double with_hand_over = time_with([&](std::uint32_t node, bool compute) {
    if (compute) lengths[node].gap = real[node].gap;
    lengthen(node, -own);
  });
  return {.profile_s = 0,
          .compute_s = predicted.iteration_time_s - with_compute,
          .transfer_s = with_compute - with_transfers,
          .hand_over_s = with_transfers - with_hand_over,
          .waiting_s = with_hand_over - traced_s,
          .telling_s = traced_s - measured.iteration_time_s};
}

StartErrors start_errors(const Outcome& predicted, const Outcome& measured) {
  std::vector<double> errors;
  StartErrors starts;
  const std::vector<std::uint32_t> firsts = first_parts(predicted.graph);
  for (std::uint32_t node = 0; node < predicted.graph.size(); ++node) {
    const Activity& activity = predicted.graph.activities[node];
    if (!is_op(activity.kind)) continue;
    const std::uint32_t first = firsts[node];
    const double error =
        std::abs(seconds(predicted.trace.spans[first].begin - measured.trace.spans[first].begin));
    errors.push_back(error);
    if (starts.worst.empty() || error > starts.max_s) {
      starts.max_s = error;
      starts.worst = to_text(activity);
    }
  }
  std::sort(errors.begin(), errors.end());
  starts.median_s = quantile(errors, 0.5);
  starts.p95_s = quantile(errors, 0.95);
  return starts;
}

double path_agreement(const Outcome& predicted, const Outcome& measured) {
  const std::vector<Duration> slacks = slack(predicted.graph, predicted.trace);
  double all = 0;
  double common = 0;
  for (const std::uint32_t node : critical_path(measured.trace)) {
    const Span& span = measured.trace.spans[node];
    const double length = seconds(span.end - span.begin);
    all += length;
    if (slacks[node].count() == 0) common += length;
  }
  return all > 0 ? common / all : 1;
}

Verdict verdict_of(const Validation& v) {
  constexpr double same_within = 0.01;
  constexpr std::size_t max_needed = 5;
  const double error = std::abs(v.own_error());
  const double change = std::abs(v.machine_change().value_or(0));
  const std::size_t needed = std::min(max_needed, (v.measured.iterations.size() + 1) / 2);
  if (v.measured.clean < std::max<std::size_t>(needed, 1)) return Verdict::inconclusive;
  if (error > v.tolerance) {
    const bool is_clear = error > v.tolerance + v.noise() && error > change;
    return is_clear ? Verdict::off : Verdict::inconclusive;
  }
  return error <= std::max(same_within, v.noise()) ? Verdict::same : Verdict::close;
}

/// The memory of a trace by the rules of a prediction, the least or the most.
std::vector<DeviceMemory> ruled(const Outcome& predicted, const Trace& trace, TieOrder ties) {
  const TrainingSetup& setup = predicted.setup;
  const MemoryRules rules = memory_rules(setup);
  return measure_memory(predicted.graph, trace, setup.costs, setup.schedule.shape.positions, rules,
                        ties);
}

std::vector<MemoryVerdict> compare_memory(const Outcome& predicted, const Outcome& measured) {
  const auto max = ruled(predicted, predicted.trace, TieOrder::reservations_first);
  const auto min_measured = ruled(predicted, measured.trace, TieOrder::releases_first);
  const auto max_measured = ruled(predicted, measured.trace, TieOrder::reservations_first);
  std::vector<MemoryVerdict> verdicts;
  verdicts.reserve(max.size());
  for (std::size_t slot = 0; slot < max.size(); ++slot) {
    const Bytes held = measured.memory[slot].peak.sum();
    const auto lies_in = [&](const DeviceMemory& from, const DeviceMemory& to) {
      return held >= from.peak.sum() && held <= to.peak.sum();
    };
    verdicts.push_back(held == predicted.memory[slot].peak.sum()         ? MemoryVerdict::exact
                       : lies_in(predicted.memory[slot], max[slot])      ? MemoryVerdict::ties
                       : lies_in(min_measured[slot], max_measured[slot]) ? MemoryVerdict::order
                                                                         : MemoryVerdict::differs);
  }
  return verdicts;
}

/// The least difference of times per sample that distinguishes two runs. Rounds that were run in
/// turn are compared one by one, as changes of the machine affect both runs.
double min_difference(const Validation& first, const Validation& second, double a, double b) {
  const auto& x = first.measured;
  const auto& y = second.measured;
  const double within =
      std::max({x.time_s.half_width_of_median(), y.time_s.half_width_of_median(), 0.005}) *
      std::max(a, b);
  if (x.rounds_s.size() != y.rounds_s.size())
    return std::max(within, std::max(first.noise(), second.noise()) * std::max(a, b));
  if (x.rounds_s.size() < 2) return within;
  std::vector<double> differences;
  for (std::size_t i = 0; i < x.rounds_s.size(); ++i) {
    differences.push_back(x.rounds_s[i] * a / first.measured_s() -
                          y.rounds_s[i] * b / second.measured_s());
  }
  const auto [min, max] = std::minmax_element(differences.begin(), differences.end());
  return std::max(within, (*max - *min) / 2);
}

/// Runs whose predicted times differ by less, relatively, are predicted as equal.
constexpr double kPredictedEqual = 0.001;

/// Seconds for one sample, or for a mini-batch where nothing takes time.
double time_per_sample(const Outcome& outcome) {
  return outcome.throughput_samples_per_s ? 1 / *outcome.throughput_samples_per_s : 0;
}

}  // namespace

std::string_view name(Verdict verdict) {
  constexpr std::string_view names[] = {"SAME", "CLOSE", "OFF", "INCONCLUSIVE"};
  return names[static_cast<std::size_t>(verdict)];
}

std::string_view name(MemoryVerdict verdict) {
  constexpr std::string_view names[] = {"exact", "ties", "order", "differs"};
  return names[static_cast<std::size_t>(verdict)];
}

double Validation::noise() const {
  return std::max(measured.time_s.half_width_of_median(), measured.spread_of_rounds());
}

std::optional<double> Validation::again_error() const {
  if (!again_s || measured_s() <= 0) return std::nullopt;
  return *again_s / measured_s() - 1;
}

std::optional<double> Validation::machine_change() const {
  if (!again_s || predicted_s() <= 0) return std::nullopt;
  return *again_s / predicted_s() - 1;
}

Validation validate(Outcome predicted, RealRun measured, double tolerance, const Outcome* again) {
  PLUMBLINE_CHECK(predicted.graph.activities == measured.outcome.graph.activities,
                  predicted.graph.size(), measured.outcome.graph.size());
  PLUMBLINE_CHECK(!again || again->graph.activities == predicted.graph.activities,
                  predicted.graph.size());
  Validation v;
  v.predicted = std::move(predicted);
  v.measured = std::move(measured);
  v.tolerance = tolerance;
  v.error = v.measured_s() > 0 ? v.predicted_s() / v.measured_s() - 1 : 0;
  v.shares = shares_of(again ? *again : v.predicted, v.measured.outcome,
                       v.measured.traced_s.value_or(v.measured_s()));
  if (again) {
    v.again_s = again->iteration_time_s;
    v.shares.profile_s = v.predicted_s() - *v.again_s;
  }
  v.starts = start_errors(v.predicted, v.measured.outcome);
  v.critical_path_agreement = path_agreement(v.predicted, v.measured.outcome);
  if (v.measured.knows_memory) v.memory = compare_memory(v.predicted, v.measured.outcome);
  v.verdict = verdict_of(v);
  return v;
}

std::optional<double> Ranking::tau() const {
  if (right + wrong == 0) return std::nullopt;
  return (static_cast<double>(right) - static_cast<double>(wrong)) /
         static_cast<double>(right + wrong);
}

Ranking rank(const std::vector<ValidationPoint>& points) {
  Ranking ranking;
  for (std::size_t a = 0; a < points.size(); ++a) {
    for (std::size_t b = a + 1; b < points.size(); ++b) {
      const Validation& first = points[a].validation;
      const Validation& second = points[b].validation;
      if (!first.clean() || !second.clean()) continue;
      ++ranking.pairs;
      const double predicted_a = time_per_sample(first.predicted);
      const double predicted = predicted_a - time_per_sample(second.predicted);
      if (std::abs(predicted) < kPredictedEqual * predicted_a) {
        ++ranking.equal;
        continue;
      }
      const double measured_a = time_per_sample(first.measured.outcome);
      const double measured_b = time_per_sample(second.measured.outcome);
      const double measured = measured_a - measured_b;
      if (std::abs(measured) <= min_difference(first, second, measured_a, measured_b)) {
        ++ranking.ties;
        continue;
      }
      (predicted * measured > 0 ? ranking.right : ranking.wrong) += 1;
    }
  }
  return ranking;
}

}  // namespace plumbline
