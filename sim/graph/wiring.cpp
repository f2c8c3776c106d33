// Channels and costs, boundary by boundary, ring by ring.
//
// SPDX-License-Identifier: MIT
#include "sim/graph/wiring.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace plumbline {

Wiring::Wiring(const PipelineShape& shape, const StageCosts& costs,
               const std::vector<DeviceId>& devices, const Cluster& cluster,
               const RunRules& options, OpGraph& graph)
    : shape_(shape),
      cluster_(cluster),
      options_(options),
      graph_(graph),
      classes_(shape, options, graph) {
  for (const DeviceId device : devices) {
    for (std::uint32_t copy = 0; copy < options.written_copies(); ++copy) {
      graph_.devices.push_back({device.value * options.copies + copy});
      graph_.machines.push_back(graph_.devices.back().value / cluster.levels.front().size);
    }
  }
  for (const auto& slots : shape.stage_slots) {
    auto& of_stage = graph_.stage_slots.emplace_back();
    for (const std::uint32_t slot : slots) {
      for (std::uint32_t copy = 0; copy < options.written_copies(); ++copy)
        of_stage.push_back(slot * options.written_copies() + copy);
    }
  }
  graph_.copies_represented = options.copies / options.written_copies();
  graph_.written_copies = options.written_copies();
  graph_.overlap = cluster.overlap_slowdown;
  classes_.add(costs);
  for (const StageCost& stage : costs.stages) {
    const bool again = options.recompute != Recompute::none;
    overlaps_.push_back({stage.forward_overlap,
                         stage.backward_overlap + (again ? stage.recompute_overlap : Overlap{})});
  }
  boundaries_.resize(shape.stages());
  for (std::uint32_t s = 0; s + 1 < shape.stages(); ++s) add_boundary(s, costs);
  reductions_.resize(shape.stages());
  scatters_.resize(shape.stages());
  gathers_.resize(shape.stages());
  for (std::uint32_t s = 0; s < shape.stages(); ++s) add_collectives(s, costs.stages[s]);
  for (const TiedTable& table : costs.tied) add_tie(table);
  // The resources of moments come after the channels. The number of channels is known only here.
  const auto first_moment = graph_.slots() + static_cast<std::uint32_t>(graph_.channels.size());
  host_ = first_moment;
  graph_.moments = 1;
  graph_.hand_over = options_.overheads.hand_over;
  const auto add_moments = [&](Collective& collective) {
    collective.begin = first_moment + graph_.moments++;
    for (Collective::Phase& phase : collective.phases) phase.end = first_moment + graph_.moments++;
  };
  for (auto& of_stage : reductions_) {
    for (Collective& reduction : of_stage) add_moments(reduction);
  }
  for (auto& of_stage : scatters_) {
    for (Collective& scatter : of_stage) add_moments(scatter);
  }
  for (auto& of_stage : gathers_) {
    for (Collective& gather : of_stage) add_moments(gather);
  }
  for (Tie& tie : ties_) {
    for (Collective& of_copy : tie.copies) add_moments(of_copy);
  }
}

std::pair<std::uint32_t, std::uint32_t> Wiring::pair_classes(const Op& first, const Op& second) {
  const auto [found, is_new] = pair_classes_.try_emplace(
      {first.stage.value, second.stage.value, static_cast<std::uint32_t>(first.kind)});
  if (!is_new) return found->second;
  const auto overlap = [&](const Op& op) {
    return overlaps_[op.stage.value][op.kind == OpKind::forward ? 0 : 1];
  };
  const Overlap both = overlap(first) + overlap(second);
  const double hidden_s = std::min(both.sending, both.computing);
  const auto add = [&](const Op& op) {
    Cost cost = graph_.cost_of(op.stage, static_cast<std::size_t>(op.kind));
    if (hidden_s > 0)
      cost.hidden = Duration{std::llround(1e9 * hidden_s * overlap(op).sending / both.sending)};
    cost.hidden = std::min(cost.hidden, cost.hold);
    cost.hold -= cost.hidden;
    graph_.costs.push_back(cost);
    return static_cast<std::uint32_t>(graph_.costs.size() - 1);
  };
  const std::uint32_t one = add(first);
  return found->second = {one, add(second)};
}

void Wiring::add_boundary(std::uint32_t boundary, const StageCosts& costs) {
  const auto& low = shape_.stage_slots[boundary];
  const auto& high = shape_.stage_slots[boundary + 1];
  if (low == high) return;
  std::size_t all_meet = std::lcm(low.size(), high.size());
  if (costs.lengths) all_meet = std::lcm(all_meet, std::size_t{costs.lengths->micro_batches});
  const std::size_t period = std::min<std::size_t>(all_meet, shape_.micro_batches);
  boundaries_[boundary].period = static_cast<std::uint32_t>(period);
  for (std::uint32_t m = 0; m < period; ++m) {
    for (std::uint32_t copy = 0; copy < options_.written_copies(); ++copy) {
      const std::uint32_t from = slot({boundary}, m, copy);
      const std::uint32_t to = slot({boundary + 1}, m, copy);
      const Bytes bytes =
          costs.lengths ? costs.lengths->kinds[costs.lengths->kind(m, copy)].cut_bytes(boundary)
                        : costs.cut_bytes(boundary);
      boundaries_[boundary].ways.push_back({transfer(from, to, bytes), transfer(to, from, bytes)});
    }
  }
}

Wiring::Route Wiring::transfer(std::uint32_t from, std::uint32_t to, Bytes bytes) {
  const std::uint32_t index = channel(from, to);
  const Path& path = graph_.channels[index].path;
  const bool blocks = options_.blocking && options_.blocking_link && !path.out && !path.own;
  const Link& link = blocks ? *options_.blocking_link : path.link;
  const TransferTime time = link.time_of(bytes);
  const Duration latency = time.latency + options_.overheads.hand_over;
  if (options_.blocking) {
    Cost cost{latency + time.flow, {}, latency, bytes, 0};
    cost.beside_work = beside_work(link, path, bytes, options_.overheads.hand_over);
    return {from, to, cost_class(cost)};
  }
  const std::uint32_t resource = graph_.slots() + index;
  if (const std::uint32_t beside = beside_work(link, path, bytes, {})) {
    // The work of others changes all of the copy, and a channel's copies come one by one.
    Cost cost{time.whole(), options_.overheads.hand_over, time.latency, bytes, 0};
    cost.beside_work = beside;
    return {resource, resource, cost_class(cost)};
  }
  return {resource, resource, cost_class({time.flow, latency, {}, bytes, 0})};
}

std::uint32_t Wiring::beside_work(const Link& link, const Path& path, Bytes bytes,
                                  Duration before) {
  if (path.out) return 0;  // to another machine
  std::vector<double> factors = link.factors_of(bytes, before);
  if (std::all_of(factors.begin(), factors.end(), [](double factor) { return factor == 1; }))
    return 0;
  if (graph_.beside_work.back() != factors) graph_.beside_work.push_back(std::move(factors));
  return static_cast<std::uint32_t>(graph_.beside_work.size() - 1);
}

std::uint32_t Wiring::channel(std::uint32_t from, std::uint32_t to) {
  auto& channels = graph_.channels;
  const auto [found, is_new] =
      channel_index_.try_emplace({from, to}, static_cast<std::uint32_t>(channels.size()));
  if (!is_new) return found->second;
  channels.push_back({from, to, cluster_.path(graph_.devices[from], graph_.devices[to])});
  return static_cast<std::uint32_t>(channels.size() - 1);
}

std::uint32_t Wiring::own_channel(std::uint32_t slot, OwnRing ring, const Path& path) {
  constexpr std::uint32_t max = std::numeric_limits<std::uint32_t>::max();
  auto& channels = graph_.channels;
  const auto [found, is_new] = channel_index_.try_emplace(
      {slot, max - static_cast<std::uint32_t>(ring)}, static_cast<std::uint32_t>(channels.size()));
  if (is_new) channels.push_back({slot, slot, path});
  return found->second;
}

/// Neighbouring channels mostly cost the same, so only the last class is looked at.
std::uint32_t Wiring::cost_class(const Cost& cost) {
  if (graph_.costs.size() == classes_.size() || !(graph_.costs.back() == cost))
    graph_.costs.push_back(cost);
  return static_cast<std::uint32_t>(graph_.costs.size() - 1);
}

}  // namespace plumbline
