// The devices and what connects them, flat or in levels.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace plumbline {

/// What one path between two devices costs: a latency that holds nothing and a bandwidth; no
/// bandwidth = unlimited.
struct Link {
  Duration latency{};
  std::optional<BytesPerSecond> bandwidth;

  friend bool operator==(const Link&, const Link&) = default;
};

/// One level of the hierarchy: `size` groups of the level below (of devices in the innermost) make
/// one group of this level. In the innermost level every ordered pair of devices has a link of its
/// own; in the others every group of the level below has one network card, shared by its devices,
/// full duplex, or each device has one of its own, and then pairs are linked as in the innermost.
struct Level {
  std::string name;
  std::uint32_t size = 1;
  Link link;
  bool own_cards = false;  ///< Of each device; not in the innermost level, which has no cards.
};

/// A network card: it carries what leaves (or enters) one group towards a level.
struct Card {
  std::uint32_t level = 0;
  std::uint32_t group = 0;
  bool outgoing = false;

  friend auto operator<=>(const Card&, const Card&) = default;
};

/// How data gets from one device to another.
struct Path {
  Link link;
  /// The sender's card and the receiver's; nothing inside the innermost level.
  std::optional<Card> out;
  std::optional<Card> in;
};

/// Devices numbered level by level, innermost first. Invariants: at least one level, every size
/// >= 1.
struct Cluster {
  std::vector<Level> levels;
  std::optional<Bytes> memory;  ///< Per device; nothing = not checked.

  /// All devices: the product of the sizes.
  std::uint32_t device_count() const;

  /// The path between two devices: that of the outermost level that it crosses; inner levels are
  /// not charged. Requires: both devices exist and differ.
  Path path(DeviceId from, DeviceId to) const;

  /// The way from each member of a ring to the next one, from the last to the first. Where devices
  /// have network cards of their own, collectives run as many rings at a time as members of a group
  /// have cards, each over another one: a hop between groups is then as wide as the cards of the
  /// members in the smaller of the two. Requires: at least two
  /// members, no two of them equal.
  std::vector<Path> ring(const std::vector<DeviceId>& members) const;

 private:
  /// The level that a path crosses.
  std::uint32_t crossed_level(DeviceId from, DeviceId to) const;
};

/// What each of r members of a ring all-reduce of `bytes` sends to the next one, in 2 (r-1) steps:
/// 2 (r-1)/r x bytes, rounded up (Patarasuk and Yuan 2009, section 3). Requires: members >= 1.
Bytes ring_volume(Bytes bytes, std::int64_t members);

/// What each sends in a reduce-scatter or an all-gather, in r-1 steps: (r-1)/r x bytes, rounded
/// down; both together are an all-reduce. Requires: members >= 1.
Bytes share_volume(Bytes bytes, std::int64_t members);

/// A cluster with one link for each ordered pair of devices.
Cluster flat_cluster(std::uint32_t devices, Link link, std::optional<Bytes> memory = std::nullopt);

}  // namespace plumbline
