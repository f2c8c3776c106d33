// The layers of each stage, and the devices that run it.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace plumbline {

/// Consecutive layers (in a topological order) and the devices that run them, one per replica.
struct Stage {
  std::vector<LayerId> layers;
  std::vector<DeviceId> devices;

  friend bool operator==(const Stage&, const Stage&) = default;
};

/// The map from layers to stages, replicas and devices. Invariants: every layer of the model is in
/// exactly one stage; no stage is empty; edges lead from a stage to itself or to a later one. It
/// knows no op order.
struct Partition {
  std::vector<Stage> stages;

  friend bool operator==(const Partition&, const Partition&) = default;
};

/// Neighbouring stages on one device (or on the same replicas): one place in the pipeline.
struct Position {
  std::uint32_t first_stage = 0;
  std::uint32_t stages = 1;
  /// The position before it is on the same devices but runs separately. Nothing is sent between
  /// them.
  bool same_devices = false;

  std::uint32_t last_stage() const { return first_stage + stages - 1; }
};

/// Layers per stage, as equal as possible; the first (layers mod stages) stages get one more.
/// Requires: 1 <= stages <= layers.
std::vector<std::uint32_t> even_counts(std::uint32_t layers, std::uint32_t stages);

/// Layers per stage for the contiguous cut with the least maximal stage time, exact. Among equal
/// maxima it takes the least sum of squared stage times, then more layers in earlier stages.
/// O(stages x layers x log layers). Requires: 1 <= stages <= times.size(), times >= 0.
std::vector<std::uint32_t> balanced_counts(const std::vector<Duration>& times,
                                           std::uint32_t stages);

/// The same for stages whose times differ: kinds[s] is the kind of stage s, and times[kind] are the
/// times of all layers in it. Requires: 1 <= stages <= layers, times >= 0, kinds < times.size().
std::vector<std::uint32_t> balanced_counts(const std::vector<std::vector<Duration>>& times,
                                           const std::vector<std::uint32_t>& kinds);

/// The largest stages x layers for balanced_counts, which needs 16 bytes for each.
inline constexpr std::int64_t kMaxBalanced = 20'000'000;

/// Cuts `order` into stages with these numbers of layers; devices[s] run stage s. Requires: counts
/// add up to order.size(), none is 0; devices.size() == counts.size().
Partition make_partition(const std::vector<LayerId>& order,
                         const std::vector<std::uint32_t>& counts,
                         std::vector<std::vector<DeviceId>> devices);

/// The positions of a partition, in the order of the pipeline.
std::vector<Position> positions(const Partition& partition);

/// The same positions, with each stage as a position of its own.
std::vector<Position> stage_by_stage(const std::vector<Position>& positions);

/// The devices that hold a stage, ascending, each once.
std::vector<DeviceId> devices_in_use(const Partition& partition);

}  // namespace plumbline
