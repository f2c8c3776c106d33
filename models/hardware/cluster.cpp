// The level that a path crosses, and the cards that carry it.
//
// SPDX-License-Identifier: MIT
#include "models/hardware/cluster.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "base/bug.h"

namespace plumbline {

namespace {

/// The time of a transfer by a table that is not empty, over a link with this bandwidth.
Duration tabled_time(const TransferTable& table, std::optional<BytesPerSecond> bandwidth,
                     Bytes bytes) {
  const auto next = std::lower_bound(table.begin(), table.end(), bytes,
                                     [](const auto& row, Bytes size) { return row.first < size; });
  if (next == table.begin()) {
    const auto& [size, time] = table.front();
    return bandwidth ? time - transfer_time(size - bytes, *bandwidth) : time;
  }
  const auto& [size, time] = *std::prev(next);
  const Bytes more = bytes - size;
  if (next == table.end()) return bandwidth ? time + transfer_time(more, *bandwidth) : time;
  const double share =
      static_cast<double>(more.count) / static_cast<double>((next->first - size).count);
  return time + Duration{std::llround(share * static_cast<double>((next->second - time).count()))};
}

}  // namespace

TransferTime Link::time_of(Bytes bytes) const {
  if (table.empty()) return {bandwidth ? transfer_time(bytes, *bandwidth) : Duration{}, latency};
  const Duration whole = std::max(tabled_time(table, bandwidth, bytes), Duration{});
  const Duration before = std::min(latency, whole);
  return {whole - before, before};
}

std::vector<double> Link::factors_of(Bytes bytes, Duration before) const {
  if (busy.empty()) return {};
  std::vector<double> factors = {1};
  for (const BusyTransfers& measured : busy) {
    const Bytes known =
        std::clamp(bytes, measured.table.front().first, measured.table.back().first);
    const auto rest = static_cast<double>((time_of(known).whole() + before).count());
    const auto time =
        static_cast<double>((tabled_time(measured.table, bandwidth, known) + before).count());
    const double factor = rest > 0 ? std::max(1.0, time / rest) : 1;
    const double last = factors.back();
    const auto from = static_cast<std::uint32_t>(factors.size() - 1);
    for (std::uint32_t working = from + 1; working <= measured.workers; ++working)
      factors.push_back(last + (factor - last) * (working - from) / (measured.workers - from));
  }
  return factors;
}

std::uint32_t Cluster::device_count() const {
  std::uint32_t count = 1;
  for (const Level& level : levels) count *= level.size;
  return count;
}

std::uint32_t Cluster::crossed_level(DeviceId from, DeviceId to) const {
  std::uint32_t group_from = from.value;
  std::uint32_t group_to = to.value;
  std::uint32_t level = 0;
  while (group_from / levels[level].size != group_to / levels[level].size) {
    group_from /= levels[level].size;
    group_to /= levels[level].size;
    ++level;
  }
  return level;
}

std::size_t Cluster::run_of(DeviceId device) const {
  std::uint32_t end = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    end += runs[i].count;
    if (device.value < end) return i;
  }
  PLUMBLINE_CHECK(false, device.value, end);
  return 0;
}

std::uint32_t Cluster::kind_of(DeviceId device) const {
  return runs.empty() ? 0 : runs[run_of(device)].kind;
}

std::optional<Bytes> Cluster::memory_of(DeviceId device) const {
  return runs.empty() ? memory : runs[run_of(device)].memory;
}

std::optional<Bytes> Cluster::least_memory() const {
  if (runs.empty()) return memory;
  std::optional<Bytes> least = runs.front().memory;
  for (const DeviceRun& run : runs) {
    if (!run.memory) return std::nullopt;
    least = std::min(least, run.memory);
  }
  return least;
}

bool Cluster::has_own_links() const {
  const bool in_runs = std::any_of(runs.begin(), runs.end(),
                                   [](const DeviceRun& run) { return run.link.has_value(); });
  return in_runs || !pair_links.empty();
}

const Link* Cluster::own_link(DeviceId from, DeviceId to) const {
  const auto holds = [](const std::vector<DeviceId>& devices, DeviceId one) {
    return std::binary_search(devices.begin(), devices.end(), one);
  };
  for (auto pair = pair_links.rbegin(); pair != pair_links.rend(); ++pair) {
    if ((holds(pair->from, from) && holds(pair->to, to)) ||
        (holds(pair->from, to) && holds(pair->to, from)))
      return &pair->link;
  }
  if (runs.empty() || run_of(from) != run_of(to)) return nullptr;
  const std::optional<Link>& link = runs[run_of(from)].link;
  return link ? &*link : nullptr;
}

Path Cluster::path(DeviceId from, DeviceId to) const {
  PLUMBLINE_CHECK(from != to && from.value < device_count() && to.value < device_count(),
                  from.value, to.value);
  if (const Link* const own = own_link(from, to)) return {*own, std::nullopt, std::nullopt, true};
  const std::uint32_t level = crossed_level(from, to);
  if (level == 0 || levels[level].own_cards)
    return {levels[level].link, std::nullopt, std::nullopt, false};
  std::uint32_t size = 1;  // devices in each group below that level
  for (std::uint32_t inner = 0; inner < level; ++inner) size *= levels[inner].size;
  return {levels[level].link, Card{level, from.value / size, true},
          Card{level, to.value / size, false}, false};
}

std::vector<Path> Cluster::ring(const std::vector<DeviceId>& members) const {
  std::vector<Path> hops;
  hops.reserve(members.size());
  for (std::size_t i = 0; i < members.size(); ++i)
    hops.push_back(path(members[i], members[(i + 1) % members.size()]));
  std::uint32_t size = 1;
  for (std::uint32_t level = 1; level < levels.size(); ++level) {
    size *= levels[level - 1].size;
    if (!levels[level].own_cards || !levels[level].link.bandwidth) continue;
    std::map<std::uint32_t, std::int64_t> in_group;
    for (const DeviceId member : members) ++in_group[member.value / size];
    for (std::size_t i = 0; i < members.size(); ++i) {
      const DeviceId from = members[i];
      const DeviceId to = members[(i + 1) % members.size()];
      if (crossed_level(from, to) != level || own_link(from, to)) continue;
      const std::int64_t cards = std::min(in_group[from.value / size], in_group[to.value / size]);
      hops[i].link.bandwidth = BytesPerSecond{cards * levels[level].link.bandwidth->count};
    }
  }
  return hops;
}

Bytes ring_volume(Bytes bytes, std::int64_t members) {
  // In two parts, so that the product stays within 64 bits.
  const std::int64_t whole = bytes.count / members;
  const std::int64_t rest = bytes.count % members;
  const std::int64_t steps = 2 * (members - 1);
  return {steps * whole + (steps * rest + members - 1) / members};
}

Bytes share_volume(Bytes bytes, std::int64_t members) {
  return {bytes.count - (bytes.count + members - 1) / members};
}

Cluster flat_cluster(std::uint32_t devices, Link link, std::optional<Bytes> memory) {
  return {{{"link", devices, link}}, memory};
}

}  // namespace plumbline
