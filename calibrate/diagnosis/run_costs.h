// What the ops, transfers and updates of a recorded run took, over all its iterations.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/statistics.h"
#include "calibrate/diagnosis/recorded_run.h"

namespace plumbline {

/// The times of one kind of op of one stage.
struct OpCosts {
  /// The median over iterations of the mean of one: sums of it give an iteration, and a disturbed
  /// iteration does not count.
  Duration time{};
  Statistics seconds;     ///< Over all ops of all iterations.
  double busy_share = 1;  ///< Of that time, the share in which something computed.
  Op slowest;
  /// The least and the most that one micro-batch takes, by the median over iterations, and which
  /// these are.
  Duration least{}, most{};
  std::uint32_t least_of = 0, most_of = 0;
  std::int64_t slowest_in = 0;  ///< The number of its iteration.
};

/// The transfers from one device to another.
struct LinkCosts {
  std::uint32_t from = 0, to = 0;
  std::size_t transfers = 0;
  /// From the end of the op that made the data until it was there, where the receiver waited for
  /// it; from there until the op that needs it began, where nothing tells the arrival. Nothing
  /// where no receiver waited. The mean without the lowest and the highest tenth: a few that take
  /// long count.
  std::optional<Duration> latency;
  std::optional<Duration> moving;   ///< While both ends were there; median.
  std::optional<Duration> waiting;  ///< Of the receiver, before; median.
  Bytes bytes;                      ///< Median; 0 = unknown.
  std::size_t waits = 0;            ///< How often the receiver waited for the data.
};

/// All costs of a run.
struct RunCosts {
  std::map<std::pair<std::uint32_t, OpKind>, OpCosts> ops;  ///< By stage and kind.
  std::vector<LinkCosts> links;
  /// By device, from the end of its last op to the end of its update: the optimizer's step, and
  /// all-reduces of gradients before it. Median; 0 = no update was recorded.
  std::vector<Duration> updates;
  /// From the end of an op to the begin of the next one on a device, where all that it needs had
  /// been there: the mean without the lowest and the highest tenth.
  Duration between_ops{};
  /// The time from the end of the longest device's part of an iteration until the next one begins;
  /// median.
  Duration between_iterations{};
  Statistics iteration_s;

  /// Null where the stage has no such op.
  const OpCosts* find(std::uint32_t stage, OpKind kind) const;
  /// The mean of `latency` over all waits.
  std::optional<Duration> latency() const;
};

/// What is known of the data of another device that an op needs.
struct OpInput {
  const RunOp* producer = nullptr;  ///< Of another device; null = needs none.
  std::optional<SimTime> arrival;   ///< Recorded; between the producer's end and the op's begin.
};

/// The inputs of the ops of an iteration. The run and the iteration must outlive it.
class OpInputs {
 public:
  OpInputs(const RecordedRun& run, const RunIteration& iteration);

  OpInput of(const RunOp& op) const;

 private:
  const RecordedRun& run_;
  const RunIteration& iteration_;
  std::map<Op, const RunOp*> ops_;
};

/// Over all iterations of a run.
RunCosts costs_of(const RecordedRun& run);

}  // namespace plumbline
