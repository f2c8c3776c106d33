// From a scenario to a prediction: the tool's main path, a list of passes.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedules/bubble_formulas.h"
#include "schedules/lower.h"
#include "sim/memory.h"
#include "sim/metrics.h"
#include "sim/scenario.h"
#include "sim/trace.h"

namespace plumbline {

/// The most F, B, I and W of one run; it then takes some 3 GB.
inline constexpr double kMostOps = 2e7;

/// A scenario with everything settled that does not depend on time: who runs what in which order.
struct Pipeline {
  Partition partition;
  std::vector<DeviceId> devices;  ///< Of each slot.
  Cluster cluster;
  StageCosts costs;   ///< At the scenario's micro-batch size.
  Schedule schedule;  ///< Of one mini-batch; of the whole stream where asynchronous.
  std::uint32_t mini_batches = 1;
  std::vector<std::uint32_t> weight_versions;  ///< Kept by each stage.
  std::vector<std::string> estimated;
  std::vector<std::string> notes;
};

/// A prediction: what happens when, and what that means.
struct Prediction {
  std::string scenario;
  Pipeline pipeline;
  OpGraph graph;
  Trace trace;
  Metrics metrics;
  std::vector<DeviceMemory> memory;  ///< By slot.
  std::optional<Bytes> memory_limit;
  std::optional<ClosedForm> formula;
  std::uint32_t micro_batches = 1;  ///< In one mini-batch, as the scenario gives them.
  std::int64_t micro_batch_size = 1;
  double iteration_time_s = 0;
  std::optional<double> throughput_samples_per_s;  ///< Nothing for a run that takes no time.

  /// Whether every device's peak is within the limit; nothing without a limit.
  std::optional<bool> fits() const;
  std::optional<bool> fits(std::size_t slot) const;
};

/// Costs at the micro-batch size, partition, schedule. `for_run` raises the number of micro-batches
/// of an asynchronous run to what its steady state needs. Errors: a plan that does not fit model,
/// cluster or schedule; a deadlock; sizes that are not simulated.
Result<Pipeline> plan_pipeline(const Scenario& scenario, bool for_run);

/// Predicts. Errors: those of plan_pipeline; a run that does not fit into 64 bits.
Result<Prediction> predict(const Scenario& scenario);

}  // namespace plumbline
