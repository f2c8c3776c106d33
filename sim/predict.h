// From a scenario to a prediction: the tool's main path, a list of passes.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedules/bubble_formulas.h"
#include "sim/memory.h"
#include "sim/metrics.h"
#include "sim/pipeline.h"
#include "sim/trace.h"

namespace plumbline {

/// A prediction: what happens when, and what that means.
struct Prediction {
  std::string scenario;
  Pipeline pipeline;
  OpGraph graph;
  Trace trace;
  Metrics metrics;
  MemoryRules memory_rules;
  std::vector<DeviceMemory> memory;  ///< By slot.
  std::optional<Bytes> memory_limit;
  std::optional<ClosedForm> formula;
  std::uint32_t micro_batches = 1;  ///< In one mini-batch, as the scenario gives them.
  std::uint32_t mini_batches = 1;   ///< As the scenario gives them.
  std::int64_t micro_batch_size = 1;
  double iteration_time_s = 0;
  std::optional<double> throughput_samples_per_s;  ///< Nothing for a run that takes no time.

  /// Whether every device's peak is within the limit; nothing without a limit.
  std::optional<bool> fits() const;
  std::optional<bool> fits(std::size_t slot) const;
};

/// The run of a pipeline: from here on the order is fixed. Errors: those of lower().
Result<OpGraph> lower_pipeline(const Scenario& scenario, const Pipeline& pipeline);

/// Predicts. Errors: those of plan_pipeline; a run that does not fit into 64 bits.
Result<Prediction> predict(const Scenario& scenario);

}  // namespace plumbline
