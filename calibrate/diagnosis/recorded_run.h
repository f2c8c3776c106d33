// One training run, put together from what its ranks recorded: iterations, ops of each device in
// their order, on one clock.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "calibrate/recording/rank_recording.h"
#include "schedules/order/schedule.h"

namespace plumbline {

/// One op of one iteration.
struct RunOp {
  Op op;
  RecordedSpan work;
  Duration busy{};       ///< The part of its work in which something computed.
  bool in_pair = false;  ///< Its pair was recorded as one; its time is a share of that.
};

/// A transfer between two devices: what its ends recorded. On a CPU, a send may end when it is
/// posted.
struct RunTransfer {
  std::optional<RecordedSpan> sent, received;
  Bytes bytes;            ///< 0 = unknown.
  bool is_whole = false;  ///< `received` surely ended when the data was there.

  /// The time at which its data was there; nothing where no end tells.
  std::optional<SimTime> arrival() const;
  /// The time from which both of its ends were there, so that it could move; nothing where only one
  /// tells.
  std::optional<SimTime> moved_from() const;
};

/// One device of the pipeline.
struct RunDevice {
  std::size_t recording = 0;  ///< Index of its rank's recording.
  std::int64_t rank = 0;
  std::int64_t device = 0;                 ///< Of the devices of its rank.
  std::vector<std::uint32_t> stages;       ///< Ascending.
  Duration clock_ahead{};                  ///< Of device 0's clock; taken off its times.
  std::optional<Duration> clock_known_to;  ///< Plus or minus; nothing for device 0's own clock.
};

/// One iteration. Lists are by device.
struct RunIteration {
  std::int64_t number = 0;  ///< As the profiler counts steps, or from 0.
  std::int64_t pass = 0;    ///< Within its step, where a step has several.
  std::size_t place = 0;    ///< Among all iterations, those that were left out included.
  std::vector<std::vector<RunOp>> ops;
  std::vector<std::optional<RecordedSpan>> updates;
  std::map<Op, RunTransfer> transfers;  ///< By the op that needs the data.
  SimTime begin;                        ///< The begin of its first op.
  SimTime end;                          ///< The end of its last op or update.
  std::optional<Duration> period;       ///< Until the next iteration begins; nothing for the last.

  /// What counts as its time: until the next one begins, else until its own end.
  Duration time() const { return period.value_or(end - begin); }
};

/// A run: one copy of the pipeline. Invariants: there is a stage, a device and an iteration; every
/// iteration has every op of `lists`, in that order.
struct RecordedRun {
  std::uint32_t stages = 0;
  std::uint32_t micro_batches = 0;
  std::vector<RunDevice> devices;  ///< By their first stage.
  std::vector<RunIteration> iterations;
  OpLists lists;  ///< The ops of each device, in their order.
  /// By device: collectives in no op, ascending; those that overlap are one.
  std::vector<std::vector<RecordedSpan>> collectives;
  /// By device: sends as RankRecording has them, ascending by their ends.
  std::vector<std::vector<RecordedSpan>> sends;
  std::size_t copies = 1;            ///< Copies of the pipeline in the traces; this is one of them.
  std::vector<double> copy_times_s;  ///< The median time of an iteration of each copy.
  OpClock clock = OpClock::ranges;
  bool guessed = false;      ///< Nothing named the ops.
  std::size_t left_out = 0;  ///< Iterations that are not whole, or had another order.
  std::vector<std::string> notes;

  /// The device of each stage.
  std::vector<std::uint32_t> devices_of_stages;

  /// The device that has a stage. Requires: stage < stages.
  std::uint32_t device_of(std::uint32_t stage) const { return devices_of_stages[stage]; }
  /// The iterations whose time until the next one is known; all, if there is none.
  std::vector<std::size_t> timed() const;
};

/// The part of [begin, end) in which one of these spans runs. Requires: ascending, none overlaps
/// another one.
Duration covered(const std::vector<RecordedSpan>& spans, SimTime begin, SimTime end);

/// The part of [begin, end) in which a CPU waited for a send: until the last one of them that ended
/// then. Requires: ascending by their ends.
Duration waited_for(const std::vector<RecordedSpan>& sends, SimTime begin, SimTime end);

/// How traces are put together.
struct AssemblyOptions {
  std::uint32_t stages = 0;  ///< Where names do not tell the stage: how many there are; 0 = as many
                             ///< as there are devices.
  std::uint32_t copy = 0;    ///< Which copy of the pipeline.
  std::uint32_t skip = 0;    ///< First iterations to leave out.
};

/// The op whose output another op needs from another stage; nothing where it needs none.
std::optional<Op> producer_of(const Op& op, std::uint32_t stages, bool split);

/// Puts the recordings of all ranks together: which stage is where, iterations, clocks, transfers.
/// Errors: a rank or a trace twice; a rank that others send to, or a stage, without a trace; stages
/// that overlap, or have different numbers of traces; those of device_streams(); no iteration that
/// is whole; --copy or --skip beyond what there is; times that cannot be of one run. Requires: at
/// least one recording.
Result<RecordedRun> assemble(const std::vector<RankRecording>& recordings,
                             const AssemblyOptions& options);

}  // namespace plumbline
