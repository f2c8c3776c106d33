// Sampled runs: side by side where the longest path is exact, by events elsewhere.
//
// SPDX-License-Identifier: MIT
#include "sim/prediction/uncertainty.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

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

/// Numbers the links over which a run sends: two devices, both ways, or two network cards.
class LinkNumbers {
 public:
  using Numbers = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>;

  explicit LinkNumbers(const Outcome& outcome)
      : graph_(outcome.graph), cluster_(outcome.setup.cluster) {}

  /// The link, or the two cards, of a transfer or a hop.
  std::pair<std::uint32_t, std::uint32_t> of(std::uint32_t node) {
    const std::uint32_t from = graph_.sender(node);
    const std::uint32_t to = graph_.receiver(node);
    const Path path = graph_.holds_channel(node)
                          ? graph_.channel(node).path
                          : cluster_.path(graph_.devices[from], graph_.devices[to]);
    if (path.out) return {number(*path.out), number(*path.in)};
    const std::uint32_t link = number(links_, std::minmax(from, to));
    return {link, link};
  }

  /// The numbers of all cards so far, by level and group.
  const Numbers& cards() const { return cards_; }

 private:
  /// Both directions of a card have one number.
  std::uint32_t number(const Card& card) { return number(cards_, {card.level, card.group}); }
  std::uint32_t number(Numbers& numbers, std::pair<std::uint32_t, std::uint32_t> key) {
    const auto next = static_cast<std::uint32_t>(links_.size() + cards_.size());
    return numbers.emplace(key, next).first->second;
  }

  const OpGraph& graph_;
  const Cluster& cluster_;
  Numbers links_, cards_;
};

/// The sampled times of a run's ops and transfers.
class Sampler {
 public:
  Sampler(const NoiseSampling& sampling, const Outcome& outcome)
      : noise_(sampling.noise),
        graph_(outcome.graph),
        group_(static_cast<std::uint32_t>(outcome.setup.group_devices())),
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
    if (noise_.of_links()) add_transfers(outcome);
  }

  /// Calls `set(node, hold)` for every op of run `run`, or for each of its parts, and for what is
  /// sent, where links vary. The parts of an op vary alike.
  template <class Set>
  void sample(std::uint32_t run, Set&& set) const {
    const std::vector<double> devices = device_factors(run);
    for (const std::uint32_t node : nodes_) {
      const Activity& activity = graph_.activities[node];
      Noise own = noise_;
      own.spread = spreads_[activity.stage.value][op_kind(activity.kind)];
      double factor = noise_factor(own, run, ops_[node]);
      if (!devices.empty()) factor *= devices[graph_.nodes[node].resource];
      set(node, std::llround(static_cast<double>(graph_.cost(node).hold.count()) * factor));
    }
    for (const Sent& sent : sent_) {
      const double factor = std::max(slowest_link(run, sent.out), slowest_link(run, sent.in));
      const Cost& cost = graph_.cost(sent.node);
      const auto flows = static_cast<double>((cost.hold - cost.lead).count());
      set(sent.node, cost.lead.count() + std::llround(flows * factor));
    }
  }

  /// The cards that are slow in run `run`, both ways.
  std::map<Card, double> slow_cards(std::uint32_t run) const {
    std::map<Card, double> slow;
    for (const auto& [card, number] : cards_) {
      const double factor = slowest_link(run, number);
      if (factor == 1) continue;
      slow[{card.first, card.second, false}] = slow[{card.first, card.second, true}] = factor;
    }
    return slow;
  }

 private:
  /// A transfer or a hop, and the links or cards that it takes.
  struct Sent {
    std::uint32_t node, out, in;
  };

  void add_transfers(const Outcome& outcome) {
    LinkNumbers links(outcome);
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      const ActivityKind kind = graph_.activities[node].kind;
      if (!is_transfer(kind) && !is_collective(kind)) continue;
      if (graph_.cost(node).bytes.count == 0 || graph_.cost(node).hold.count() == 0) continue;
      const auto [out, in] = links.of(node);
      sent_.push_back({node, out, in});
    }
    cards_ = links.cards();
  }

  /// The factor of a link in a run. Each device of a group has its own, and all wait for the
  /// slowest.
  double slowest_link(std::uint32_t run, std::uint32_t number) const {
    double slowest = 1;
    for (std::uint32_t member = 0; member < group_; ++member)
      slowest = std::max(slowest, link_factor(noise_, run, number * group_ + member));
    return slowest;
  }

  /// The factor of each slot in a run. A group is as slow as its slowest device. Empty: all are 1.
  std::vector<double> device_factors(std::uint32_t run) const {
    if (!noise_.of_devices()) return {};
    std::vector<double> factors(graph_.slots());
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) {
      for (std::uint32_t member = 0; member < group_; ++member)
        factors[slot] = std::max(factors[slot], device_factor(noise_, run, slot * group_ + member));
    }
    return factors;
  }

  Noise noise_;
  const OpGraph& graph_;
  std::uint32_t group_;  ///< The devices that each slot stands for.
  std::vector<OpSpreads> spreads_;
  std::vector<std::uint32_t> ops_;    ///< One per node: the op that it is a part of.
  std::vector<std::uint32_t> nodes_;  ///< The ops that take time.
  std::vector<Sent> sent_;            ///< What is sent, where links vary.
  LinkNumbers::Numbers cards_;
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
std::vector<double> sample_by_events(const Sampler& sampler, const Sample& sample,
                                     const IterationClock& clock, OpGraph graph,
                                     std::uint32_t samples) {
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
    graph.slow_cards = sampler.slow_cards(run);
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
  auto times = sample_by_events(sampler, sample, IterationClock(outcome), outcome.graph, runs);
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
  uncertainty.iteration_times_s =
      by_events ? sample_by_events(sampler, sample, clock, outcome.graph, samples)
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
