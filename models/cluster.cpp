// Which level a path crosses, and whose cards carry it.
// SPDX-License-Identifier: MIT
#include "models/cluster.h"

#include "models/bug.h"

namespace plumbline {

std::uint32_t Cluster::device_count() const {
  std::uint32_t count = 1;
  for (const Level& level : levels) count *= level.size;
  return count;
}

Path Cluster::path(DeviceId from, DeviceId to) const {
  PLUMBLINE_CHECK(from != to && from.value < device_count() && to.value < device_count(),
                  from.value, to.value);
  // Walk outwards until both devices are in one group; `group` is then the one below that level.
  std::uint32_t group_from = from.value;
  std::uint32_t group_to = to.value;
  std::uint32_t level = 0;
  while (group_from / levels[level].size != group_to / levels[level].size) {
    group_from /= levels[level].size;
    group_to /= levels[level].size;
    ++level;
  }
  if (level == 0 || levels[level].own_cards)
    return {levels[level].link, std::nullopt, std::nullopt};
  return {levels[level].link, Card{level, group_from, true}, Card{level, group_to, false}};
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
