// The rings of a run: all-reduces and their halves, flat and level by level, and the traffic of
// groups.
//
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "sim/graph/wiring.h"

namespace plumbline {

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
    if (options_.sharing.degree > 0) {
      result = in_shard_groups(kind, members, bytes);
    } else if (graph_.copies_represented > 1) {
      result = one_hop(kind, members.front(), bytes);
    } else if (members.size() > 1) {
      result = levelled ? hierarchical(kind, bytes) : flat(kind, members, bytes);
    }
    if (result.phases.empty() || in_group.time.count() > 0)
      add_group_hops(result, members, in_group);
    return result;
  };
  const bool sharded = options_.sharing.shares();
  const auto kind = sharded ? ActivityKind::reduce_scatter : ActivityKind::all_reduce;
  if (cost.buckets.empty()) reductions_[stage].push_back(collective(kind, cost.reduced, {}));
  for (const Bucket& bucket : cost.buckets) {
    reductions_[stage].push_back(collective(kind, bucket.reduced, bucket.reduced_in_group));
  }
  if (options_.sharing.degree > 0 &&
      options_.sharing.reduction == Reduction::in_groups_each_backward) {
    for (const Collective& reduction : reductions_[stage])
      scatters_[stage].push_back({kind, {reduction.phases.front()}, 0});
  }
  if (!sharded) return;
  const bool by_bucket = options_.gather_ahead || options_.sharing.state == Sharded::weights;
  if (graph_.members(stage) < 2 && !by_bucket) return;  // a group gathers within the update
  if (!by_bucket || cost.buckets.empty())
    return gathers_[stage].push_back(collective(ActivityKind::all_gather, cost.gathered, {}));
  for (auto bucket = cost.buckets.rbegin(); bucket != cost.buckets.rend(); ++bucket) {
    gathers_[stage].push_back(
        collective(ActivityKind::all_gather, bucket->gathered, bucket->gathered_in_group));
  }
}

void Wiring::add_tie(const TiedTable& table) {
  Tie tie{table.stages, {}};
  for (std::uint32_t copy = 0; copy < graph_.written_copies; ++copy) {
    std::vector<std::uint32_t> members;
    for (const std::uint32_t stage : table.stages) {
      for (const std::uint32_t slot : graph_.stage_slots[stage]) {
        if (slot % graph_.written_copies == copy) members.push_back(slot);
      }
    }
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    tie.copies.push_back(flat(ActivityKind::all_reduce, members, table.gradients));
  }
  ties_.push_back(std::move(tie));
}

namespace {

/// The bytes that each of r members sends along a ring, and the number of steps.
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

/// The time of sending `sent` in so many steps, one after the other.
TransferTime in_steps(const Link& link, Bytes sent, std::int64_t steps) {
  if (link.table.empty()) {
    const TransferTime time = link.time_of(sent);
    return {time.flow, steps * time.latency};
  }
  const TransferTime step = link.time_of({(sent.count + steps - 1) / steps});
  return {steps * step.flow, steps * step.latency};
}

/// The one that is worse in latency and in bandwidth; if neither is, a link with the worse of both.
Link worse(const Link& a, const Link& b) {
  if (b.latency >= a.latency && !is_slower(a, b)) return b;
  if (a.latency >= b.latency && !is_slower(b, a)) return a;
  return {std::max(a.latency, b.latency), is_slower(b, a) ? b.bandwidth : a.bandwidth};
}

/// Rings of the same size over the copies of a device. Each ring goes from its first copy in steps
/// of `stride`.
struct RingsOfCopies {
  std::uint32_t size = 1;
  std::uint32_t stride = 1;

  /// The first copy of the ring that a copy is on.
  std::uint32_t first(std::uint32_t copy) const {
    return copy / (size * stride) * (size * stride) + copy % stride;
  }
  std::uint32_t next(std::uint32_t copy) const {
    const std::uint32_t place = (copy - first(copy)) / stride;
    return first(copy) + (place + 1) % size * stride;
  }
};

/// The rings of a collective over copies: one over all; or those in each group that shares, and
/// then, for gradients, those across the groups.
std::vector<RingsOfCopies> rings_of_copies(std::uint32_t copies, std::uint32_t degree) {
  if (degree == 0 || degree == copies) return {{copies, 1}};
  return {{degree, 1}, {copies / degree, degree}};
}

/// The hops from each copy of a device to the next on its ring, in the order of the copies.
std::vector<Path> hops_of_copies(DeviceId device, const Cluster& cluster, std::uint32_t copies,
                                 const RingsOfCopies& rings) {
  std::vector<Path> hops(copies);
  for (std::uint32_t first = 0; first < copies; ++first) {
    if (rings.first(first) != first) continue;
    std::vector<DeviceId> members;
    for (std::uint32_t k = 0; k < rings.size; ++k)
      members.push_back({device.value * copies + first + k * rings.stride});
    const std::vector<Path> ring = cluster.ring(members);
    for (std::uint32_t k = 0; k < rings.size; ++k) hops[first + k * rings.stride] = ring[k];
  }
  return hops;
}

Link worst_of(const std::vector<Path>& hops) {
  Link worst;
  for (const Path& hop : hops) worst = worse(worst, hop.link);
  return worst;
}

}  // namespace

bool copies_are_alike(const PipelineShape& shape, const std::vector<DeviceId>& devices,
                      const Cluster& cluster, const RunRules& rules) {
  const std::uint32_t copies = rules.copies;
  if (copies == 1) return false;
  for (std::uint32_t s = 0; s < shape.stages(); ++s) {
    if (shape.stage_slots[s].size() > 1) return false;
    const DeviceId device = devices[shape.stage_slots[s].front()];
    for (const RingsOfCopies& rings : rings_of_copies(copies, rules.sharing.degree)) {
      const std::vector<Path> hops = hops_of_copies(device, cluster, copies, rings);
      const Link worst = worst_of(hops);
      const auto is_worst = [&](const Path& hop) { return hop.link == worst; };
      const auto has_card = [](const Path& hop) { return hop.out.has_value(); };
      if (std::any_of(hops.begin(), hops.end(), has_card) ||
          std::none_of(hops.begin(), hops.end(), is_worst))
        return false;
    }
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
  if (collective.phases.empty()) collective.phases.push_back({{}, 0, collective.kind});
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
      resource = graph_.slots() + own_channel(members[i], OwnRing::group, {});
      // The copies that are not written have both rings on the links of a server.
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
    return (first + copy) / cluster_.levels.front().size;
  };
  const RingsOfCopies rings = rings_of_copies(copies, options_.sharing.degree).front();
  std::uint32_t hops = 0;
  for (std::uint32_t copy = 0; copy < copies; ++copy)
    hops += machine(copy) == machine(rings.next(copy)) ? 1 : 0;
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
  Collective::Phase phase{{}, 0, kind};
  for (std::size_t i = 0; i < members.size(); ++i) {
    phase.hops.push_back(hop(channel(members[i], members[(i + 1) % members.size()]), ring[i].link,
                             share.sent, share.steps));
  }
  return {kind, {std::move(phase)}, 0};
}

Wiring::Collective Wiring::one_hop(ActivityKind kind, std::uint32_t slot, Bytes bytes) {
  return {kind, {phase_of_copies(kind, {slot}, bytes, 0)}, 0};
}

Wiring::Collective Wiring::in_shard_groups(ActivityKind kind,
                                           const std::vector<std::uint32_t>& members, Bytes bytes) {
  const std::uint32_t degree = options_.sharing.degree;
  Collective result{kind, {phase_of_copies(kind, members, bytes, 0)}, 0};
  if (kind == ActivityKind::all_gather || degree == options_.copies) return result;
  const Bytes share{(bytes.count + degree - 1) / degree};
  result.phases.push_back(phase_of_copies(ActivityKind::all_reduce, members, share, 1));
  return result;
}

Wiring::Collective::Phase Wiring::phase_of_copies(ActivityKind kind,
                                                  const std::vector<std::uint32_t>& members,
                                                  Bytes bytes, std::size_t index) {
  const std::uint32_t copies = options_.copies;
  const RingsOfCopies rings = rings_of_copies(copies, options_.sharing.degree)[index];
  const RingShare share = ring_share(kind, bytes, rings.size);
  const DeviceId device{graph_.devices[members.front()].value / copies};
  const std::vector<Path> hops = hops_of_copies(device, cluster_, copies, rings);
  Collective::Phase phase{{}, 0, kind};
  if (graph_.copies_represented > 1) {
    const Link worst = worst_of(hops);
    const OwnRing ring = index == 0 ? OwnRing::copies : OwnRing::across;
    const std::uint32_t own =
        own_channel(members.front(), ring, {worst, std::nullopt, std::nullopt});
    phase.hops.push_back(hop(own, worst, share.sent, share.steps));
    return phase;
  }
  for (std::uint32_t copy = 0; copy < copies; ++copy) {
    const std::uint32_t way = channel(members[copy], members[rings.next(copy)]);
    phase.hops.push_back(hop(way, hops[copy].link, share.sent, share.steps));
  }
  return phase;
}

Wiring::Collective Wiring::hierarchical(ActivityKind kind, Bytes bytes) {
  std::vector<std::size_t> levels;  // levels with several members
  for (std::size_t level = 0; level < cluster_.levels.size(); ++level) {
    if (cluster_.levels[level].size > 1) levels.push_back(level);
  }
  Collective collective{kind, {}, 0};
  std::vector<Collective::Phase> scatters;  // outwards; gathers go back the same way
  Bytes shard = bytes;
  for (const std::size_t level : levels) {
    const std::int64_t r = cluster_.levels[level].size;
    if (kind == ActivityKind::all_reduce && level == levels.back()) {
      collective.phases.push_back(rings_of_level(kind, level, ring_volume(shard, r), 2 * (r - 1)));
      break;
    }
    const Bytes sent = share_volume(shard, r);
    scatters.push_back(rings_of_level(kind, level, sent, r - 1));
    shard = shard - sent;
  }
  auto& phases = collective.phases;
  if (kind != ActivityKind::all_gather)
    phases.insert(phases.begin(), scatters.begin(), scatters.end());
  if (kind != ActivityKind::reduce_scatter)
    phases.insert(phases.end(), scatters.rbegin(), scatters.rend());
  return collective;
}

Wiring::Collective::Phase Wiring::rings_of_level(ActivityKind kind, std::size_t level, Bytes sent,
                                                 std::int64_t steps) {
  std::uint32_t stride = 1;  // between neighbours of a ring
  for (std::size_t inner = 0; inner < level; ++inner) stride *= cluster_.levels[inner].size;
  const std::uint32_t size = cluster_.levels[level].size;
  Collective::Phase phase{{}, 0, kind};
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
  const TransferTime time = in_steps(link, sent, steps);
  Cost cost{time.flow, time.latency + steps * options_.overheads.hand_over, {}, sent, 0};
  cost.sends = static_cast<std::uint32_t>(steps);
  return {resource, resource, cost_class(cost)};
}

}  // namespace plumbline
