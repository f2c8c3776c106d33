// By which rules a schedule becomes a run, besides its costs and its cluster.
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

/// How a schedule becomes a run.
struct RunRules {
  std::uint32_t mini_batches =
      1;                  ///< Of a synchronous schedule; an asynchronous one is one long stream.
  bool blocking = false;  ///< Transfers hold the streams of both ends.
  /// That those take within the innermost level; nothing: the cluster's. Collectives, which hold no
  /// stream, take the cluster's in any case.
  std::optional<Link> blocking_link{};
  Recompute recompute = Recompute::none;  ///< Unless none, B (or I) grows by F.
  std::uint32_t copies = 1;      ///< Of the whole pipeline, with their gradients all-reduced.
  bool first_copy_only = false;  ///< Only the first of them is written: see copies_are_alike().
  /// All-reduces over all devices of a levelled cluster whose groups share network cards go level
  /// by level instead of along one ring.
  bool hierarchical = false;
  /// What replicas and copies of a stage share, of a synchronous schedule; gradients and weights of
  /// stages whose costs have buckets, without replicas, and weights where no backward is split.
  Sharded sharded = Sharded::nothing;
  /// The weights are gathered as the next mini-batch begins, beside its forwards, each of which
  /// waits for its own: those of a stage whose costs have buckets bucket by bucket.
  bool gather_ahead = false;
  /// Whether the group that each device stands for sends over the same links as its copies do.
  bool group_on_network = false;
  UpdateRule updates;                          ///< Of an asynchronous schedule.
  std::vector<std::uint32_t> weight_versions;  ///< That each stage keeps; empty = one.
  /// What each slice of a micro-batch takes, numbers whose mean is 1; empty = all the same.
  std::vector<double> slice_work{};
  Overheads overheads;

  std::uint32_t written_copies() const { return first_copy_only ? 1 : copies; }
};

}  // namespace plumbline
