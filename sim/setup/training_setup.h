// A training run with every choice made: what is trained, who runs what in which order, by which
// rules. It has no marks: nothing in it waits for a decision, and no file can be wrong any more.
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
#include "sim/scenario/noise.h"
#include "sim/setup/assumed_split.h"

namespace plumbline {

/// F, B, I, W, U.
inline constexpr std::size_t kOpKinds = 5;

/// The relative standard deviation of each of a stage's ops.
using OpSpreads = std::array<double, kOpKinds>;

/// Runs with noise that are sampled.
struct NoiseSampling {
  Noise noise;
  std::uint32_t samples = 1000;
  /// Of each stage, instead of the noise's own spread; empty where nothing was measured.
  std::vector<OpSpreads> measured{};
};

/// A training run with every choice made: resolve_setup() makes it of a scenario, and the graph,
/// the outcome, the reports and real runs ask nothing else.
struct TrainingSetup {
  // What is trained.
  std::string name;                        ///< The scenario's.
  SharedValue<Model> model;                ///< Its layers and what they cost.
  std::shared_ptr<const Network> network;  ///< What is really executed, where it is known.
  std::int64_t micro_batch_size = 1;       ///< In samples.
  std::uint32_t micro_batches = 1;  ///< In one mini-batch of one copy, as the scenario gives them.
  std::uint32_t slices = 1;         ///< Of each micro-batch.
  std::uint32_t mini_batches = 1;   ///< As the scenario gives them.
  double optimizer_state = 0;       ///< Bytes for each byte of parameters.
  double gradient_width = 1;        ///< Bytes of gradients for each byte of parameters.
  std::optional<FlopsPerSecond> peak{};  ///< Of a device, in the model's number format.

  // Who runs what.
  Cluster cluster;
  bool link_measured = false;  ///< The link is what the profile holds: what devices have.
  Partition partition;
  std::optional<std::int64_t> stages_raised_from{};  ///< As in the plan.
  std::vector<DeviceId> devices;                     ///< Of each slot of one copy.
  std::vector<std::uint32_t> replicas;               ///< Of each stage.
  StageCosts costs;                                  ///< At this micro-batch size.
  /// Where a stage makes activations again, it is its first so many layers that do; empty: all do.
  std::vector<std::uint32_t> recomputed;

  // In which order.
  const ScheduleRule* rule = nullptr;  ///< Nothing where a file gives the order.
  std::uint32_t chunks = 1;            ///< Stages of each device, where the rule has chunks.
  std::uint32_t group = 0;  ///< Micro-batches that go round them together; 0 = by the rule.
  Schedule schedule;        ///< Of one mini-batch; of the whole stream where asynchronous.
  std::vector<std::uint32_t> windows;  ///< Of each position; empty for an order from a file.
  std::vector<StageVersions> weights;  ///< Of each stage.
  SteadyWindow steady_window;          ///< Of an asynchronous run.

  // By which rules.
  RunRules rules;                        ///< From the schedule to the graph.
  std::optional<NoiseSampling> noise{};  ///< Where runs with noise are sampled.

  // What is to be said of it.
  AssumedSplit split;  ///< Told among the estimates and the notes.
  std::vector<std::string> estimated;
  std::vector<std::string> notes;

  /// What was assumed of the backwards is not told: they are measured.
  void forget_split() {
    std::erase(notes, split.note());
    std::erase(estimated, split.estimate());
    split = {};
  }
  /// Of the whole pipeline; device q of copy c is cluster device q x copies + c.
  std::uint32_t copies() const { return rules.copies; }
  /// Whether one stage is the whole model, and a copy of it stands on every device.
  bool whole_model() const { return rule && rule->whole_model; }
  /// The rule where devices have several stages, or backwards two parts; else null.
  const ChunkRule* chunk_rule() const { return rule && rule->chunks ? &*rule->chunks : nullptr; }
  /// Devices that each of the cluster's stands for.
  std::int64_t group_devices() const { return model->profile.group.devices; }
  /// Whether the layer at `place` of a stage makes its activations again where any does.
  bool recomputes(std::size_t stage, std::size_t place) const {
    return recomputed.empty() || place < recomputed[stage];
  }
  /// The time of one mini-batch, in seconds, in a run with these metrics.
  double iteration_time_of(const Metrics& run) const;
  /// Of the cluster's.
  std::uint32_t devices_without_stage() const {
    return cluster.device_count() - static_cast<std::uint32_t>(devices.size()) * copies();
  }
  /// Stages of each device, where an order goes round the devices with several on each; else 1.
  double rounds() const {
    const PipelineShape& shape = schedule.shape;
    const bool goes_round = windows.empty() && shape.stages() > shape.slots;
    return goes_round ? static_cast<double>(shape.stages()) / shape.slots : 1;
  }
};

/// What decides how many bytes its devices hold.
MemoryRules memory_rules(const TrainingSetup& setup);

/// Its run: from here on the order is fixed. With `first_copy_only`, of its first copy alone.
/// Errors: those of lower(), without a mark.
Result<OpGraph> lower(const TrainingSetup& setup, bool first_copy_only = false);

}  // namespace plumbline
