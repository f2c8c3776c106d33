// The number of micro-batches and weight versions that a stage holds under a schedule: for the
// memory of plans.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "schedules/stages/recompute.h"

namespace plumbline {

/// The rules for the number of micro-batches and weight versions that one replica of a stage holds.
struct Residency {
  /// The window as in ScheduleRule::window; by default that of 1F1B.
  std::uint32_t (*window)(std::uint32_t depth, std::uint32_t m) =
      [](std::uint32_t depth, std::uint32_t) { return depth; };
  /// The micro-batches between two flushes. Absent: there is no flush.
  std::optional<std::uint32_t> micro_batches;
  /// The number of replicas must divide this number of micro-batches between two flushes or two
  /// updates. Absent: any number of replicas is allowed.
  std::optional<std::uint32_t> shared;
  /// The versions that each stage keeps. Absent: one per micro-batch in flight.
  std::optional<std::uint32_t> versions_kept;
  Recompute recompute = Recompute::none;
  /// Only as many layers of a stage recompute as its memory needs. The memory is then given.
  bool as_few_as_fit = false;
  /// Each replica of a stage holds the optimizer state of its share of the parameters (ZeRO-1).
  bool sharded_optimizer = false;

  /// Whether a stage may have this many replicas.
  bool takes(std::uint32_t replicas) const { return !shared || *shared % replicas == 0; }
  /// Micro-batches in flight on each replica, for `devices` devices from the stage to the end. For
  /// 1F1B without a flush floor((devices - 1) / replicas) + 1 (Narayanan et al. 2019, section 3.2).
  std::uint32_t in_flight(std::uint32_t devices, std::uint32_t replicas) const {
    const std::uint32_t own = micro_batches ? per_update(replicas) : 1U << 30U;
    return std::min(window((devices - 1) / replicas + 1, own), own);
  }
  std::uint32_t versions(std::uint32_t in_flight) const {
    return versions_kept.value_or(in_flight);
  }
  /// The most micro-batches of one of `replicas` replicas between two of its updates.
  std::uint32_t per_update(std::uint32_t replicas) const {
    const std::uint32_t all = micro_batches.value_or(shared.value_or(replicas));
    return std::max(1U, (all + replicas - 1) / replicas);
  }
  /// The micro-batches of all replicas together between two of their all-reduces.
  std::uint32_t per_reduction(std::uint32_t replicas) const {
    return std::max(1U, micro_batches.value_or(shared.value_or(replicas)));
  }
  /// The part of a stage's optimizer state that one of its replicas holds.
  double optimizer_share(std::uint32_t replicas) const {
    return sharded_optimizer ? 1.0 / replicas : 1.0;
  }
  /// The number of micro-batches whose activations of all layers it holds.
  std::uint32_t with_activations(std::uint32_t in_flight) const {
    return recompute == Recompute::none ? in_flight : recompute == Recompute::full ? 1 : 0;
  }
  /// The number of micro-batches whose checkpoints it holds instead.
  std::uint32_t with_checkpoints(std::uint32_t in_flight) const {
    return by_layer(recompute) ? in_flight : 0;
  }
};

/// The micro-batches between two flushes for each of `devices` devices with the whole model; 1
/// without a flush.
inline std::uint32_t share_of_micro_batches(std::optional<std::uint32_t> micro_batches,
                                            std::uint32_t devices) {
  return std::max(1U, micro_batches.value_or(1) / devices);
}

}  // namespace plumbline
