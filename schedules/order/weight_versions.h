// The version of the weights that each forward and backward uses: from order alone, without times.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/order/schedule.h"

namespace plumbline {

/// The treatment of old weights in an asynchronous schedule.
enum class WeightRule : std::uint8_t {
  stash,          ///< A backward uses the version of its forward (Narayanan et al. 2019, 3.3).
  vertical_sync,  ///< All stages use the version that stage 0 had when the micro-batch entered.
  none,           ///< Forward and backward use the newest version.
  two,            ///< Gradients of a mini-batch are accumulated, and two versions kept (2BW).
};

/// The times of updates in an asynchronous schedule.
struct UpdateRule {
  WeightRule weights = WeightRule::stash;
  /// `two`: the micro-batches of one update. Else every round of r micro-batches is one update.
  std::uint32_t accumulated = 1;
  std::uint32_t lag = 1;  ///< For stages with several replicas; see round_of_update.

  /// The micro-batches that one update of a stage with r replicas covers.
  std::uint32_t round_length(std::uint32_t r) const {
    return weights == WeightRule::two ? accumulated : r;
  }
};

/// The round whose update is due before the replica's next op, after its own backward number
/// `backward` (from 0); nothing where none is due. With one replica (or lag 0), an update is due at
/// the end of its round. With several replicas it is due `lag` rounds later, after the first
/// backward of that round.
std::optional<std::uint32_t> round_of_update(const UpdateRule& rule, std::uint32_t replicas,
                                             std::uint32_t backward);

/// The versions that one micro-batch uses on one stage. Version v has had v updates. The gradient
/// is applied to version `applied_to`, which makes the next version.
struct VersionUse {
  std::uint32_t forward = 0;
  std::uint32_t backward = 0;
  std::uint32_t applied_to = 0;

  /// The number of updates by which the gradient is late.
  std::uint32_t staleness() const { return applied_to - forward; }
  friend bool operator==(const VersionUse&, const VersionUse&) = default;
};

/// The weights of one stage.
struct StageVersions {
  std::uint32_t kept = 1;        ///< The most versions that one replica holds at one time.
  std::vector<VersionUse> uses;  ///< One per micro-batch.
  /// The first micro-batch that needs a version which is not there yet (`two` with too few
  /// micro-batches for the depth of the pipeline); nothing = none.
  std::optional<std::uint32_t> missing;
};

/// Walks the ops of each replica of each stage in their order. A backward given as I and W uses its
/// weights at I, and its gradient counts at W. A synchronous schedule keeps one version and is
/// never stale.
///  - stash: PipeDream keeps warm-up + 1 versions; without replicas the gradients of stage s of p
///    are p-1-s updates late.
///  - vertical_sync: p versions everywhere, p-1 updates late. With replicas a stage uses its newest
///    version that holds no more micro-batches than the one that stage 0 used.
///  - two: mini-batch t runs on version max(t-1, 0) (Narayanan et al. 2021, PipeDream-2BW, 3.1).
std::vector<StageVersions> weight_versions(const Schedule& schedule, const UpdateRule& rule);

}  // namespace plumbline
