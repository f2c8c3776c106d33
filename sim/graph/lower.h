// From a schedule to an op graph: adds transfers, updates, flushes and costs. From there the order
// is fixed.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "base/diagnostic.h"
#include "schedules/order/schedule.h"
#include "schedules/stages/stage_costs.h"
#include "sim/graph/op_graph.h"
#include "sim/graph/run_rules.h"

namespace plumbline {

/// Whether every copy does the same at the same time, so that the first one alone tells what all
/// do: no stage has replicas, no network card carries anything, the links of each boundary are the
/// same in all copies, and in each ring one hop is the slowest in latency and bandwidth alike. A
/// run that is written for the first alone has for each of its collectives one hop, that one; bytes
/// and numbers of collectives are then those of one copy.
bool copies_are_alike(const PipelineShape& shape, const std::vector<DeviceId>& devices,
                      const Cluster& cluster, std::uint32_t copies);

/// The graph of a run of `schedule` on `copies` copies of its devices; device d of copy c is
/// cluster device d x copies + c.
///  - A transfer stands on each data edge between two devices: overlapped, right behind its
///    producer; blocking, immediately before its consumer in a loop's order, and before all ops of
///    its wave in a replayed order.
///  - Synchronous schedules flush and update after each mini-batch. The gradients of a stage with
///    several devices (replicas and copies) are all-reduced along a ring after its last backward,
///    before the updates. With a sharded optimizer they are reduce-scattered there; an update takes
///    1/r of its time on each of r devices, and the weights are all-gathered behind those of a
///    stage; ahead, before the stage's first forward on each device, also of the first mini-batch,
///    as if one had gone before.
///  - Of a stage with buckets the last backward on each device (or W, where it makes gradients) is
///    cut into as many parts, each of which lets its bucket's collective begin; with weights that
///    are gathered ahead so is the first forward. With sharded gradients that is every
///    backward, with sharded weights every op: a bucket's weights are gathered from the begin of
///    the part before it on, and the gradients of no more than two buckets are whole at a time.
///  - Asynchronous ones update after each round of micro-batches (see UpdateRule); a stage with
///    several replicas all-reduces each round while later ops run, and each replica updates when
///    round_of_update says so, before its next op.
/// Requires: the partition and cluster that the schedule was made for; one copy and no sharded
/// optimizer of an asynchronous schedule. Errors (at `mark`): a run whose times or node count would
/// not fit into 64 and 30 bits; updates that wait for each other (infeasible).
Result<OpGraph> lower(const Schedule& schedule, const StageCosts& costs,
                      const std::vector<DeviceId>& devices, const Cluster& cluster,
                      const RunRules& options, const Mark& mark);

}  // namespace plumbline
