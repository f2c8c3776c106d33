// Which version of the weights each forward and backward uses: from order alone, without any time.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/order/schedule.h"

namespace plumbline {

/// What an asynchronous schedule does with old weights.
enum class WeightRule : std::uint8_t {
  stash,          ///< A backward uses the version of its forward (Narayanan et al. 2019, 3.3).
  vertical_sync,  ///< All stages use the version that stage 0 had when the micro-batch entered.
  none,           ///< Forward and backward use the newest one, whatever it is.
  two,            ///< Gradients of a mini-batch are accumulated, and two versions kept (2BW).
};

/// When the updates of an asynchronous schedule come.
struct UpdateRule {
  WeightRule weights = WeightRule::stash;
  /// `two`: the micro-batches of one update. Else every round of r micro-batches is one.
  std::uint32_t accumulated = 1;
  std::uint32_t lag = 1;  ///< Of stages with several replicas: see round_of_update.

  /// The micro-batches that one update of a stage with r replicas covers.
  std::uint32_t round_length(std::uint32_t r) const {
    return weights == WeightRule::two ? accumulated : r;
  }
};

/// The micro-batches between two updates of a replica, and when its own backward number `backward`
/// (from 0) makes an update due before the replica's next op: with one replica at the end of each
/// round; with several `lag` rounds after that, behind the first backward of that round.
/// Answers the round, or nothing.
std::optional<std::uint32_t> round_of_update(const UpdateRule& rule, std::uint32_t replicas,
                                             std::uint32_t backward);

/// The versions that one micro-batch meets on one stage. Version v has seen v updates; the gradient
/// is applied to version `applied_to`, which makes the next one.
struct VersionUse {
  std::uint32_t forward = 0;
  std::uint32_t backward = 0;
  std::uint32_t applied_to = 0;

  /// How many updates the gradient is late.
  std::uint32_t staleness() const { return applied_to - forward; }
  friend bool operator==(const VersionUse&, const VersionUse&) = default;
};

/// The weights of one stage.
struct StageVersions {
  std::uint32_t kept = 1;        ///< Versions that one replica holds at one time, at most.
  std::vector<VersionUse> uses;  ///< Of each micro-batch.
  /// Of the first micro-batch whose version is not there yet when it needs it (`two` with too few
  /// micro-batches for the depth of the pipeline); nothing = all are.
  std::optional<std::uint32_t> missing;
};

/// Walks the ops of each replica of each stage in their order; a backward given as I and W uses its
/// weights at I and counts at W. One version without a flush to wait for: a synchronous schedule
/// keeps one and is never stale.
///  - stash: PipeDream keeps warm-up + 1 versions; without replicas the gradients of stage s of p
///    are p-1-s updates late.
///  - vertical_sync: p versions everywhere, p-1 updates late. With replicas a stage uses its newest
///    version that holds no more micro-batches than the one that stage 0 used.
///  - two: mini-batch t runs on version max(t-1, 0) (Narayanan et al. 2021, PipeDream-2BW, 3.1).
std::vector<StageVersions> weight_versions(const Schedule& schedule, const UpdateRule& rule);

}  // namespace plumbline
