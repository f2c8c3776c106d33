// Changes of a scenario under which its devices hold less, each predicted.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/prediction/outcome.h"
#include "sim/scenario/scenario.h"

namespace plumbline {

/// A change, and what a prediction under it says.
struct WayToFit {
  std::string what;                    ///< "shard gradients, too".
  std::vector<std::string> overrides;  ///< The keys that make it.
  std::int64_t peak_memory_bytes = 0;  ///< Of the device that needs most.
  double iteration_time_s = 0;
  std::optional<double> throughput_samples_per_s;
  std::optional<bool> fits;  ///< Nothing without a memory size.
};

/// The changes that take less memory than the scenario at `path` under `overrides`, whose
/// prediction is `now`: recomputation, sharding, smaller micro-batches, more stages, more tensor or
/// context parallelism, offloading. Those that fit come first, the fastest first; then the others,
/// the smallest first. Where no single change fits, pairs of them are tried, too. Changes that
/// cannot run are left out.
std::vector<WayToFit> ways_to_fit(const std::string& path,
                                  const std::vector<std::string>& overrides,
                                  const Scenario& scenario, const Outcome& now);

}  // namespace plumbline
