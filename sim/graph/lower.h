// From a schedule to an op graph: adds transfers, updates, flushes and costs. From there the order
// is fixed.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "base/diagnostic.h"
#include "schedules/order/schedule.h"
#include "schedules/stages/stage_costs.h"
#include "sim/graph/op_graph.h"
#include "sim/graph/run_rules.h"

namespace plumbline {

/// Whether every copy does the same at the same time, so that the first copy can stand for all. The
/// conditions: no stage has replicas; no network card carries anything; the links of each boundary
/// are the same in all copies; in each ring one hop is the slowest in latency and in bandwidth. A
/// run of the first copy alone has one hop for each of its collectives: the slowest one. Its bytes
/// and numbers of collectives are those of one copy.
bool copies_are_alike(const PipelineShape& shape, const std::vector<DeviceId>& devices,
                      const Cluster& cluster, const RunRules& rules);

/// The graph of a run of `schedule` on `copies` copies of its devices; device d of copy c is
/// cluster device d x copies + c.
///  - A transfer stands on each data edge between two devices. An overlapped one stands right
///    behind its producer. A blocking one stands immediately before its consumer in a loop's order,
///    and before all ops of its wave in a replayed order.
///  - Synchronous schedules flush and update after each mini-batch. The gradients of a stage with
///    several devices (replicas and copies) are all-reduced along a ring after its last backward,
///    before the updates. With a sharded optimizer they are reduce-scattered there, an update takes
///    1/r of its time on each of r devices, and the weights are all-gathered behind the stage's
///    updates. With gather_ahead they are gathered before the stage's first forward on each device.
///    The first mini-batch gathers too, as if another had gone before. Without a flush each device
///    updates when its own ops and the all-reduces of its stages are over.
///  - A stage with buckets has its last backward on each device (or its last W, if W makes the
///    gradients) cut into one part per bucket. The end of each part lets its bucket's collective
///    begin. With weights gathered ahead, the first forward is cut too. With gradients that each
///    backward reduces every backward is cut, with weights that passes gather every op. The gather
///    of a bucket's weights begins `prefetch` parts ahead, but not before the same weights are
///    freed. The gradients of at most two buckets are whole at a time, unless they are reduced
///    once.
///  - In groups of copies (Sharing::degree) reduce-scatters and gathers are those of each group.
///    Then an all-reduce goes across the groups. All groups of a stage begin together.
///  - Asynchronous schedules update after each round of micro-batches (see UpdateRule). A stage
///    with several replicas all-reduces each round while later ops run. Each replica updates when
///    round_of_update says so, before its next op.
/// Requires: the partition and cluster that the schedule was made for; for an asynchronous
/// schedule, one copy and no sharded optimizer; without a flush, one mini-batch and no weights that
/// are gathered ahead. Errors (at `mark`): times that do not fit into 64 bits, or a node count that
/// does not fit into 30 bits; updates that wait for each other (infeasible).
Result<OpGraph> lower(const Schedule& schedule, const StageCosts& costs,
                      const std::vector<DeviceId>& devices, const Cluster& cluster,
                      const RunRules& options, const Mark& mark);

/// Errors (at `mark`): a run that might not fit into 64 bits of nanoseconds, or of bytes. It cannot
/// last longer than all its activities one after the other.
std::optional<Diagnostic> check_overflow(const OpGraph& graph, const Mark& mark);

}  // namespace plumbline
