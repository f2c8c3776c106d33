// Runs side by side: what differs, and why one is faster.
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

/// Dotted keys of a scenario, and their values as they are written.
using WrittenKeys = std::vector<std::pair<std::string, std::string>>;

/// What a comparison knows of a run: of a scenario that was just predicted, or of a result file.
struct ComparedRun {
  std::string title;
  std::string schedule;
  std::int64_t stages = 1;
  std::int64_t micro_batches = 1;
  std::int64_t slices = 1;  ///< Of each micro-batch.
  double iteration_time_s = 0;
  std::optional<double> throughput_samples_per_s;
  std::optional<double> model_flops_utilization;
  double bubble_fraction = 0;  ///< Of the steady state, where there is one.
  double communication_stall_fraction = 0;
  std::optional<double> sent_in_groups_fraction;
  /// What an iteration is for a device on average; busy and idle add up to the iteration time. Of
  /// an asynchronous run all idle time of the steady state counts as dependency.
  double busy_s = 0;
  std::array<double, kIdleCauseCount> idle_s{};  ///< By cause.
  std::vector<ComparedDevice> devices;
  std::int64_t devices_used = 1;               ///< All of a group counted.
  std::optional<std::int64_t> devices_in_all;  ///< Of the cluster, all of a group counted.
  std::optional<std::int64_t> copies;          ///< Of the pipeline.
  std::optional<std::int64_t> layers;
  std::optional<std::int64_t>
      parameters_bytes;  ///< Of the model; not of parts that a group shares.
  std::optional<double> model_flops_per_sample;
  bool flushes = true;  ///< All devices wait for the mini-batch to end before each update.
  std::optional<bool> fits;
  std::vector<std::string> estimated;
  std::vector<std::string> notes;
  WrittenKeys keys;  ///< Of its scenario under the overrides; empty = not known.
  std::shared_ptr<const Outcome> outcome;  ///< Where it was predicted here.

  std::int64_t peak_memory_bytes() const;
  /// Samples a second where they are known, else iterations a second.
  double speed() const;
  /// Samples a second for each device; nothing where they are not known.
  std::optional<double> throughput_per_device() const;
  /// In an iteration; 1 where they are not known.
  double samples() const;
};

/// A run that is missing from a comparison, as it cannot run at all.
struct RefusedRun {
  std::string title;
  std::string reason;
};

/// Of a prediction. The outcome is kept for its sampled runs.
ComparedRun compared(std::shared_ptr<const Outcome> outcome, std::string title);

/// Of a file that `simulate --json` or `run --json` wrote. Errors: no JSON, of another version or
/// kind, what it lacks.
Result<ComparedRun> read_result(const std::shared_ptr<const Source>& source, std::string title);

/// The closing sentence: what is not alike and what cannot run; the fastest run against the first
/// one (or, where that is the fastest, against the next), how much faster it is, what of the
/// difference comes from where, and what it costs in memory; of more than two runs all, from the
/// fastest to the slowest. Requires: at least two runs.
std::string verdict(const std::vector<ComparedRun>& runs,
                    const std::vector<RefusedRun>& refused = {});

/// The table of `compare`: a column a run, differences from the first one; the keys in which the
/// runs differ; their notes; the sentence.
std::string to_table(const std::vector<ComparedRun>& runs,
                     const std::vector<RefusedRun>& refused = {});

/// The JSON of `compare --json`. Ends in a newline.
std::string to_json(const std::vector<ComparedRun>& runs, const std::string& version,
                    const std::vector<RefusedRun>& refused = {});

}  // namespace plumbline
