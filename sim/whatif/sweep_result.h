// The result of a sweep: the numbers of each point.
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

/// The numbers of a prediction, in a row.
struct SweepNumbers {
  double iteration_time_s = 0;
  std::optional<double> throughput_samples_per_s;  ///< Nothing if the run takes no time.
  std::int64_t devices = 1;  ///< Devices that hold a stage; all of a group count.
  std::uint32_t stages = 1;  ///< Stages of the pipeline.
  std::optional<std::int64_t> stages_raised_from;  ///< The written plan.stages, if it was raised.
  std::optional<double> model_flops_per_device_per_s;  ///< Set if the model's FLOPs are known.
  std::optional<double> model_flops_utilization;       ///< Set if the device's peak is known, too.
  /// The times that 5, 50 and 95 % of the sampled runs do not exceed; nothing without noise.
  std::optional<double> iteration_time_p5_s, iteration_time_p50_s, iteration_time_p95_s;
  double bubble_fraction = 0;  ///< Over the whole run.
  double bubble_overhead = 0;
  std::optional<double> steady_bubble_fraction;   ///< For asynchronous runs only.
  std::optional<double> formula_bubble_fraction;  ///< Set if a closed form holds.
  double communication_stall_fraction = 0;
  std::optional<double> sent_in_groups_fraction;  ///< Set if layers send within groups.
  std::int64_t peak_memory_bytes =
      0;  ///< Peak of the device that needs most; the first among equals.
  std::uint32_t peak_memory_device = 0;            ///< The device with that peak.
  std::optional<bool> fits;                        ///< Nothing without a memory size.
  std::optional<std::int64_t> memory_limit_bytes;  ///< The memory size of a device.
  std::uint32_t devices_without_stage = 0;         ///< Devices of the cluster that run nothing.
  Bill bill;                                       ///< What the training takes.

  /// The throughput for each device that holds a stage.
  std::optional<double> throughput_per_device() const {
    return per_device(throughput_samples_per_s, devices);
  }
  /// The samples in an iteration: the mini-batches of all copies. Nothing if the throughput is not
  /// known.
  std::optional<std::int64_t> samples() const;
  /// The bubble for comparing schedules: that of the steady state, if there is one.
  double bubble() const { return steady_bubble_fraction.value_or(bubble_fraction); }

  friend bool operator==(const SweepNumbers&, const SweepNumbers&) = default;
};

/// The numbers of a prediction.
SweepNumbers numbers_of(const Outcome& outcome);

/// The row of one combination.
struct SweepRow {
  std::uint64_t point = 0;
  std::optional<SweepNumbers> numbers;  ///< Nothing if it cannot run at all.
  std::string reason;  ///< The reason why it cannot run or does not fit; "" = feasible.
  std::vector<std::string>
      estimated;  ///< Sentences on how numbers that were not measured were derived.

  bool feasible() const { return reason.empty(); }

  friend bool operator==(const SweepRow&, const SweepRow&) = default;
};

/// A key and its values, as written.
struct SweepAxis {
  std::string key;
  std::vector<std::string> values;

  friend bool operator==(const SweepAxis&, const SweepAxis&) = default;
};

/// The data that a report of a sweep needs.
struct SweepResult {
  std::string scenario;     ///< Its name.
  std::string file;         ///< The file's name as the user gave it.
  std::string fingerprint;  ///< Equal for equal scenarios, files and axes.
  std::vector<SweepAxis> axes;
  std::uint64_t points = 0;    ///< Points of the whole sweep.
  std::optional<Shard> shard;  ///< Nothing for a sweep in one piece.
  std::vector<SweepRow> rows;

  /// The index of the point's value on each axis; the last axis varies fastest.
  std::vector<std::size_t> values_at(std::uint64_t point) const;
};

}  // namespace plumbline
