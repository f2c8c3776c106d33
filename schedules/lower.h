// From a schedule to an op graph: adds transfers, updates, flushes and costs. From there the order
// is fixed. SPDX-License-Identifier: MIT
#pragma once

#include "models/diagnostic.h"
#include "models/profile.h"
#include "schedules/op_graph.h"
#include "schedules/schedule.h"
#include "schedules/stage_costs.h"

namespace plumbline {

/// How a schedule becomes a run.
struct LoweringOptions {
  std::uint32_t mini_batches =
      1;                   ///< Of a synchronous schedule; an asynchronous one is one long stream.
  bool blocking = false;   ///< Transfers hold the streams of both ends.
  bool recompute = false;  ///< B (or I) grows by F.
  Overheads overheads;
};

/// The graph of a run of `schedule`. A transfer stands on each data edge between two devices:
/// overlapped, right behind its producer; blocking, immediately before its consumer in a loop's
/// order, and before all ops of its wave in a replayed order. Synchronous schedules flush and
/// update after each mini-batch, asynchronous ones update after each backward. Requires: one
/// replica a stage; the partition and cluster that the schedule was made for. Errors (at `mark`): a
/// run whose times or node count would not fit into 64 and 30 bits.
Result<OpGraph> lower(const Schedule& schedule, const StageCosts& costs,
                      const std::vector<DeviceId>& devices, const Cluster& cluster,
                      const LoweringOptions& options, const Mark& mark);

}  // namespace plumbline
