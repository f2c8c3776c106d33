// Loads on links and cards, counted pair by pair.
//
// SPDX-License-Identifier: MIT
#include "schedules/planner/plan_formula.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace plumbline {
namespace {

constexpr double kNanoseconds = 1e9;

double time_ns(double bytes, const Link& link) {
  return link.bandwidth ? bytes * kNanoseconds / static_cast<double>(link.bandwidth->count) : 0;
}

std::uint32_t replicas_of(const FormulaStage& stage) {
  return static_cast<std::uint32_t>(stage.devices.size());
}

/// The link behind a stage in an iteration with a flush, and the card that it loads most.
struct LinkUse {
  FlushLink link;
  std::optional<Card> card;
};

/// Each pair of replicas has one in lcm(r, r') of the outputs. All pairs that leave or enter a
/// group share its card.
LinkUse link_use(const Cluster& cluster, const FormulaStage& from, const FormulaStage& to,
                 std::uint32_t micro_batches) {
  if (from.cut_bytes.count == 0) return {};
  const std::size_t common = std::lcm(from.devices.size(), to.devices.size());
  const double share = static_cast<double>(from.cut_bytes.count) / static_cast<double>(common);
  LinkUse use;
  use.link.transfer = std::numeric_limits<double>::infinity();
  std::map<Card, std::uint32_t> pairs;
  const auto load = [&](double bytes, const Link& link, const std::optional<Card>& card) {
    const double ns = micro_batches * time_ns(bytes, link);
    if (ns <= use.link.load) return;
    use.link.load = ns;
    use.card = card;
  };
  for (std::size_t m = 0; m < common; ++m) {
    const Path path =
        cluster.path(from.devices[m % from.devices.size()], to.devices[m % to.devices.size()]);
    use.link.transfer = std::min(use.link.transfer, transfer_ns(from.cut_bytes, path.link));
    if (!path.out) load(share, path.link, std::nullopt);
    if (path.out) ++pairs[*path.out];
    if (path.in) ++pairs[*path.in];
  }
  for (const auto& [card, count] : pairs)
    load(share * count, cluster.levels[card.level].link, card);
  return use;
}

/// An iteration with a flush: the chain from each stage on, and the parts of the first chain.
class Iteration {
 public:
  Iteration(const Cluster& cluster, const std::vector<FormulaStage>& formula,
            const Residency& residency, bool activation_transfers)
      : chains_(formula.size() + 1),
        links_(formula.size()),
        rings_(formula.size(), 0),
        stages_(formula.size()) {
    std::uint32_t devices = 0;
    for (auto s = static_cast<std::uint32_t>(formula.size()); s-- > 0;) {
      const FormulaStage& stage = formula[s];
      devices += replicas_of(stage);
      rings_[s] = all_reduce_ns(cluster, stage.devices, reduced_bytes(stage, residency));
      stages_[s] = flush_stage(stage, residency, devices, replicas_of(stage), rings_[s]);
      if (activation_transfers && s + 1 < formula.size())
        links_[s] = link_use(cluster, stage, formula[s + 1], *residency.micro_batches);
      chains_[s] = with_front(behind(s), stages_[s]);
    }
  }

  double ns() const { return chains_.front().end(); }

  /// Follows the longest chain; `bottleneck` becomes the largest share of it.
  FlushShares shares(Bottleneck& bottleneck) const {
    std::uint32_t last = 0;  // whose all-reduce ends last
    while (chains_[last].reduced > chains_[last].span + stages_[last].reduce) ++last;
    std::uint32_t updated = 0;  // whose update takes longest
    while (chains_.front().update > stages_[updated].update) ++updated;
    Bottleneck busiest;
    const double work = work_from(last, busiest);
    const double own = stages_[last].reduce - rings_[last];  // the other updates do not wait for it
    const double update = chains_.front().update + own;
    const double flush = std::max(0.0, ns() - work - rings_[last] - update);
    double largest = 0;
    const auto take = [&](double ns, const Bottleneck& what) {
      if (ns <= largest) return;
      largest = ns;
      bottleneck = what;
    };
    take(work, busiest);
    take(rings_[last], {BottleneckKind::all_reduce, last, std::nullopt});
    take(flush, {BottleneckKind::flush, busiest.stage, std::nullopt});
    take(update, {BottleneckKind::update, updated, std::nullopt});
    return {work / kNanoseconds, flush / kNanoseconds, rings_[last] / kNanoseconds,
            update / kNanoseconds, busiest.kind};
  }

 private:
  FlushChain behind(std::uint32_t s) const { return across(chains_[s + 1], links_[s].link); }

  /// The time that decides the span of a stage: its own work or the work behind it.
  double work_from(std::uint32_t s, Bottleneck& busiest) const {
    for (;; ++s) {
      const double span = chains_[s].span;
      const FlushStage& stage = stages_[s];
      busiest = {BottleneckKind::compute, s, std::nullopt};
      if (span <= stage.work()) return span;
      busiest.kind = BottleneckKind::round_trip;
      if (span <= stage.windows() * chains_[s].round_trip) return span;
      busiest.kind = BottleneckKind::compute;
      if (span <= stage.work() + idle(stage, behind(s).round_trip)) return stage.work();
      const FlushLink& link = links_[s].link;
      busiest = {BottleneckKind::link, s, links_[s].card};
      if (behind(s).span > chains_[s + 1].span + 2 * link.transfer)
        return chains_[s + 1].in_two ? 2 * link.load : link.load;
    }
  }

  std::vector<FlushChain> chains_;  ///< One per stage, and an empty one.
  std::vector<LinkUse> links_;      ///< Behind each stage.
  std::vector<double> rings_;
  std::vector<FlushStage> stages_;
};

/// All bytes that leave one group, and the largest sender.
struct CardLoad {
  double bytes = 0;
  Link link;
  double largest = 0;
  Bottleneck from;

  void add(double more, BottleneckKind kind, std::uint32_t stage) {
    bytes += more;
    if (more <= largest) return;
    largest = more;
    from.kind = kind;
    from.stage = stage;
  }
};

/// Gathers the largest term and the loads of cards.
class Loads {
 public:
  Loads(const Cluster& cluster, const Residency& residency)
      : cluster_(cluster), residency_(residency) {}

  void term(double ns, BottleneckKind kind, std::uint32_t stage) {
    if (ns <= time_.period_ns) return;
    time_.period_ns = ns;
    time_.bottleneck = {kind, stage, std::nullopt};
    time_.flush.reset();
  }

  void iteration(const Iteration& iteration, std::uint32_t micro_batches) {
    time_.period_ns = iteration.ns() / micro_batches;
    time_.flush = iteration.shares(time_.bottleneck);
  }

  void ring(const FormulaStage& stage, std::uint32_t s) {
    const std::uint32_t replicas = replicas_of(stage);
    if (replicas == 1) return;
    const Bytes bytes = reduced_bytes(stage, residency_);
    const double apart = residency_.per_reduction(replicas);
    const double each = ring_bytes(bytes, replicas);
    if (!residency_.micro_batches)
      term(all_reduce_ns(cluster_, stage.devices, bytes) / apart, BottleneckKind::all_reduce, s);
    traffic_ += each * replicas / apart;  // r members send
    std::map<Card, std::uint32_t> leaving;
    for (std::uint32_t i = 0; i < replicas; ++i) {
      const Path path = cluster_.path(stage.devices[i], stage.devices[(i + 1) % replicas]);
      if (path.out) ++leaving[*path.out];
    }
    for (const auto& [card, edges] : leaving) {
      add(card, each * edges / apart, BottleneckKind::all_reduce, s);
    }
  }

  void boundary(const FormulaStage& from, const FormulaStage& to, std::uint32_t s, bool costs) {
    const auto bytes = static_cast<double>(from.cut_bytes.count);
    traffic_ += 2 * bytes;
    if (!costs) return;
    const std::size_t common = std::lcm(from.devices.size(), to.devices.size());
    const double share = bytes / static_cast<double>(common);
    std::map<Card, std::uint32_t> leaving;
    for (std::size_t m = 0; m < common; ++m) {
      const DeviceId sender = from.devices[m % from.devices.size()];
      const DeviceId receiver = to.devices[m % to.devices.size()];
      const Path path = cluster_.path(sender, receiver);
      if (path.out) {
        ++leaving[*path.out];
        ++leaving[*cluster_.path(receiver, sender).out];
      } else {
        term(time_ns(share, path.link), BottleneckKind::link, s);
      }
    }
    for (const auto& [card, pairs] : leaving) add(card, share * pairs, BottleneckKind::link, s);
  }

  FormulaTime finish() {
    for (const auto& [card, load] : cards_) {
      const double before = time_.period_ns;
      term(time_ns(load.bytes, load.link), load.from.kind, load.from.stage);
      if (time_.period_ns > before) time_.bottleneck.card = card;
    }
    time_.traffic = {std::llround(traffic_)};
    return time_;
  }

 private:
  void add(const Card& card, double bytes, BottleneckKind kind, std::uint32_t stage) {
    CardLoad& load = cards_[card];
    load.link = cluster_.levels[card.level].link;
    load.add(bytes, kind, stage);
  }

  const Cluster& cluster_;
  const Residency& residency_;
  FormulaTime time_;
  double traffic_ = 0;
  std::map<Card, CardLoad> cards_;
};

}  // namespace

Bytes reduced_bytes(const FormulaStage& stage, const Residency& residency) {
  if (!residency.sharded_optimizer) return stage.reduced;
  return {(stage.reduced.count + stage.gathered.count + 1) / 2};
}

double ring_bytes(Bytes bytes, std::uint32_t replicas) {
  return 2.0 * (replicas - 1) * static_cast<double>(bytes.count) / replicas;
}

double transfer_ns(Bytes bytes, const Link& link) {
  if (bytes.count == 0) return 0;
  if (!link.table.empty()) return static_cast<double>(link.time_of(bytes).whole().count());
  return static_cast<double>(link.latency.count()) +
         time_ns(static_cast<double>(bytes.count), link);
}

double compute_ns(const FormulaStage& stage, const Residency& residency, std::uint32_t replicas) {
  return stage.forward_ns + stage.backward_ns + stage.update_ns / residency.per_update(replicas);
}

FlushStage flush_stage(const FormulaStage& stage, const Residency& residency, std::uint32_t devices,
                       std::uint32_t replicas, double all_reduce_ns) {
  FlushStage flush{stage.forward_ns,
                   stage.backward_ns,
                   all_reduce_ns,
                   stage.update_ns,
                   residency.per_update(replicas),
                   residency.in_flight(devices, replicas),
                   replicas == 1};
  // Half of it comes after the update of a share; the formula does not tell the halves apart.
  if (residency.sharded_optimizer && replicas > 1) flush.reduce += std::exchange(flush.update, 0.0);
  return flush;
}

double all_reduce_ns(const Cluster& cluster, const std::vector<DeviceId>& devices, Bytes bytes) {
  const auto replicas = static_cast<std::uint32_t>(devices.size());
  if (replicas == 1 || bytes.count == 0) return 0;
  double slowest = 0;
  const double each = ring_bytes(bytes, replicas);
  for (std::uint32_t i = 0; i < replicas; ++i) {
    const Link link = cluster.path(devices[i], devices[(i + 1) % replicas]).link;
    const double latencies = 2.0 * (replicas - 1) * static_cast<double>(link.latency.count());
    slowest = std::max(slowest, latencies + time_ns(each, link));
  }
  return slowest;
}

FormulaTime formula_time(const Cluster& cluster, const std::vector<FormulaStage>& stages,
                         const Residency& residency, bool activation_transfers) {
  Loads loads(cluster, residency);
  if (residency.micro_batches) {
    loads.iteration({cluster, stages, residency, activation_transfers}, *residency.micro_batches);
  }
  for (std::uint32_t s = 0; s < stages.size() && !residency.micro_batches; ++s) {
    const std::uint32_t replicas = replicas_of(stages[s]);
    loads.term(compute_ns(stages[s], residency, replicas) / replicas, BottleneckKind::compute, s);
  }
  for (std::uint32_t s = 0; s < stages.size(); ++s) loads.ring(stages[s], s);
  for (std::uint32_t s = 0; s + 1 < stages.size(); ++s) {
    loads.boundary(stages[s], stages[s + 1], s, activation_transfers);
  }
  return loads.finish();
}

std::vector<std::uint32_t> full_rate_warm_ups(const std::vector<std::uint32_t>& replicas,
                                              std::uint32_t extra) {
  std::vector<std::uint32_t> warm_ups(replicas.size(), 0);
  for (std::size_t s = replicas.size(); s-- > 1;) {
    const std::uint32_t behind = replicas[s] * (warm_ups[s] + 1);
    warm_ups[s - 1] = (behind + replicas[s - 1] - 1) / replicas[s - 1] + extra;
  }
  return warm_ups;
}

std::uint32_t inputs_held(std::uint32_t front_replicas, std::uint32_t front_in_flight,
                          std::uint32_t replicas) {
  return (front_replicas * front_in_flight + replicas - 1) / replicas;
}

double recompute_that_fits_ns(const FormulaStage& stage, std::uint32_t in_flight, Bytes memory,
                              const Residency& residency, double optimizer_state) {
  const double with_all_recomputed =
      peak_memory(stage, in_flight, {stage.entering, in_flight + 1}, residency, optimizer_state);
  const double saved =
      static_cast<double>((stage.activation - stage.checkpoints.kept).count) * in_flight -
      static_cast<double>(stage.checkpoints.again.count);
  const double lacking = with_all_recomputed + saved - static_cast<double>(memory.count);
  if (lacking <= 0) return 0;
  return stage.recompute_ns * (lacking < saved ? lacking / saved : 1);
}

double peak_memory(const FormulaStage& stage, std::uint32_t in_flight, const HeldInputs& inputs,
                   const Residency& residency, double optimizer_state) {
  const std::uint32_t with_checkpoints = residency.with_checkpoints(in_flight);
  return static_cast<double>(stage.parameters.count) * residency.versions(in_flight) +
         static_cast<double>(stage.stepped.count) * optimizer_state +
         static_cast<double>(stage.gradients.count) +
         static_cast<double>(stage.activation.count) * residency.with_activations(in_flight) +
         static_cast<double>(stage.checkpoints.kept.count) * with_checkpoints +
         (with_checkpoints > 0 ? static_cast<double>(stage.checkpoints.again.count) : 0) +
         static_cast<double>(stage.cut_bytes.count) * in_flight +
         static_cast<double>(inputs.each.count) * inputs.count;
}

}  // namespace plumbline
