// Sampled runs: side by side where the longest path is exact, by events elsewhere.
//
// SPDX-License-Identifier: MIT
#include "sim/prediction/uncertainty.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/quantity.h"
#include "base/random.h"
#include "sim/engine/compiled_graph.h"
#include "sim/engine/simulate.h"
#include "sim/prediction/iteration_clock.h"

namespace plumbline {
namespace {

std::size_t op_kind(ActivityKind kind) {
  if (kind == ActivityKind::update) return kOpKinds - 1;
  return static_cast<std::size_t>(op_of(kind));
}

/// The sampled times of a run's ops.
class Sampler {
 public:
  Sampler(const NoiseSampling& sampling, const Outcome& outcome)
      : noise_(sampling.noise),
        graph_(outcome.graph),
        spreads_(sampling.measured),
        ops_(ops_of_parts(outcome.graph)) {
    if (spreads_.empty()) {
      spreads_.assign(outcome.setup.partition.stages.size(), {});
      for (OpSpreads& stage : spreads_) stage.fill(noise_.spread);
    }
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      if (is_compute(graph_.activities[node].kind) && graph_.cost(node).hold.count() > 0)
        nodes_.push_back(node);
    }
  }

  /// Calls `set(node, hold)` for every op of run `run`, or for each of its parts. The parts of an
  /// op vary alike.
  template <class Set>
  void sample(std::uint32_t run, Set&& set) const {
    for (const std::uint32_t node : nodes_) {
      const Activity& activity = graph_.activities[node];
      Noise own = noise_;
      own.spread = spreads_[activity.stage.value][op_kind(activity.kind)];
      set(node, std::llround(static_cast<double>(graph_.cost(node).hold.count()) *
                             noise_factor(own, run, ops_[node])));
    }
  }

 private:
  Noise noise_;
  const OpGraph& graph_;
  std::vector<OpSpreads> spreads_;
  std::vector<std::uint32_t> ops_;    ///< One per node: the op that it is a part of.
  std::vector<std::uint32_t> nodes_;  ///< The nodes that take time.
};

std::vector<double> sample_side_by_side(const Sampler& sampler, const IterationClock& clock,
                                        const OpGraph& graph, std::uint32_t samples) {
  const CompiledGraph compiled(graph, index_by_node(graph), clock.watched());
  CompiledGraph::Tables tables = compiled.tables();
  CompiledGraph::Workspace workspace;
  std::vector<std::int64_t> rows;
  std::vector<double> times;
  times.reserve(samples);
  for (std::uint32_t first = 0; first < samples; first += CompiledGraph::kLanes) {
    const std::size_t lanes = std::min<std::size_t>(CompiledGraph::kLanes, samples - first);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      sampler.sample(first + static_cast<std::uint32_t>(lane),
                     [&](std::uint32_t node, std::int64_t hold) {
                       tables.hold[node * CompiledGraph::kLanes + lane] = hold;
                     });
    }
    compiled.evaluate(tables, workspace, rows);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      times.push_back(clock.iteration_time_s(
          static_cast<double>(clock.length(rows.data() + lane, CompiledGraph::kLanes))));
    }
  }
  return times;
}

/// `sample(run, set)` calls `set(node, hold)` for every op of a run.
template <class Sample>
std::vector<double> sample_by_events(const Sample& sample, const IterationClock& clock,
                                     OpGraph graph, std::uint32_t samples) {
  // A class of cost for each node.
  std::vector<Cost> costs;
  costs.reserve(graph.size());
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    costs.push_back(graph.cost(node));
    graph.nodes[node].cost = node;
  }
  graph.costs = std::move(costs);
  std::vector<double> times;
  times.reserve(samples);
  for (std::uint32_t run = 0; run < samples; ++run) {
    sample(run, [&](std::uint32_t node, std::int64_t hold) {
      graph.costs[node].hold = Duration(std::max<std::int64_t>(0, hold));
    });
    times.push_back(
        clock.iteration_time_s(static_cast<double>(clock.length(graph, simulate(graph)))));
  }
  return times;
}

/// The iteration times, ascending, of runs whose ops differ by a millionth and by a nanosecond.
std::vector<double> times_by_little(const Outcome& outcome, std::uint32_t runs) {
  NoiseSampling little;
  little.noise.spread = 1e-6;
  const Sampler sampler(little, outcome);
  const auto sample = [&](std::uint32_t run, const auto& set) {
    sampler.sample(run, [&](std::uint32_t node, std::int64_t hold) {
      set(node, hold + (random_bits(run, node) % 2 == 0 ? 1 : -1));
    });
  };
  auto times = sample_by_events(sample, IterationClock(outcome), outcome.graph, runs);
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace

Uncertainty sample_uncertainty(const NoiseSampling& sampling, const Outcome& outcome) {
  const Sampler sampler(sampling, outcome);
  const IterationClock clock(outcome);
  const std::uint32_t samples = sampling.samples;
  Uncertainty uncertainty;
  uncertainty.seed = sampling.noise.seed;
  const auto sample = [&](std::uint32_t run, const auto& set) { sampler.sample(run, set); };
  const bool by_events = outcome.graph.rates_change() || !outcome.graph.flushes;
  uncertainty.iteration_times_s = by_events
                                      ? sample_by_events(sample, clock, outcome.graph, samples)
                                      : sample_side_by_side(sampler, clock, outcome.graph, samples);
  std::sort(uncertainty.iteration_times_s.begin(), uncertainty.iteration_times_s.end());
  return uncertainty;
}

std::optional<std::string> lockstep_note(const Outcome& outcome) {
  constexpr std::uint32_t max_activities = 2'000'000;
  const OpGraph& graph = outcome.graph;
  if (outcome.setup.noise || graph.size() > max_activities) return std::nullopt;
  const std::vector<bool> shared = graph.shared_channels();
  if (std::find(shared.begin(), shared.end(), true) == shared.end()) return std::nullopt;
  const std::uint32_t runs = std::clamp(max_activities / graph.size() / 2, 0U, 5U) * 2 + 1;
  const std::vector<double> times = times_by_little(outcome, runs);
  const double now = outcome.iteration_time_s;
  const double first = times.front();
  const double last = times.back();
  const double middle = times[times.size() / 2];
  const auto text = [](double time_s) { return to_text(round_up(time_s * 1e9)); };
  const auto change = [&](double time_s) { return 100 * (time_s / now - 1); };
  // All runs with small differences are unlike the prediction.
  if ((now < first || now > last) && std::abs(change(middle)) >= 1) {
    return fmt::format(
        "transfers that share a card start at the very same instants here: with ops that differ by "
        "a millionth an iteration takes some {} ({:+.1f} %); noise shows what real runs take",
        text(middle), change(middle));
  }
  if (!(last - first >= 0.01 * now)) return std::nullopt;
  return fmt::format(
      "the run is chaotic: transfers share a card, and with ops that differ by a millionth, or a "
      "nanosecond, an iteration takes {} to {} ({:+.1f} to {:+.1f} %); noise shows what real runs "
      "take",
      text(first), text(last), change(first), change(last));
}

double probability_faster(const Outcome& a, const Outcome& b) {
  const std::vector<double>& ours = a.uncertainty->iteration_times_s;
  const std::vector<double>& theirs = b.uncertainty->iteration_times_s;
  // Compares time / samples. To avoid a division, each time is multiplied by the other's samples.
  const double our_samples = a.samples_per_iteration();
  const double their_samples = b.samples_per_iteration();
  double won = 0;
  for (const double time : ours) {
    const double as_theirs = time * their_samples / our_samples;
    const auto [equal, slower] = std::equal_range(theirs.begin(), theirs.end(), as_theirs);
    won += static_cast<double>(theirs.end() - slower) + 0.5 * static_cast<double>(slower - equal);
  }
  return won / (static_cast<double>(ours.size()) * static_cast<double>(theirs.size()));
}

}  // namespace plumbline
