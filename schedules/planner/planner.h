// Chooses a partition: PipeDream's planner as published, and a calibrated one.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "models/hardware/cluster.h"
#include "models/profile/profile.h"
#include "schedules/planner/residency.h"
#include "schedules/stages/partition.h"

namespace plumbline {

/// The formula by which plans are compared.
enum class CostModel {
  /// The recurrence of PipeDream's own program (Narayanan et al. 2019), with its simplifications:
  /// all-reduces added to compute at 4 (m - 1) / m of the parameters, transfers at twice the output
  /// over the receiver's replicas, one link a lower-level group; no memory, no latency.
  published,
  /// The best that a pipeline can do on the cluster, in its steady state or from flush to flush:
  /// see plan_formula.h.
  calibrated,
};

/// The input of the planner: the model, the cluster and the options.
struct PlannerInput {
  const LayerGraph& graph;
  const std::vector<LayerCosts>& costs;  ///< For one micro-batch, one entry per layer.
  const Cluster& cluster;                ///< `memory` counts for the calibrated cost model only.
  CostModel cost_model = CostModel::calibrated;
  std::optional<std::uint32_t> devices_at_most{};  ///< Absent = all of the cluster.
  std::optional<std::uint32_t> stages_at_most{};   ///< Absent = as many as are useful.
  double optimizer_state = 0;                      ///< Bytes for each byte of parameters.
  double gradient_width = 1;                       ///< Bytes for each byte of parameters.
  Residency residency{};                           ///< Default: an asynchronous 1F1B pipeline.
  Overheads overheads{};                           ///< `per_op` lengthens F, B and U (calibrated).
  bool straight = false;                           ///< One replica per stage.
  bool activation_transfers = true;                ///< Whether links between stages cost time.
  std::uint32_t candidates = 8;                    ///< The most plans to return; at least 1.
  /// Called from time to time with the finished share of the current pass, in [0, 1]. A return of
  /// false = give up.
  std::function<bool(double)> progress{};

  /// The most bytes of temporary tensors that the backward of one layer needs. They exist one layer
  /// at a time.
  Bytes temporary() const;
  /// The memory of a device for what the formula adds up over layers, at least 1 B; nothing = not
  /// checked. The rest is room for temporary(), whatever stage that layer is in.
  std::optional<Bytes> memory() const;
};

/// The kind of bottleneck of a pipeline.
enum class BottleneckKind {
  compute,     ///< The compute of a stage.
  all_reduce,  ///< All-reduce of a stage's replicas.
  link,        ///< The link between a stage and the next.
  // Between two flushes also:
  update,      ///< The update of a stage.
  round_trip,  ///< The round trip of a stage's micro-batches, with no more allowed in flight.
  flush,       ///< Filling the pipeline and emptying it, in front of a stage.
};

/// The consecutive parts of an iteration with a flush by the formula, in seconds. Their sum is the
/// iteration, unless a link is busy for longer.
struct FlushShares {
  double work_s = 0;  ///< For the stage that has most: its forwards and backwards, its round trips,
                      ///< or the traffic of its link.
  double flush_s = 0;       ///< Filling and emptying in front of it.
  double all_reduce_s = 0;  ///< All-reduces at the end.
  double update_s = 0;
  BottleneckKind work_kind = BottleneckKind::compute;  ///< Compute, round trips, or a link.
};

/// The resource that is busy for the whole period by the formula. Between two flushes several
/// follow each other: then the one with the largest part.
struct Bottleneck {
  BottleneckKind kind = BottleneckKind::compute;
  std::uint32_t stage = 0;  ///< For a link, the stage in front of it.
  /// Set for a shared network card. Kind and stage then name its largest traffic.
  std::optional<Card> card;
};

/// "compute of stage 2", "all-reduce of stage 0", "link 1 (network card of cluster group 3)".
std::string to_text(const Bottleneck& bottleneck);

/// One stage of a plan.
struct PlannedStage {
  std::vector<LayerId> layers;  ///< Consecutive in the plan's order.
  std::uint32_t replicas = 1;
  Duration compute{};          ///< F + B of one micro-batch on one replica, and its part of a U.
  Duration synchronization{};  ///< One all-reduce of its replicas, once every `replicas`
                               ///< micro-batches, or once between two flushes.
  std::uint32_t warm_up = 0;   ///< Micro-batches in flight, minus one.
  std::uint32_t weight_versions = 1;
  Bytes peak_memory;  ///< Per replica; an upper bound, see plan_formula.h.
};

/// A plan with the results of the formula.
struct PlanCandidate {
  std::vector<LayerId> order;  ///< All layers in a topological order; stages are runs of it.
  std::vector<PlannedStage> stages;
  std::vector<std::vector<DeviceId>> devices;  ///< Per stage, replica by replica.
  double period_s = 0;                         ///< Time per micro-batch by the formula.
  Bottleneck bottleneck;
  std::optional<FlushShares> flush;  ///< Parts of the iteration; nothing without a flush, or if a
                                     ///< link takes longer than the chain.
  Bytes traffic;                     ///< Between devices, all directions, for one micro-batch.
  bool deeper_warm_up = false;       ///< The cut of another candidate, with more in flight.

  std::uint32_t devices_used() const;
  /// "15-1": the replicas of each stage.
  std::string config() const;
  Partition partition() const;
};

/// Data parallelism over all devices that may be used, for comparison.
struct DataParallelPlan {
  std::uint32_t devices = 1;
  /// The time per micro-batch. Calibrated: (F + max(B, all-reduce) + U) / devices, as every step
  /// waits for its all-reduce. Sharded: (F + max(B, half of the all-reduce) + U / devices + half of
  /// an all-reduce of the weights) / devices. Between two flushes each device takes its share of
  /// the micro-batches, at least one. Each one more adds F + B, and the step is divided among all
  /// of them. Published: as the original prints it, level by level.
  double period_s = 0;
  Bytes peak_memory;  ///< Per device: weights, gradients, optimizer state, activations.
  bool fits = true;
};

/// The best plans, best first, and the comparisons for them.
struct Plans {
  /// At least one plan. The first is the optimum of the cost model. Then come the best plans with
  /// other replica lists. Each is followed by the same plan with deeper warm-ups if they fit.
  std::vector<PlanCandidate> best;
  bool restricted = false;  ///< Not all cuts were searched: see kMaxFrontiers.
  /// The search saw two levels of links. With more levels, it saw the slowest of the outer ones.
  bool sees_two_levels = false;
  /// The search found no plan: `best` is empty, for the caller to fill.
  bool by_hand = false;
  std::uint32_t frontiers = 0;
  /// Above 0, not all plans were kept: at each cut, plans that are longer than others by at most
  /// this share were dropped.
  double slack = 0;
  double one_device_s = 0;  ///< F + B of the whole model, and its part of a U.
  Bytes one_device_memory;
  bool one_device_fits = true;
  DataParallelPlan data_parallel;
  std::optional<PlanCandidate> straight;  ///< Nothing if none fits.
};

/// The plans with the least time per micro-batch. Ties go to fewer devices, then fewer stages, then
/// less traffic, then the earlier cut. Every stage of a plan computes something, unless the whole
/// model takes no time. Deterministic.
/// Requires: a graph without a cycle and with at least one layer; one cost per layer; at least one
/// device.
/// Errors (Fault::infeasible, without a mark): no plan fits the memory (names the tightest stage
/// and its lack of memory); there are too many plans; `progress` gave up.
Result<Plans> plan(const PlannerInput& input);

}  // namespace plumbline
