// Which version of the weights each forward and backward uses: from order alone, without any time.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/op.h"

namespace plumbline {

/// The weights of one stage under stashing with an update after every backward: a forward uses the
/// newest version, its backward the same one.
struct StageVersions {
  std::uint32_t kept = 1;  ///< Versions that are held at one time, at most.
  /// Of each micro-batch: the updates that the stage had applied when its F began, and how many
  /// more by the time its gradient is applied.
  std::vector<std::uint32_t> used;
  std::vector<std::uint32_t> staleness;
};

/// Walks the ops of one replica of a stage in their order; micro-batches are numbered within it. An
/// update stands behind the backward that is `lag` later, before the next op. A backward given as I
/// and W counts at W. PipeDream (Narayanan et al. 2019, section 3.3): warm-up + 1 versions, p-1-s
/// updates stale on stage s. Requires: every F stands before its backward; micro-batches are 0 ..
/// the number of forwards - 1.
StageVersions stage_versions(const std::vector<Op>& ops, std::uint32_t lag = 0);

}  // namespace plumbline
