// What a sweep found: the numbers of each point.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/metrics.h"
#include "sim/prediction/outcome.h"
#include "sim/whatif/shards.h"

namespace plumbline {

/// What a prediction comes to, in a row.
struct SweepNumbers {
  double iteration_time_s = 0;
  std::optional<double> throughput_samples_per_s;  ///< Nothing for a run that takes no time.
  std::int64_t devices = 1;                        ///< That hold a stage, all of a group counted.
  std::uint32_t stages = 1;                        ///< Of the pipeline.
  std::optional<std::int64_t> stages_raised_from;  ///< plan.stages, where there are more.
  std::optional<double> model_flops_per_device_per_s;  ///< Where the model's FLOPs are known.
  std::optional<double> model_flops_utilization;       ///< Where the device's peak is, too.
  /// What 5, 50 and 95 % of the sampled runs do not exceed; nothing without noise.
  std::optional<double> iteration_time_p5_s, iteration_time_p50_s, iteration_time_p95_s;
  double bubble_fraction = 0;  ///< Over the whole run.
  double bubble_overhead = 0;
  std::optional<double> steady_bubble_fraction;   ///< Of an asynchronous run.
  std::optional<double> formula_bubble_fraction;  ///< Where a closed form holds.
  double communication_stall_fraction = 0;
  std::optional<double> sent_in_groups_fraction;  ///< Where layers send within groups.
  std::int64_t peak_memory_bytes = 0;    ///< Of the device that needs most; the first among equals.
  std::uint32_t peak_memory_device = 0;  ///< That device.
  std::optional<bool> fits;              ///< Nothing without a memory size.
  std::optional<std::int64_t> memory_limit_bytes;  ///< That size, of a device.
  std::uint32_t devices_without_stage = 0;         ///< Of the cluster's: they run nothing.

  /// The throughput for each device that holds a stage.
  std::optional<double> throughput_per_device() const {
    return per_device(throughput_samples_per_s, devices);
  }
  /// In an iteration, the mini-batch of all copies; nothing where the throughput is not known.
  std::optional<std::int64_t> samples() const;
  /// The bubble that compares across schedules: of the steady state where there is one.
  double bubble() const { return steady_bubble_fraction.value_or(bubble_fraction); }

  friend bool operator==(const SweepNumbers&, const SweepNumbers&) = default;
};

/// What a prediction comes to.
SweepNumbers numbers_of(const Outcome& outcome);

/// One combination.
struct SweepRow {
  std::uint64_t point = 0;
  std::optional<SweepNumbers> numbers;  ///< Nothing where it cannot run at all.
  std::string reason;                   ///< Why it cannot run, or does not fit; "" = feasible.
  std::vector<std::string> estimated;   ///< How numbers were derived that are not measured.

  bool feasible() const { return reason.empty(); }

  friend bool operator==(const SweepRow&, const SweepRow&) = default;
};

/// A key and its values, as they are written.
struct SweepAxis {
  std::string key;
  std::vector<std::string> values;

  friend bool operator==(const SweepAxis&, const SweepAxis&) = default;
};

/// All that a report of a sweep needs.
struct SweepResult {
  std::string scenario;     ///< Its name.
  std::string file;         ///< Where it was read from, as the user named it.
  std::string fingerprint;  ///< Equal for equal scenarios, files and axes.
  std::vector<SweepAxis> axes;
  std::uint64_t points = 0;    ///< Of the whole sweep.
  std::optional<Shard> shard;  ///< Nothing for a sweep in one piece.
  std::vector<SweepRow> rows;

  /// The index of the point's value on each axis; the last axis varies fastest.
  std::vector<std::size_t> values_at(std::uint64_t point) const;
};

}  // namespace plumbline
