// Channels and costs, boundary by boundary, ring by ring.
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
               const LoweringOptions& options, OpGraph& graph)
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
  // The moments' resources stand behind the channels, whose number is known only now.
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
  // The first part makes all activations again, unless each does that for its own layers.
  add(OpKind::backward, at_once ? cost.again : Duration{},
      [&](std::size_t i) { return buckets[i].backward + (each ? buckets[i].again : Duration{}); });
  add(OpKind::backward_weight, {}, [&](std::size_t i) { return buckets[i].backward_weight; });
}

void Wiring::add_part_class(Duration time, const Cost& whole) {
  const Duration per_op = options_.overheads.per_op;  // each part is launched by itself
  Cost cost{time + per_op, {}, {}, {}, whole.slowdown};
  const Duration whole_time = whole.hold - per_op;
  if (whole.slowdown != 0 && per_op.count() > 0 && whole_time.count() > 0) {
    // As slow as the whole beside its neighbours, but for the launch, which takes its time.
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
  const Duration flow = link.bandwidth ? transfer_time(bytes, *link.bandwidth) : Duration{};
  const Duration latency = link.latency + options_.overheads.hand_over;
  if (options_.blocking) return {from, to, cost_class({latency + flow, {}, latency, bytes, 0})};
  const std::uint32_t resource = graph_.slots() + index;
  return {resource, resource, cost_class({flow, latency, {}, bytes, 0})};
}

void Wiring::add_collectives(std::uint32_t stage, const StageCost& cost) {
  std::vector<std::uint32_t> members = graph_.stage_slots[stage];
  if (graph_.members(stage) < 2 && cost.buckets.empty()) return;
  std::sort(members.begin(), members.end());  // slots ascend with the devices
  const bool own_cards = std::any_of(cluster_.levels.begin(), cluster_.levels.end(),
                                     [](const Level& level) { return level.own_cards; });
  const bool levelled = options_.hierarchical && cluster_.levels.size() > 1 && !own_cards &&
                        members.size() == cluster_.device_count();
  const auto collective = [&](ActivityKind kind, Bytes bytes, const GroupRing& in_group) {
    Collective result{kind, {}, 0};
    if (graph_.copies_represented > 1) {
      result = one_hop(kind, members.front(), bytes);
    } else if (members.size() > 1) {
      result = levelled ? hierarchical(kind, bytes) : flat(kind, members, bytes);
    }
    if (result.phases.empty() || in_group.time.count() > 0)
      add_group_hops(result, members, in_group);
    return result;
  };
  const bool sharded = options_.sharded != Sharded::nothing;
  const auto kind = sharded ? ActivityKind::reduce_scatter : ActivityKind::all_reduce;
  if (cost.buckets.empty()) reductions_[stage].push_back(collective(kind, cost.reduced, {}));
  for (const Bucket& bucket : cost.buckets) {
    reductions_[stage].push_back(collective(kind, bucket.reduced, bucket.reduced_in_group));
  }
  if (!sharded) return;
  const bool by_bucket = options_.gather_ahead || options_.sharded == Sharded::weights;
  if (graph_.members(stage) < 2 && !by_bucket) return;  // a group gathers within the update
  if (!by_bucket || cost.buckets.empty())
    return gathers_[stage].push_back(collective(ActivityKind::all_gather, cost.gathered, {}));
  for (auto bucket = cost.buckets.rbegin(); bucket != cost.buckets.rend(); ++bucket) {
    gathers_[stage].push_back(
        collective(ActivityKind::all_gather, bucket->gathered, bucket->gathered_in_group));
  }
}

namespace {

/// What each of r members sends along a ring, in how many steps.
struct RingShare {
  Bytes sent;
  std::int64_t steps = 0;
};

RingShare ring_share(ActivityKind kind, Bytes bytes, std::int64_t r) {
  const bool whole = kind == ActivityKind::all_reduce;
  return {whole ? ring_volume(bytes, r) : share_volume(bytes, r), (whole ? 2 : 1) * (r - 1)};
}

bool is_slower(const Link& a, const Link& b) {
  if (!a.bandwidth || !b.bandwidth) return a.bandwidth.has_value() && !b.bandwidth;
  return a.bandwidth->count < b.bandwidth->count;
}

/// The worst of both.
Link worse(const Link& a, const Link& b) {
  return {std::max(a.latency, b.latency), is_slower(b, a) ? b.bandwidth : a.bandwidth};
}

/// The way around the copies of a device, in their order.
std::vector<Path> ring_of_copies(DeviceId device, const Cluster& cluster, std::uint32_t copies) {
  std::vector<DeviceId> members;
  members.reserve(copies);
  for (std::uint32_t c = 0; c < copies; ++c) members.push_back({device.value * copies + c});
  return cluster.ring(members);
}

Link worst_of(const std::vector<Path>& hops) {
  Link worst;
  for (const Path& hop : hops) worst = worse(worst, hop.link);
  return worst;
}

}  // namespace

bool copies_are_alike(const PipelineShape& shape, const std::vector<DeviceId>& devices,
                      const Cluster& cluster, std::uint32_t copies) {
  if (copies == 1) return false;
  for (std::uint32_t s = 0; s < shape.stages(); ++s) {
    if (shape.stage_slots[s].size() > 1) return false;
    const DeviceId device = devices[shape.stage_slots[s].front()];
    const std::vector<Path> hops = ring_of_copies(device, cluster, copies);
    const Link worst = worst_of(hops);
    const auto is_worst = [&](const Path& hop) { return hop.link == worst; };
    const auto has_card = [](const Path& hop) { return hop.out.has_value(); };
    if (std::any_of(hops.begin(), hops.end(), has_card) ||
        std::none_of(hops.begin(), hops.end(), is_worst))
      return false;
    if (s + 1 == shape.stages() || shape.stage_slots[s] == shape.stage_slots[s + 1]) continue;
    const DeviceId next = devices[shape.stage_slots[s + 1].front()];
    const auto path = [&](std::uint32_t copy, DeviceId from, DeviceId to) {
      return cluster.path({from.value * copies + copy}, {to.value * copies + copy});
    };
    for (std::uint32_t c = 0; c < copies; ++c) {
      for (const auto& [from, to] : {std::pair(device, next), std::pair(next, device)}) {
        const Path way = path(c, from, to);
        if (way.out || !(way.link == path(0, from, to).link)) return false;
      }
    }
  }
  return true;
}

void Wiring::add_group_hops(Collective& collective, const std::vector<std::uint32_t>& members,
                            const GroupRing& sent) {
  if (collective.phases.empty()) collective.phases.emplace_back();
  const bool gathers = collective.kind == ActivityKind::all_gather;
  auto& innermost = gathers ? collective.phases.back() : collective.phases.front();
  const auto& outermost = gathers ? collective.phases.front() : collective.phases.back();
  const bool is_alone = innermost.hops.empty();
  const Bytes bytes = sent.time.count() > 0 ? sent.bytes : Bytes{};
  const Duration more = bytes.count > 0 ? options_.overheads.hand_over : Duration{};
  std::vector<Route> hops;
  for (std::size_t i = 0; i < members.size(); ++i) {
    Duration time = sent.time;
    std::uint32_t resource = 0;
    if (!is_alone && options_.group_on_network) {
      resource = outermost.hops[i].first;
    } else if (!is_alone && within_server(innermost.hops[i])) {
      resource = innermost.hops[i].first;
    } else {
      resource = graph_.slots() + own_channel(members[i], /*of_group=*/true, {});
      // Other copies, which are not written, have both on the links of a server.
      const Route* const ring = is_alone ? nullptr : &innermost.hops[i];
      if (ring && graph_.copies_represented > 1) time += beside_in_server(members[i], *ring);
    }
    hops.push_back({resource, resource, cost_class({time, more, {}, bytes, 0})});
  }
  innermost.hops.insert(innermost.hops.end(), hops.begin(), hops.end());
}

bool Wiring::within_server(const Route& hop) const {
  const Channel& channel = graph_.channels[hop.first - graph_.slots()];
  if (channel.from_slot != channel.to_slot)
    return graph_.machines[channel.from_slot] == graph_.machines[channel.to_slot];
  return hops_in_server(channel.from_slot) == graph_.copies_represented;
}

std::uint32_t Wiring::hops_in_server(std::uint32_t slot) const {
  const std::uint32_t copies = graph_.copies_represented;
  const std::uint32_t first = graph_.devices[slot].value;
  const auto machine = [&](std::uint32_t copy) {
    return (first + copy % copies) / cluster_.levels.front().size;
  };
  std::uint32_t hops = 0;
  for (std::uint32_t copy = 0; copy < copies; ++copy)
    hops += machine(copy) == machine(copy + 1) ? 1 : 0;
  return hops;
}

Duration Wiring::beside_in_server(std::uint32_t slot, const Route& hop) const {
  const auto& bandwidth = cluster_.levels.front().link.bandwidth;
  if (hops_in_server(slot) == 0 || !bandwidth) return {};
  return transfer_time(graph_.costs[hop.cost].bytes, *bandwidth);
}

Wiring::Collective Wiring::flat(ActivityKind kind, const std::vector<std::uint32_t>& members,
                                Bytes bytes) {
  const RingShare share = ring_share(kind, bytes, static_cast<std::int64_t>(members.size()));
  std::vector<DeviceId> devices;
  devices.reserve(members.size());
  for (const std::uint32_t member : members) devices.push_back(graph_.devices[member]);
  const std::vector<Path> ring = cluster_.ring(devices);
  Collective::Phase phase;
  for (std::size_t i = 0; i < members.size(); ++i) {
    phase.hops.push_back(hop(channel(members[i], members[(i + 1) % members.size()]), ring[i].link,
                             share.sent, share.steps));
  }
  return {kind, {std::move(phase)}, 0};
}

Wiring::Collective Wiring::one_hop(ActivityKind kind, std::uint32_t slot, Bytes bytes) {
  const std::uint32_t copies = graph_.copies_represented;
  const Link worst =
      worst_of(ring_of_copies({graph_.devices[slot].value / copies}, cluster_, copies));
  const std::uint32_t index =
      own_channel(slot, /*of_group=*/false, {worst, std::nullopt, std::nullopt});
  const RingShare share = ring_share(kind, bytes, copies);
  return {kind, {{{hop(index, worst, share.sent, share.steps)}, 0}}, 0};
}

Wiring::Collective Wiring::hierarchical(ActivityKind kind, Bytes bytes) {
  std::vector<std::size_t> levels;  // those with several members
  for (std::size_t level = 0; level < cluster_.levels.size(); ++level) {
    if (cluster_.levels[level].size > 1) levels.push_back(level);
  }
  Collective collective{kind, {}, 0};
  std::vector<Collective::Phase> scatters;  // outwards; gathers go the same way back
  Bytes shard = bytes;
  for (const std::size_t level : levels) {
    const std::int64_t r = cluster_.levels[level].size;
    if (kind == ActivityKind::all_reduce && level == levels.back()) {
      collective.phases.push_back(rings_of_level(level, ring_volume(shard, r), 2 * (r - 1)));
      break;
    }
    const Bytes sent = share_volume(shard, r);
    scatters.push_back(rings_of_level(level, sent, r - 1));
    shard = shard - sent;
  }
  auto& phases = collective.phases;
  if (kind != ActivityKind::all_gather)
    phases.insert(phases.begin(), scatters.begin(), scatters.end());
  if (kind != ActivityKind::reduce_scatter)
    phases.insert(phases.end(), scatters.rbegin(), scatters.rend());
  return collective;
}

Wiring::Collective::Phase Wiring::rings_of_level(std::size_t level, Bytes sent,
                                                 std::int64_t steps) {
  std::uint32_t stride = 1;  // between neighbours of a ring
  for (std::size_t inner = 0; inner < level; ++inner) stride *= cluster_.levels[inner].size;
  const std::uint32_t size = cluster_.levels[level].size;
  Collective::Phase phase;
  for (std::uint32_t device = 0; device < cluster_.device_count(); ++device) {
    const std::uint32_t place = device / stride % size;
    const std::uint32_t first = device - place * stride;
    phase.hops.push_back(hop(device, first + (place + 1) % size * stride, sent, steps));
  }
  return phase;
}

Wiring::Route Wiring::hop(std::uint32_t from, std::uint32_t to, Bytes sent, std::int64_t steps) {
  const std::uint32_t index = channel(from, to);
  return hop(index, graph_.channels[index].path.link, sent, steps);
}

Wiring::Route Wiring::hop(std::uint32_t channel, const Link& link, Bytes sent, std::int64_t steps) {
  const std::uint32_t resource = graph_.slots() + channel;
  if (sent.count == 0) return {resource, resource, cost_class({})};  // nothing to add up
  const Duration flow = link.bandwidth ? transfer_time(sent, *link.bandwidth) : Duration{};
  const Duration latency = steps * (link.latency + options_.overheads.hand_over);
  Cost cost{flow, latency, {}, sent, 0};
  cost.sends = static_cast<std::uint32_t>(steps);
  return {resource, resource, cost_class(cost)};
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
