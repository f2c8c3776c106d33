// A scenario with everything settled that does not depend on time: who runs what in which order.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "models/hardware/cluster.h"
#include "schedules/order/schedule.h"
#include "schedules/stages/partition.h"
#include "schedules/stages/stage_costs.h"
#include "sim/engine/metrics.h"
#include "sim/prediction/split_backward.h"
#include "sim/scenario/scenario.h"

namespace plumbline {

/// The most F, B, I and W of one run; it then takes some 3 GB.
inline constexpr double kMaxOps = 2e7;

/// A scenario with everything settled that does not depend on time: who runs what in which order.
struct Pipeline {
  Partition partition;
  std::optional<std::int64_t> stages_raised_from;  ///< As in the plan.
  std::vector<DeviceId> devices;                   ///< Of each slot of one copy.
  std::vector<std::uint32_t> replicas;             ///< Of each stage.
  std::uint32_t copies = 1;  ///< Device q of copy c is cluster device q x copies + c.
  Cluster cluster;
  StageCosts costs;   ///< At the scenario's micro-batch size.
  Schedule schedule;  ///< Of one mini-batch; of the whole stream where asynchronous.
  std::vector<std::uint32_t> windows;  ///< Of each position; empty for an order from a file.
  std::uint32_t mini_batches = 1;
  std::vector<StageVersions> weights;  ///< Of each stage.
  /// Where a stage makes activations again, it is its first so many layers that do; empty: all do.
  std::vector<std::uint32_t> recomputed;
  SteadyWindow steady_window;  ///< Of an asynchronous run.
  AssumedSplit split;          ///< Told among the estimates and the notes.
  std::vector<std::string> estimated;
  std::vector<std::string> notes;

  /// What was assumed of the backwards is not told: they are measured.
  void forget_split() {
    std::erase(notes, split.note());
    std::erase(estimated, split.estimate());
    split = {};
  }
  /// By stage.
  std::vector<std::uint32_t> versions_kept() const {
    std::vector<std::uint32_t> kept;
    kept.reserve(weights.size());
    for (const StageVersions& stage : weights) kept.push_back(stage.kept);
    return kept;
  }
  /// Whether the layer at `place` of a stage makes its activations again where any does.
  bool recomputes(std::size_t stage, std::size_t place) const {
    return recomputed.empty() || place < recomputed[stage];
  }
  /// Of the cluster's.
  std::uint32_t devices_without_stage() const {
    return cluster.device_count() - static_cast<std::uint32_t>(devices.size()) * copies;
  }
  /// Stages of each device, where an order goes round the devices with several on each; else 1.
  double rounds() const {
    const PipelineShape& shape = schedule.shape;
    const bool goes_round = windows.empty() && shape.stages() > shape.slots;
    return goes_round ? static_cast<double>(shape.stages()) / shape.slots : 1;
  }
};

/// Costs at the micro-batch size, partition, schedule. `for_run` raises the number of micro-batches
/// of an asynchronous run to what its steady state needs. With `as`, that is the partition,
/// whatever the plan would make of these costs. Errors: a plan that does not fit model, cluster or
/// schedule; a deadlock; sizes that are not simulated.
Result<Pipeline> plan_pipeline(const Scenario& scenario, bool for_run,
                               const Partition* as = nullptr);

}  // namespace plumbline
