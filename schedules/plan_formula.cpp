// Loads on links and cards, counted pair by pair.
// SPDX-License-Identifier: MIT
#include "schedules/plan_formula.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace plumbline {
namespace {

constexpr double kNanoseconds = 1e9;

double time_ns(double bytes, const Link& link) {
  return link.bandwidth ? bytes * kNanoseconds / static_cast<double>(link.bandwidth->count) : 0;
}

/// All that leaves one group, and who sends most of it.
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
  }

  void ring(const FormulaStage& stage, std::uint32_t s) {
    const auto replicas = static_cast<std::uint32_t>(stage.devices.size());
    if (replicas == 1) return;
    const Bytes bytes = reduced_bytes(stage, residency_);
    const double each = ring_bytes(bytes, replicas);
    term(all_reduce_ns(cluster_, stage.devices, bytes) / replicas, BottleneckKind::all_reduce, s);
    traffic_ += each;  // r members send, once every r micro-batches
    std::map<Card, std::uint32_t> leaving;
    for (std::uint32_t i = 0; i < replicas; ++i) {
      const Path path = cluster_.path(stage.devices[i], stage.devices[(i + 1) % replicas]);
      if (path.out) ++leaving[*path.out];
    }
    for (const auto& [card, edges] : leaving) {
      add(card, each * edges / replicas, BottleneckKind::all_reduce, s);
    }
  }

  void boundary(const FormulaStage& from, const FormulaStage& to, std::uint32_t s, bool costs) {
    const auto bytes = static_cast<double>(from.crossing.count);
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
  if (!residency.sharded_optimizer) return stage.gradients;
  return {(stage.gradients.count + stage.parameters.count + 1) / 2};
}

double ring_bytes(Bytes bytes, std::uint32_t replicas) {
  return 2.0 * (replicas - 1) * static_cast<double>(bytes.count) / replicas;
}

double all_reduce_ns(const Cluster& cluster, const std::vector<DeviceId>& devices, Bytes bytes) {
  const auto replicas = static_cast<std::uint32_t>(devices.size());
  if (replicas == 1 || bytes.count == 0) return 0;
  double latency = 0;
  double slowest = 0;
  const double each = ring_bytes(bytes, replicas);
  for (std::uint32_t i = 0; i < replicas; ++i) {
    const Link link = cluster.path(devices[i], devices[(i + 1) % replicas]).link;
    latency = std::max(latency, static_cast<double>(link.latency.count()));
    slowest = std::max(slowest, time_ns(each, link));
  }
  return 2.0 * (replicas - 1) * latency + slowest;
}

FormulaTime formula_time(const Cluster& cluster, const std::vector<FormulaStage>& stages,
                         const Residency& residency, bool activation_transfers) {
  Loads loads(cluster, residency);
  for (std::uint32_t s = 0; s < stages.size(); ++s) {
    loads.term(static_cast<double>(stages[s].compute.count()) /
                   static_cast<double>(stages[s].devices.size()),
               BottleneckKind::compute, s);
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

double peak_memory(const FormulaStage& stage, std::uint32_t in_flight, const HeldInputs& inputs,
                   const Residency& residency, double optimizer_state) {
  const std::uint32_t with_checkpoints = residency.with_checkpoints(in_flight);
  return static_cast<double>(stage.parameters.count) * residency.versions(in_flight) +
         static_cast<double>(stage.stepped.count) * optimizer_state +
         static_cast<double>(stage.gradients.count) +
         static_cast<double>(stage.activation.count) * residency.with_activations(in_flight) +
         static_cast<double>(stage.checkpoints.kept.count) * with_checkpoints +
         (with_checkpoints > 0 ? static_cast<double>(stage.checkpoints.again.count) : 0) +
         static_cast<double>(stage.crossing.count) * in_flight +
         static_cast<double>(inputs.each.count) * inputs.count;
}

}  // namespace plumbline
