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

/// By which formula plans are compared.
enum class CostModel {
  /// The recurrence of PipeDream's own program (Narayanan et al. 2019), with its simplifications:
  /// all-reduces added to compute at 4 (m - 1) / m of the parameters, transfers at twice the output
  /// over the receiver's replicas, one link a lower-level group; no memory, no latency.
  published,
  /// What a pipeline can at best do on the cluster, in its steady state or from flush to flush: see
  /// plan_formula.h.
  calibrated,
};

/// What is planned, and on what.
struct PlannerInput {
  const LayerGraph& graph;
  const std::vector<LayerCosts>& costs;  ///< For one micro-batch, one entry a layer.
  const Cluster& cluster;                ///< `memory` counts for the calibrated cost model only.
  CostModel cost_model = CostModel::calibrated;
  std::optional<std::uint32_t> devices_at_most{};  ///< Absent = all of the cluster.
  std::optional<std::uint32_t> stages_at_most{};   ///< Absent = as many as pay.
  double optimizer_state = 0;                      ///< Bytes for each byte of parameters.
  double gradient_width = 1;                       ///< Bytes for each byte of parameters.
  Residency residency{};                           ///< As an asynchronous 1F1B pipeline's.
  Overheads overheads{};                           ///< `per_op` lengthens F, B and U (calibrated).
  bool straight = false;                           ///< One replica a stage.
  bool activation_transfers = true;                ///< Whether links between stages cost time.
  std::uint32_t candidates = 8;                    ///< The most plans that are wanted; at least 1.
  /// Called now and then with the share done in [0, 1] of the current pass; false = give up.
  std::function<bool(double)> progress{};
};

/// What holds a pipeline back.
enum class BottleneckKind {
  compute,     ///< Of a stage.
  all_reduce,  ///< Of a stage's replicas.
  link,        ///< Between a stage and the next.
  // Between two flushes also:
  update,      ///< Of a stage.
  round_trip,  ///< Of a stage's micro-batches, of which it may have no more in flight.
  flush,       ///< Filling the pipeline and emptying it, in front of a stage.
};

/// What the formula finds one after the other in an iteration with a flush, in seconds: together
/// the iteration, where no link is busy for longer.
struct FlushShares {
  double work_s = 0;   ///< Of the stage that has most: its forwards and backwards, its round trips,
                       ///< or what its link has to carry.
  double flush_s = 0;  ///< In front of it.
  double all_reduce_s = 0;  ///< At the end.
  double update_s = 0;
  BottleneckKind work_kind = BottleneckKind::compute;  ///< Compute, round trips, or a link.
};

/// The resource that the formula finds busy for the whole period; between two flushes, where
/// several follow each other, the one that takes the largest part of it.
struct Bottleneck {
  BottleneckKind kind = BottleneckKind::compute;
  std::uint32_t stage = 0;   ///< Of a link: the stage in front of it.
  std::optional<Card> card;  ///< Where it is a shared network card; kind and stage then tell which
                             ///< traffic is the largest part of it.
};

/// "compute of stage 2", "all-reduce of stage 0", "link 1 (network card of cluster group 3)".
std::string to_text(const Bottleneck& bottleneck);

/// One stage of a plan.
struct PlannedStage {
  std::vector<LayerId> layers;  ///< Consecutive in the plan's order.
  std::uint32_t replicas = 1;
  Duration compute{};          ///< F + B of one micro-batch on one replica, and its part of an U.
  Duration synchronization{};  ///< One all-reduce of its replicas, once every `replicas`
                               ///< micro-batches, or once between two flushes.
  std::uint32_t warm_up = 0;   ///< Micro-batches in flight, less one.
  std::uint32_t weight_versions = 1;
  Bytes peak_memory;  ///< Of each replica; an upper bound, see plan_formula.h.
};

/// A plan and what the formula says of it.
struct PlanCandidate {
  std::vector<LayerId> order;  ///< All layers in a topological order; the stages are runs of it.
  std::vector<PlannedStage> stages;
  std::vector<std::vector<DeviceId>> devices;  ///< Of each stage, replica by replica.
  double period_s = 0;                         ///< Time per micro-batch by the formula.
  Bottleneck bottleneck;
  std::optional<FlushShares> flush;  ///< Of the iteration; nothing without a flush, or where a link
                                     ///< takes longer than all that waits for each other.
  Bytes traffic;                     ///< Between devices, all directions, for one micro-batch.
  bool deeper_warm_up = false;       ///< The same cut as another candidate, with more in flight.

  std::uint32_t devices_used() const;
  /// "15-1": the replicas of each stage.
  std::string config() const;
  Partition partition() const;
};

/// Data parallelism over all devices that may be used, for comparison.
struct DataParallelPlan {
  std::uint32_t devices = 1;
  /// Per micro-batch. Calibrated: (F + max(B, all-reduce) + U) / devices, as every step waits for
  /// its all-reduce; sharded: (F + max(B, half of it) + U / devices + half of one of the weights) /
  /// devices. Where a plan has a flush, each device takes its share of the micro-batches in front
  /// of that (at least one in all), F + B for each more, and the step is divided among all of them.
  /// Published: as the original prints it, level by level.
  double period_s = 0;
  Bytes peak_memory;  ///< Per device: weights, gradients, optimizer state, activations.
  bool fits = true;
};

/// The best plans, best first, and what to compare them with.
struct Plans {
  /// At least one. The first is the optimum of the cost model; then the best plans with other
  /// replica lists and, after each, the same with deeper warm-ups where they fit.
  std::vector<PlanCandidate> best;
  bool restricted = false;  ///< Not all cuts were searched: see kMaxFrontiers.
  /// The search saw two levels of links, of more the slowest of the outer ones.
  bool sees_two_levels = false;
  /// The search found none: `best` is empty, for the caller to fill.
  bool by_hand = false;
  std::uint32_t frontiers = 0;
  /// Above 0 not all plans could be told apart: at each cut those were passed over that are longer
  /// than others by at most this share.
  double slack = 0;
  double one_device_s = 0;  ///< F + B of the whole model, and its part of an U.
  Bytes one_device_memory;
  bool one_device_fits = true;
  DataParallelPlan data_parallel;
  std::optional<PlanCandidate> straight;  ///< Nothing where none fits.
};

/// The plans with the least time per micro-batch; ties go to fewer devices, then fewer stages, then
/// less traffic, then the earlier cut. Every stage of a plan computes something, unless the model
/// has no time at all. Deterministic.
/// Requires: a graph without a cycle and with a layer; one cost a layer; at least one device.
/// Errors (Fault::infeasible, without a mark): no plan fits the memory (names the tightest stage
/// and what it lacks); there are too many plans; `progress` gave up.
Result<Plans> plan(const PlannerInput& input);

}  // namespace plumbline
