// What a stage holds at one time under a schedule, by counting: for the memory of plans.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "schedules/stages/recompute.h"

namespace plumbline {

/// How many micro-batches and versions of its weights one replica of a stage holds.
struct Residency {
  /// See ScheduleRule::window; that of 1F1B where none is given.
  std::uint32_t (*window)(std::uint32_t depth, std::uint32_t m) =
      [](std::uint32_t depth, std::uint32_t) { return depth; };
  /// Between two flushes. Absent: there is no flush.
  std::optional<std::uint32_t> micro_batches;
  /// Replicas divide so many micro-batches: those between two flushes or two updates. Absent: any
  /// number of replicas will do.
  std::optional<std::uint32_t> shared;
  /// Versions that each stage keeps; absent: one for each micro-batch in flight.
  std::optional<std::uint32_t> versions_kept;
  Recompute recompute = Recompute::none;
  /// Only as many layers of a stage make activations again as its memory, which is given, needs.
  bool as_few_as_fit = false;
  /// Each replica of a stage holds the optimizer state of its share of the parameters (ZeRO-1).
  bool sharded_optimizer = false;

  /// Whether a stage may have so many replicas.
  bool takes(std::uint32_t replicas) const { return !shared || *shared % replicas == 0; }
  /// Micro-batches in flight on each replica, with so many devices from the stage to the end: for
  /// 1F1B without a flush floor((devices - 1) / replicas) + 1 (Narayanan et al. 2019, section 3.2).
  std::uint32_t in_flight(std::uint32_t devices, std::uint32_t replicas) const {
    const std::uint32_t own = micro_batches ? per_update(replicas) : 1U << 30U;
    return std::min(window((devices - 1) / replicas + 1, own), own);
  }
  std::uint32_t versions(std::uint32_t in_flight) const {
    return versions_kept.value_or(in_flight);
  }
  /// The micro-batches of one of so many replicas between two of its updates, at most.
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
  /// Micro-batches of which it holds the activations of all layers.
  std::uint32_t with_activations(std::uint32_t in_flight) const {
    return recompute == Recompute::none ? in_flight : recompute == Recompute::full ? 1 : 0;
  }
  /// Micro-batches of which it holds what checkpoints keep instead.
  std::uint32_t with_checkpoints(std::uint32_t in_flight) const {
    return by_layer(recompute) ? in_flight : 0;
  }
};

/// The micro-batches between two flushes that each of `devices` with the whole model takes; 1
/// without a flush.
inline std::uint32_t share_of_micro_batches(std::optional<std::uint32_t> micro_batches,
                                            std::uint32_t devices) {
  return std::max(1U, micro_batches.value_or(1) / devices);
}

}  // namespace plumbline
