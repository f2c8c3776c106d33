// The rules by which a schedule becomes a run, besides its costs and its cluster.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/hardware/cluster.h"
#include "models/profile/profile.h"
#include "schedules/order/weight_versions.h"
#include "schedules/stages/recompute.h"
#include "schedules/stages/sharding.h"

namespace plumbline {

/// The rules by which a schedule becomes a run.
struct RunRules {
  /// For synchronous schedules; an asynchronous one is one long stream.
  std::uint32_t mini_batches = 1;
  /// For synchronous schedules: all devices wait for each other before they update. If false, there
  /// is one mini-batch, and a stage updates when its own gradients are there.
  bool flushes = true;
  bool blocking = false;  ///< Transfers hold the streams of both ends.
  /// The link of blocking transfers within the innermost level; nothing: the cluster's link.
  /// Collectives hold no stream and always use the cluster's link.
  std::optional<Link> blocking_link{};
  Recompute recompute = Recompute::none;  ///< Unless `none`, B (or I) grows by the recomputed F.
  /// The recomputed F of each B runs right before that B, without waiting for the gradient.
  /// Requires Recompute::full, a synchronous schedule without I, W and pairs, transfers that do not
  /// block.
  bool recompute_early = false;
  std::uint32_t copies = 1;      ///< Copies of the whole pipeline; their gradients are all-reduced.
  bool first_copy_only = false;  ///< Only the first copy is written: see copies_are_alike().
  /// All-reduces over all devices of a levelled cluster whose groups share network cards go level
  /// by level instead of along one ring.
  bool hierarchical = false;
  /// The state that replicas and copies of a stage share, for synchronous schedules. Shared
  /// gradients and weights require stages with buckets and without replicas; weights that are
  /// gathered more than once also require that no backward is split. A degree must divide the
  /// copies, and requires stages without replicas.
  Sharing sharing{};
  /// Weights are gathered when the next mini-batch begins, beside its forwards. Each forward waits
  /// for its own weights. A stage with buckets gathers bucket by bucket.
  bool gather_ahead = false;
  /// Whether the group that each device stands for sends over the same links as its copies do.
  bool group_on_network = false;
  UpdateRule updates;                          ///< For asynchronous schedules only.
  std::vector<std::uint32_t> weight_versions;  ///< Versions that each stage keeps; empty = one.
  /// Relative time of each slice of a micro-batch, with mean 1; empty = all the same.
  std::vector<double> slice_work{};
  Overheads overheads;

  std::uint32_t written_copies() const { return first_copy_only ? 1 : copies; }
};

}  // namespace plumbline
