// The devices and the links between them, flat or in levels.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"

namespace plumbline {

/// The time of one transfer over a link.
struct TransferTime {
  Duration flow{};     ///< For so long it occupies the link.
  Duration latency{};  ///< So much later it arrives.

  Duration whole() const { return flow + latency; }
};

/// Measured times of transfers by ascending size.
using TransferTable = std::vector<std::pair<Bytes, Duration>>;

/// The times of transfers while `workers` devices compute that are no end of their link.
struct BusyTransfers {
  std::uint32_t workers = 1;
  TransferTable table;

  friend bool operator==(const BusyTransfers&, const BusyTransfers&) = default;
};

/// The cost of one path between two devices: a latency, which occupies nothing, and a bandwidth. No
/// bandwidth = unlimited.
struct Link {
  Duration latency{};
  std::optional<BytesPerSecond> bandwidth;
  /// Measured times of whole transfers, by ascending size. Between its smallest and its largest
  /// size the table counts and the line does not.
  TransferTable table{};
  /// The same while others compute, by ascending number of them; empty: they make no difference.
  std::vector<BusyTransfers> busy{};

  /// The time of a transfer: latency + bytes / bandwidth. With a table, the time on the straight
  /// line between the two measured sizes next to `bytes`. Beyond the table, the time of the size at
  /// its end, and bytes / bandwidth for the difference. What is longer than the latency is flow.
  TransferTime time_of(Bytes bytes) const;
  /// The factors of that time, with `before` added to it, while 0, 1, ... other devices compute;
  /// the last one is for all more. The tables of `busy` are looked up in the same way; beyond their
  /// sizes, the factor is that of the size at their end. Between their numbers of workers the time
  /// grows evenly. Empty without such tables. `before` belongs to every transfer, and is in no
  /// table. Requires: no table of `busy` is empty.
  std::vector<double> factors_of(Bytes bytes, Duration before) const;

  friend bool operator==(const Link&, const Link&) = default;
};

/// One level of the hierarchy: `size` groups of the level below make one group of this level. In
/// the innermost level the members are devices, and every ordered pair of them has its own link. In
/// an outer level every group of the level below has one network card. Its devices share the card,
/// which is full duplex. With `own_cards` each device has its own card, and pairs are linked as in
/// the innermost level.
struct Level {
  std::string name;
  std::uint32_t size = 1;
  Link link;
  bool own_cards = false;  ///< One card per device; not in the innermost level, which has no cards.
};

/// A network card: it carries the data that leaves (or enters) one group towards a level.
struct Card {
  std::uint32_t level = 0;
  std::uint32_t group = 0;
  bool outgoing = false;

  friend auto operator<=>(const Card&, const Card&) = default;
};

/// The way of data from one device to another.
struct Path {
  Link link;
  /// The cards of the sender and the receiver; nothing inside the innermost level.
  std::optional<Card> out;
  std::optional<Card> in;
  bool own = false;  ///< The link is the pair's own, or that of its run, and no level's.
};

/// Consecutive devices that are alike, in a cluster whose devices are not all alike.
struct DeviceRun {
  std::string name;  ///< Of its kind: "h100-sxm", "half as fast".
  std::uint32_t count = 1;
  std::uint32_t kind = 0;       ///< The first run of the same kind; they differ in links alone.
  std::optional<Bytes> memory;  ///< Per device, without the reserve; nothing = not checked.
  std::optional<Link> link;     ///< Between two of them; nothing = that of the levels.
};

/// A link of its own for some pairs of devices, both ways.
struct PairLink {
  std::vector<DeviceId> from;  ///< Ascending.
  std::vector<DeviceId> to;    ///< Ascending. The same as `from`: all pairs among them.
  Link link;
};

/// How many times longer an op takes while its device sends or receives. The kernels of collectives
/// run on the same multiprocessors. 1: no longer.
struct OverlapSlowdown {
  double collectives = 1;
  double transfers = 1;  ///< Between stages.

  bool any() const { return collectives != 1 || transfers != 1; }

  friend bool operator==(const OverlapSlowdown&, const OverlapSlowdown&) = default;
};

/// Devices, numbered level by level, innermost first. Invariants: at least one level, every size >=
/// 1.
struct Cluster {
  std::vector<Level> levels;
  std::optional<Bytes> memory;       ///< Per device, without the reserve; nothing = not checked.
  Bytes reserve{};                   ///< Of each device's memory, for what is not counted.
  std::vector<DeviceRun> runs = {};  ///< All devices in their order; empty = all are alike.
  std::vector<PairLink> pair_links = {};  ///< The last one that has a pair counts.
  OverlapSlowdown overlap_slowdown{};

  /// The number of all devices: the product of the sizes.
  std::uint32_t device_count() const;

  /// The run of a device. Requires: devices are not all alike.
  std::size_t run_of(DeviceId device) const;
  /// The kind of a device, which is the number of a run; 0 where all devices are alike.
  std::uint32_t kind_of(DeviceId device) const;
  /// The memory of a device, without the reserve; nothing = not checked.
  std::optional<Bytes> memory_of(DeviceId device) const;
  /// The least memory of all devices; nothing = some device's is not checked.
  std::optional<Bytes> least_memory() const;
  /// Whether some pairs of devices have links of their own, that no level has.
  bool has_own_links() const;

  /// The path between two devices: the pair's own link, or the link of the outermost level that it
  /// crosses. Inner levels cost nothing. Requires: both devices exist and differ.
  Path path(DeviceId from, DeviceId to) const;

  /// The path from each member of a ring to the next one, and from the last to the first. Where
  /// devices have their own network cards, a collective runs several rings at a time, each over
  /// another card. A hop between two groups is then as wide as the cards of the members in the
  /// smaller group. Requires: at least two members, no two of them equal.
  std::vector<Path> ring(const std::vector<DeviceId>& members) const;

 private:
  /// The level that a path crosses.
  std::uint32_t crossed_level(DeviceId from, DeviceId to) const;
  /// The link that a pair has of its own: in pair_links, or in the run of both; else null.
  const Link* own_link(DeviceId from, DeviceId to) const;
};

/// The bytes that each member of a ring all-reduce of `bytes` sends to the next one, in 2 (r-1)
/// steps for r members: 2 (r-1)/r x bytes, rounded up (Patarasuk and Yuan 2009, section 3).
/// Requires: members >= 1.
Bytes ring_volume(Bytes bytes, std::int64_t members);

/// The bytes that each member sends in a reduce-scatter or an all-gather, in r-1 steps: (r-1)/r x
/// bytes, rounded down. Both together are an all-reduce. Requires: members >= 1.
Bytes share_volume(Bytes bytes, std::int64_t members);

/// A cluster with one link for each ordered pair of devices.
Cluster flat_cluster(std::uint32_t devices, Link link, std::optional<Bytes> memory = std::nullopt);

}  // namespace plumbline
