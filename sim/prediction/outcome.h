// The outcome of a run, predicted or measured: its events, their times, and the numbers that follow
// from them.
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
#include "sim/prediction/bill.h"
#include "sim/prediction/bubble_terms.h"
#include "sim/prediction/goodput.h"
#include "sim/setup/resolve_setup.h"

namespace plumbline {

/// The iteration times of runs with noise.
struct Uncertainty {
  std::vector<double> iteration_times_s;  ///< One per sampled run, ascending.
  std::uint64_t seed = 1;

  /// The time that `share` of the runs do not exceed: the nearest rank. `share` in [0, 1].
  double iteration_time_s(double share) const;
};

/// The least and the most time, in seconds.
struct TimeRange {
  double low_s = 0, high_s = 0;
};

/// A predicted or measured run: its events, their times, and the numbers that follow from them.
struct Outcome {
  TrainingSetup setup;
  OpGraph graph;
  Trace trace;
  Metrics metrics;
  std::vector<DeviceMemory> memory;  ///< One per slot.
  std::optional<ClosedForm> formula;
  double iteration_time_s = 0;
  std::optional<double> throughput_samples_per_s;  ///< Nothing if the run takes no time.
  /// The part of the compute time in which devices send to others of their groups. Seconds, summed
  /// over the devices that have a slot; nothing if no device sends.
  std::optional<double> sent_in_groups_s;
  std::optional<double>
      model_flops;  ///< Per iteration of all copies; see models/network/model_flops.h.
  std::optional<Uncertainty> uncertainty;  ///< For predictions with noise only.
  /// The terms of the bubble, if the caller asked for them: see bubble_terms().
  std::optional<BubbleTerms> bubble_terms;

  /// The times between which a share of kErrorCoverage of such runs lie, in seconds; nothing where
  /// no published run says so (see errors_at()).
  std::optional<TimeRange> likely_iteration_time() const;
  /// The samples of one iteration in all copies.
  double samples_per_iteration() const;
  /// The devices that hold a stage. All devices of a group count.
  std::int64_t devices_used() const {
    return std::int64_t{graph.slots()} * graph.copies_represented * setup.group_devices();
  }
  /// The devices of the cluster. All devices of a group count.
  std::int64_t devices_in_all() const {
    return setup.cluster.device_count() * setup.group_devices();
  }
  std::int64_t layers() const;
  /// The number of the device that has this slot, as the user counts devices.
  std::string device_name(std::size_t slot) const {
    return std::to_string(graph.devices[slot].value);
  }
  /// The parameters of the model; nothing if the scenario's devices stand for groups that share
  /// them.
  std::optional<Bytes> parameters() const;
  /// The throughput per used device, on average; nothing if the run takes no time.
  std::optional<double> throughput_per_device() const;
  /// Model FLOPs per second and used device; nothing if the model's FLOPs are unknown.
  std::optional<double> flops_per_s_per_device() const;
  /// The same as a share of the device's peak, "MFU" (Chowdhery et al. 2022, appendix B); nothing
  /// if the peak is unknown.
  std::optional<double> model_flops_utilization() const;
  /// sent_in_groups_s as a share of the device time, which is devices x Metrics::whole().
  std::optional<double> sent_in_groups_fraction() const;
  /// What the device that holds most of it saves for a checkpoint: weights and optimizer state.
  Bytes checkpoint_bytes() const;
  /// The iterations of the whole training; nothing where its tokens are not given.
  std::optional<std::int64_t> iterations_in_all() const;
  /// What failures and checkpoints leave of the throughput; nothing without a goodput section, or
  /// if the run takes no time.
  std::optional<Goodput> goodput() const;
  /// Sampled trainings; nothing where no tokens are given, or none can be sampled.
  std::optional<SampledGoodput> sampled_goodput() const;
  /// What the training takes at this throughput and goodput.
  Bill bill() const {
    const auto kept = goodput();
    return bill_of(setup.rates, throughput_samples_per_s, {devices_used(), devices_in_all()}, kept);
  }
  /// Whether every device's memory peak is within the limit; nothing without a limit.
  std::optional<bool> fits() const;
  std::optional<bool> fits(std::size_t slot) const;
  /// The memory of a slot's device; nothing without a memory size.
  std::optional<Bytes> memory_limit(std::size_t slot) const;
  /// The kind of a slot's device; "" where all devices are alike.
  std::string device_kind(std::size_t slot) const;
};

/// The closed form for a run of `graph`, if its conditions hold. Transfers overlap and have no
/// bandwidth limit; neighbours do not matter; only F and B take time; all mini-batches are alike.
std::optional<ClosedForm> formula_of(const TrainingSetup& setup, const OpGraph& graph);

/// Errors, without a mark: device times that do not add up within 64 bits of nanoseconds.
std::optional<Diagnostic> check_device_time(const OpGraph& graph, const Trace& trace);

/// Computes the outcome from a trace of the setup's graph. Errors: those of check_device_time().
Result<Outcome> assess(TrainingSetup setup, OpGraph graph, Trace trace);

/// One sentence about the device that exceeds its memory most. Requires: fits() is false.
std::string shortage(const Outcome& outcome);

}  // namespace plumbline
