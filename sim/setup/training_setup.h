// A training run with every choice made: the model, the devices, the order of the ops, the rules.
// It has no marks: no decision is open, and all files have been checked.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/shared_value.h"
#include "models/hardware/cluster.h"
#include "models/kernels/published_errors.h"
#include "models/network/network.h"
#include "models/profile/profile.h"
#include "schedules/generators/generators.h"
#include "schedules/order/schedule.h"
#include "schedules/order/weight_versions.h"
#include "schedules/stages/partition.h"
#include "schedules/stages/stage_costs.h"
#include "sim/engine/memory.h"
#include "sim/engine/metrics.h"
#include "sim/graph/op_graph.h"
#include "sim/graph/run_rules.h"
#include "sim/scenario/cost_rates.h"
#include "sim/scenario/noise.h"
#include "sim/setup/assumed_split.h"

namespace plumbline {

/// The kinds of ops: F, B, I, W, U.
inline constexpr std::size_t kOpKinds = 5;

/// The relative standard deviation of each of a stage's ops.
using OpSpreads = std::array<double, kOpKinds>;

/// The runs with noise that are sampled.
struct NoiseSampling {
  Noise noise;
  std::uint32_t samples = 1000;
  /// One entry per stage, used instead of the noise's own spread; empty: nothing was measured.
  std::vector<OpSpreads> measured{};
};

/// A training run with every choice made. resolve() makes it from a scenario. The graph, the
/// outcome, the reports and real runs use nothing else.
struct TrainingSetup {
  // The model and its training.
  std::string name;                        ///< The scenario's name.
  SharedValue<Model> model;                ///< The layers and their costs.
  std::shared_ptr<const Network> network;  ///< The network that is executed; null = unknown.
  std::int64_t micro_batch_size = 1;       ///< In samples.
  std::uint32_t micro_batches = 1;         ///< Per mini-batch and copy, as the scenario gives them.
  std::uint32_t slices = 1;                ///< Per micro-batch.
  std::uint32_t mini_batches = 1;          ///< The number that the scenario gives.
  double optimizer_state = 0;              ///< Bytes per byte of parameters.
  double gradient_width = 1;               ///< Bytes of gradients per byte of parameters.
  std::optional<double> mean_flops{};      ///< Of a micro-batch, where lengths differ.
  std::optional<FlopsPerSecond> peak{};    ///< The device's peak in the model's number format.
  CostRates rates{};                       ///< What a throughput means in days and money.

  // The devices and their stages.
  Cluster cluster;
  bool link_measured = false;  ///< The link comes from the profile and connects the devices.
  Partition partition;
  std::optional<std::int64_t> stages_raised_from{};  ///< The number in the plan.
  std::vector<DeviceId> devices;                     ///< One per slot of one copy.
  std::vector<std::uint32_t> replicas;               ///< One count per stage.
  StageCosts costs;                                  ///< At this micro-batch size.
  /// One count n per stage: if it recomputes, its first n layers do. Empty: all layers do.
  std::vector<std::uint32_t> recomputed;

  // The order of the ops.
  const ScheduleRule* rule = nullptr;  ///< Null if a file gives the order.
  std::uint32_t chunks = 1;            ///< Stages per device, if the rule has chunks.
  std::uint32_t group = 0;             ///< Micro-batches that go round together; 0 = by the rule.
  Schedule schedule;  ///< Covers one mini-batch, or the whole stream if asynchronous.
  std::vector<std::uint32_t> windows;  ///< One per position; empty for an order from a file.
  std::vector<StageVersions> weights;  ///< One entry per stage.
  SteadyWindow steady_window;          ///< For asynchronous runs only.

  // The rules of the run.
  RunRules rules;                        ///< The rules from the schedule to the graph.
  std::optional<NoiseSampling> noise{};  ///< Set if runs with noise are sampled.

  // The remarks for the reader of a report.
  AssumedSplit split;  ///< Reported among the estimates and the notes.
  std::vector<std::string> estimated;
  std::vector<std::string> notes;
  std::optional<PublishedErrors> errors{};  ///< Set if all times come from kernels.

  /// The origin of times that a table of kernels gave; nothing without one.
  const std::optional<KernelShares>& kernel_shares() const { return model->profile.kernel_shares; }
  /// Removes the assumptions about backwards from the report: the backwards are measured.
  void forget_split() {
    std::erase(notes, split.note());
    std::erase(estimated, split.estimate());
    split = {};
  }
  /// Removes what is said of predictions: the run was measured.
  void forget_errors() {
    if (errors) std::erase(estimated, estimate_of(*errors));
    errors.reset();
  }
  /// The copies of the whole pipeline. Device q of copy c is cluster device q x copies + c.
  std::uint32_t copies() const { return rules.copies; }
  /// Whether one stage is the whole model, with a copy of it on every device.
  bool whole_model() const { return rule && rule->whole_model; }
  /// The rule, if devices have several stages or backwards have two parts; else null.
  const ChunkRule* chunk_rule() const { return rule && rule->chunks ? &*rule->chunks : nullptr; }
  /// The number of devices that each device of the cluster stands for.
  std::int64_t group_devices() const { return model->profile.group.devices; }
  /// Whether the layer at `place` of a stage recomputes its activations, if any layer does.
  bool recomputes(std::size_t stage, std::size_t place) const {
    return recomputed.empty() || place < recomputed[stage];
  }
  /// The time of one mini-batch, in seconds, in a run with these metrics.
  double iteration_time_of(const Metrics& run) const;
  /// The memory of the device of each of the schedule's slots, in the first copy; nothing if it is
  /// not known.
  std::optional<std::vector<Bytes>> memory_of_slots() const;
  /// The number of devices of the cluster that hold no stage.
  std::uint32_t devices_without_stage() const {
    return cluster.device_count() - static_cast<std::uint32_t>(devices.size()) * copies();
  }
  /// Stages per device, if an order goes round the devices with several stages on each; else 1.
  double rounds() const {
    const PipelineShape& shape = schedule.shape;
    const bool goes_round = windows.empty() && shape.stages() > shape.slots;
    return goes_round ? static_cast<double>(shape.stages()) / shape.slots : 1;
  }
};

/// The rules that decide how many bytes the setup's devices hold.
MemoryRules memory_rules(const TrainingSetup& setup);

/// The devices that hold each stage in a run of the setup, as in its graph.
StageHolders holders_of(const TrainingSetup& setup);

/// The graph of the setup's run: from here on the order is fixed. `first_copy_only` writes the
/// first copy alone. Errors: those of lower(), without a mark.
Result<OpGraph> lower(const TrainingSetup& setup, bool first_copy_only = false);

}  // namespace plumbline
