// Runs side by side: their differences, and the reasons why one is faster.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "sim/prediction/outcome.h"

namespace plumbline {

inline constexpr std::size_t kIdleCauseCount = std::size(kIdleCauses);

/// One device of a run that is compared.
struct ComparedDevice {
  std::uint32_t device = 0;
  std::vector<std::uint32_t> stages;
  std::int64_t peak_memory_bytes = 0;
  std::int64_t peak_in_flight = 0;
};

/// Dotted keys of a scenario, and their values as written.
using WrittenKeys = std::vector<std::pair<std::string, std::string>>;

/// A run in a comparison, from a scenario that was just predicted or from a result file.
struct ComparedRun {
  std::string title;
  std::string model;  ///< Its name; "" = it has none, or it is unknown.
  std::string schedule;
  std::int64_t stages = 1;
  std::int64_t micro_batches = 1;
  std::int64_t slices = 1;  ///< Per micro-batch.
  double iteration_time_s = 0;
  std::optional<TimeRange> likely_time;  ///< See PublishedErrors; nothing = unknown.
  std::string setting;                   ///< PublishedErrors::setting; "" = unknown.
  std::optional<double> throughput_samples_per_s;
  std::optional<double> model_flops_utilization;
  double bubble_fraction = 0;  ///< The steady state's, if there is one.
  double communication_stall_fraction = 0;
  std::optional<double> sent_in_groups_fraction;
  Bill bill;  ///< What the training takes.
  /// Busy and idle time of a device in one iteration, on average; they add up to the iteration
  /// time. For an asynchronous run, all idle time of the steady state counts as dependency.
  double busy_s = 0;
  std::array<double, kIdleCauseCount> idle_s{};  ///< One per cause.
  std::vector<ComparedDevice> devices;
  std::int64_t devices_used = 1;  ///< All devices of a group count.
  std::optional<std::int64_t>
      devices_in_all;                  ///< Devices of the cluster; all devices of a group count.
  std::optional<std::int64_t> copies;  ///< Copies of the pipeline.
  std::optional<std::int64_t> layers;
  std::optional<std::int64_t>
      parameters_bytes;  ///< The model's; nothing if a group shares its parts.
  std::optional<double> model_flops_per_sample;
  bool flushes = true;  ///< All devices wait for the end of the mini-batch before each update.
  std::optional<bool> fits;
  std::vector<std::string> estimated;
  std::vector<std::string> notes;
  WrittenKeys keys;  ///< Keys of its scenario under the overrides; empty = unknown.
  std::shared_ptr<const Outcome> outcome;  ///< Set if the run was predicted here.

  std::int64_t peak_memory_bytes() const;
  /// Samples per second if they are known, else iterations per second.
  double speed() const;
  /// Samples per second and device; nothing if they are not known.
  std::optional<double> throughput_per_device() const;
  /// The samples in an iteration; 1 if they are not known.
  double samples() const;
};

/// A run that is missing from a comparison, since it cannot run at all.
struct RefusedRun {
  std::string title;
  std::string reason;
};

/// Makes a compared run from a prediction. The outcome is kept for its sampled runs.
ComparedRun compared(std::shared_ptr<const Outcome> outcome, std::string title);

/// Reads a compared run from a file that `simulate --json` or `run --json` wrote. Errors: no JSON;
/// another version or kind of file; missing keys; an interval that ends before it begins.
Result<ComparedRun> read_result(const std::shared_ptr<const Source>& source, std::string title);

/// The closing sentences. They give the properties in which the runs are unlike, and the runs that
/// cannot run. They compare the fastest run with the first one (or, if the first is the fastest,
/// with the next): its gain in speed, the causes of the difference, and the cost in memory. With
/// more than two runs, they list all from the fastest to the slowest. Requires: at least two runs.
std::string verdict(const std::vector<ComparedRun>& runs,
                    const std::vector<RefusedRun>& refused = {});

}  // namespace plumbline
