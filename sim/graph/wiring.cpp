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
    : shape_(shape), cluster_(cluster), options_(options), graph_(graph) {
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
  add_compute_classes(with_whole_updates(costs));
  for (const StageCost& stage : costs.stages) {
    const bool again = options.recompute != Recompute::none;
    overlaps_.push_back({stage.forward_overlap,
                         stage.backward_overlap + (again ? stage.recompute_overlap : Overlap{})});
  }
  boundaries_.resize(shape.stages());
  for (std::uint32_t s = 0; s + 1 < shape.stages(); ++s) add_boundary(s, costs.cut_bytes(s));
  reductions_.resize(shape.stages());
  gathers_.resize(shape.stages());
  for (std::uint32_t s = 0; s < shape.stages(); ++s) add_collectives(s, costs.stages[s]);
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
  for (auto& of_stage : gathers_) {
    for (Collective& gather : of_stage) add_moments(gather);
  }
}

StageCosts Wiring::with_whole_updates(StageCosts costs) const {
  const auto& add_up = options_.overheads.add_up;
  const auto& stash = options_.overheads.stash;
  for (std::size_t s = 0; s < costs.stages.size(); ++s) {
    const auto r = static_cast<std::int64_t>(graph_.members(static_cast<std::uint32_t>(s)));
    const bool stashes = !options_.weight_versions.empty() && options_.weight_versions[s] > 1;
    if (r == 1 && !stashes) continue;
    StageCost& stage = costs.stages[s];
    Duration more{};
    if (add_up) more += (r - 1) * transfer_time(stage.reduced, *add_up);
    if (stash && stashes) more += transfer_time(stage.parameters, *stash);
    const std::int64_t shares = options_.sharded != Sharded::nothing ? r : 1;
    const auto whole = static_cast<double>((stage.update + more).count());
    const Duration own = stage.update - stage.update_before + more;
    stage.update = stage.update_before + Duration{(own.count() + shares - 1) / shares};
    if (costs.slowdowns.empty() || whole == 0) continue;
    const double left = static_cast<double>(stage.update.count()) / whole;
    for (double& slowed : costs.slowdowns[s].update)
      slowed = (slowed + static_cast<double>(more.count())) * left;
  }
  return costs;
}

std::uint32_t Wiring::slowdown_of(Duration hold,
                                  const std::vector<const std::vector<double>*>& parts, double work,
                                  Duration rest) {
  if (hold.count() == 0) return 0;
  std::vector<double> factors(parts.front()->size(), static_cast<double>(rest.count()));
  for (const std::vector<double>* part : parts) {
    for (std::size_t k = 0; k < factors.size(); ++k) factors[k] += work * (*part)[k];
  }
  for (double& factor : factors) factor /= static_cast<double>(hold.count());
  graph_.slowdowns.push_back(std::move(factors));
  return static_cast<std::uint32_t>(graph_.slowdowns.size() - 1);
}

void Wiring::add_compute_class(Duration time, const StageSlowdown* slow,
                               const std::vector<double> StageSlowdown::*own, Duration again,
                               double work) {
  const Duration per_op = options_.overheads.per_op;
  Duration hold = time + again;
  if (work != 1) hold = Duration{std::llround(work * static_cast<double>(hold.count()))};
  hold += per_op;
  Cost cost{hold, {}, {}, {}, 0};
  if (slow != nullptr) {
    std::vector<const std::vector<double>*> parts = {&(slow->*own)};
    if (again.count() > 0) parts.push_back(&slow->again);
    cost.slowdown = slowdown_of(hold, parts, work, per_op);
  }
  graph_.costs.push_back(cost);
}

void Wiring::add_op_classes(const StageCosts& costs, std::size_t stage, double work) {
  const StageCost& cost = costs.stages[stage];
  const StageSlowdown* const slow = costs.slowdowns.empty() ? nullptr : &costs.slowdowns[stage];
  const Duration again = options_.recompute != Recompute::none ? cost.again : Duration{};
  add_compute_class(cost.forward, slow, &StageSlowdown::forward, {}, work);
  add_compute_class(cost.backward, slow, &StageSlowdown::backward, again, work);
  add_compute_class(cost.backward_input, slow, &StageSlowdown::backward_input, again, work);
  add_compute_class(cost.backward_weight, slow, &StageSlowdown::backward_weight, {}, work);
}

void Wiring::add_compute_classes(const StageCosts& costs) {
  graph_.updates_at_once = costs.updates_at_once;
  for (std::size_t s = 0; s < costs.stages.size(); ++s) {
    add_op_classes(costs, s, 1);
    add_compute_class(costs.stages[s].update,
                      costs.slowdowns.empty() ? nullptr : &costs.slowdowns[s],
                      &StageSlowdown::update, {}, 1);
  }
  flush_class_ = static_cast<std::uint32_t>(graph_.costs.size());
  graph_.costs.push_back({});
  graph_.costs.push_back({options_.overheads.per_iteration, {}, {}, {}, 0});
  first_slice_class_ = static_cast<std::uint32_t>(graph_.costs.size());
  for (const double work : options_.slice_work) {
    for (std::size_t s = 0; s < costs.stages.size(); ++s) add_op_classes(costs, s, work);
  }
  const std::size_t slices = std::max<std::size_t>(1, options_.slice_work.size());
  for (std::uint32_t s = 0; s < costs.stages.size(); ++s) {
    buckets_.push_back(static_cast<std::uint32_t>(costs.stages[s].buckets.size()));
    for (std::uint32_t slice = 0; slice < slices; ++slice)
      add_part_classes(costs.stages[s], s, slice);
  }
  first_transfer_class_ = graph_.costs.size();
}

void Wiring::add_part_classes(const StageCost& cost, std::uint32_t stage, std::uint32_t slice) {
  first_part_class_.push_back(static_cast<std::uint32_t>(graph_.costs.size()));
  const double work = options_.slice_work.empty() ? 1 : options_.slice_work[slice];
  const bool each = by_layer(options_.recompute);
  const bool at_once = options_.recompute != Recompute::none && !each;
  const auto add = [&](OpKind kind, Duration before, const auto& own) {
    const auto whole = op_class({stage}, static_cast<std::size_t>(kind), slice);
    const auto at = [&](Duration time) {
      return work == 1 ? time : Duration{std::llround(work * static_cast<double>(time.count()))};
    };
    Duration done{};
    Duration up_to = before;
    for (std::size_t part = 0; part < cost.buckets.size(); ++part) {
      up_to += own(part);
      add_part_class(at(up_to) - done, graph_.costs[whole]);
      done = at(up_to);
    }
  };
  const auto& buckets = cost.buckets;
  add(OpKind::forward, {}, [&](std::size_t i) { return buckets[buckets.size() - 1 - i].forward; });
  // The first part recomputes all activations, unless each part recomputes its own layers.
  add(OpKind::backward, at_once ? cost.again : Duration{},
      [&](std::size_t i) { return buckets[i].backward + (each ? buckets[i].again : Duration{}); });
  add(OpKind::backward_weight, {}, [&](std::size_t i) { return buckets[i].backward_weight; });
}

void Wiring::add_part_class(Duration time, const Cost& whole) {
  const Duration per_op = options_.overheads.per_op;  // each part is launched by itself
  Cost cost{time + per_op, {}, {}, {}, whole.slowdown};
  const Duration whole_time = whole.hold - per_op;
  if (whole.slowdown != 0 && per_op.count() > 0 && whole_time.count() > 0) {
    // A part slows down like the whole op beside its neighbours, except for its launch, whose time
    // is fixed.
    const auto ns = [](Duration one) { return static_cast<double>(one.count()); };
    std::vector<double> slowed = graph_.slowdowns[whole.slowdown];
    for (double& factor : slowed) factor = (factor * ns(whole.hold) - ns(per_op)) / ns(whole_time);
    cost.slowdown = slowdown_of(cost.hold, {&slowed}, ns(time), per_op);
  }
  graph_.costs.push_back(cost);
}

std::uint32_t Wiring::part_class(const Op& op, std::size_t part) const {
  const std::size_t slices = std::max<std::size_t>(1, options_.slice_work.size());
  const std::size_t place = op.stage.value * slices + op.micro_batch.value % slices;
  const std::size_t kind = op.kind == OpKind::forward ? 0 : op.kind == OpKind::backward ? 1 : 2;
  return first_part_class_[place] +
         static_cast<std::uint32_t>(kind * buckets_[op.stage.value] + part);
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

void Wiring::add_boundary(std::uint32_t boundary, Bytes bytes) {
  const auto& low = shape_.stage_slots[boundary];
  const auto& high = shape_.stage_slots[boundary + 1];
  if (low == high) return;
  const std::size_t period =
      std::min<std::size_t>(std::lcm(low.size(), high.size()), shape_.micro_batches);
  boundaries_[boundary].period = static_cast<std::uint32_t>(period);
  for (std::uint32_t m = 0; m < period; ++m) {
    for (std::uint32_t copy = 0; copy < options_.written_copies(); ++copy) {
      const std::uint32_t from = slot({boundary}, m, copy);
      const std::uint32_t to = slot({boundary + 1}, m, copy);
      boundaries_[boundary].ways.push_back({transfer(from, to, bytes), transfer(to, from, bytes)});
    }
  }
}

Wiring::Route Wiring::transfer(std::uint32_t from, std::uint32_t to, Bytes bytes) {
  const std::uint32_t index = channel(from, to);
  const Path& path = graph_.channels[index].path;
  const bool own = options_.blocking && options_.blocking_link && !path.out;
  const Link& link = own ? *options_.blocking_link : path.link;
  const TransferTime time = link.time_of(bytes);
  const Duration latency = time.latency + options_.overheads.hand_over;
  if (options_.blocking)
    return {from, to, cost_class({latency + time.flow, {}, latency, bytes, 0})};
  const std::uint32_t resource = graph_.slots() + index;
  return {resource, resource, cost_class({time.flow, latency, {}, bytes, 0})};
}

std::uint32_t Wiring::channel(std::uint32_t from, std::uint32_t to) {
  auto& channels = graph_.channels;
  const auto [found, is_new] =
      channel_index_.try_emplace({from, to}, static_cast<std::uint32_t>(channels.size()));
  if (!is_new) return found->second;
  channels.push_back({from, to, cluster_.path(graph_.devices[from], graph_.devices[to])});
  return static_cast<std::uint32_t>(channels.size() - 1);
}

std::uint32_t Wiring::own_channel(std::uint32_t slot, bool of_group, const Path& path) {
  constexpr std::uint32_t group = std::numeric_limits<std::uint32_t>::max();
  auto& channels = graph_.channels;
  const auto [found, is_new] = channel_index_.try_emplace(
      {slot, of_group ? group : slot}, static_cast<std::uint32_t>(channels.size()));
  if (is_new) channels.push_back({slot, slot, path});
  return found->second;
}

/// Neighbouring channels mostly cost the same, so only the last class is looked at.
std::uint32_t Wiring::cost_class(const Cost& cost) {
  if (graph_.costs.size() == first_transfer_class_ || !(graph_.costs.back() == cost))
    graph_.costs.push_back(cost);
  return static_cast<std::uint32_t>(graph_.costs.size() - 1);
}

}  // namespace plumbline
