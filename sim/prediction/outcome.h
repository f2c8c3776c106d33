// What happens when in a run, and what that means: of a prediction and of a measured run alike.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedules/generators/bubble_formulas.h"
#include "sim/engine/memory.h"
#include "sim/engine/metrics.h"
#include "sim/engine/trace.h"
#include "sim/prediction/bubble_terms.h"
#include "sim/setup/resolve_setup.h"

namespace plumbline {

/// How long an iteration takes in runs with noise.
struct Uncertainty {
  std::vector<double> iteration_times_s;  ///< One for each sampled run, ascending.
  std::uint64_t seed = 1;

  /// The time that `share` of the runs do not exceed: the nearest rank. `share` in [0, 1].
  double iteration_time_s(double share) const;
};

/// A run, predicted or measured: what happens when, and what that means.
struct Outcome {
  TrainingSetup setup;
  OpGraph graph;
  Trace trace;
  Metrics metrics;
  std::vector<DeviceMemory> memory;  ///< By slot.
  std::optional<ClosedForm> formula;
  double iteration_time_s = 0;
  std::optional<double> throughput_samples_per_s;  ///< Nothing for a run that takes no time.
  /// Of what devices computed, what was sending to others of their groups, in seconds of the time
  /// of each device that has a slot; nothing where nothing was.
  std::optional<double> sent_in_groups_s;
  std::optional<double>
      model_flops;  ///< Of an iteration of all copies: models/network/model_flops.h.
  std::optional<Uncertainty> uncertainty;  ///< Of a prediction with noise.
  /// What the bubble is made of, where it was asked for: bubble_terms().
  std::optional<BubbleTerms> bubble_terms;

  /// Of all copies.
  double samples_per_iteration() const;
  /// That hold a stage, all of a group counted.
  std::int64_t devices_used() const {
    return std::int64_t{graph.slots()} * graph.copies_represented * setup.group_devices();
  }
  /// Of the cluster, all of a group counted.
  std::int64_t devices_in_all() const {
    return setup.cluster.device_count() * setup.group_devices();
  }
  std::int64_t layers() const;
  /// The number of the device that has this slot, as the user counts devices.
  std::string device_name(std::size_t slot) const {
    return std::to_string(graph.devices[slot].value);
  }
  /// Of the model; nothing where the scenario's devices stand for groups that share them.
  std::optional<Bytes> parameters() const;
  /// What each of these comes to on average; nothing for a run that takes no time.
  std::optional<double> throughput_per_device() const;
  /// Model FLOPs that each of them gets done in a second; nothing where the model's are unknown.
  std::optional<double> flops_per_s_per_device() const;
  /// That as a share of what a device could do, "MFU" (Chowdhery et al. 2022, appendix B); nothing
  /// where the peak is unknown.
  std::optional<double> model_flops_utilization() const;
  /// That as a share of the device time: the makespan of all devices.
  std::optional<double> sent_in_groups_fraction() const;
  /// Whether every device's peak is within the limit; nothing without a limit.
  std::optional<bool> fits() const;
  std::optional<bool> fits(std::size_t slot) const;
};

/// The closed form for a run of `graph`, where its conditions hold: overlapped transfers without
/// bandwidth, neighbours that do not matter, nothing but F and B that takes time, one mini-batch
/// like the other.
std::optional<ClosedForm> formula_of(const TrainingSetup& setup, const OpGraph& graph);

/// Reads off a trace of the setup's graph what it means. Errors, without a mark: device times that
/// 64 bits do not hold.
Result<Outcome> assess(TrainingSetup setup, OpGraph graph, Trace trace);

/// One sentence about the device that is the farthest beyond the memory. Requires: fits() is false.
std::string shortage(const Outcome& outcome);

}  // namespace plumbline
