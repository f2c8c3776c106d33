// What the profiler of one rank recorded of a training run: ops, transfers, collectives, updates.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"
#include "calibrate/recording/op_names.h"

namespace plumbline {

/// A time span on the clock of one rank.
struct RecordedSpan {
  SimTime begin, end;

  Duration length() const { return end - begin; }
  bool holds(SimTime at) const { return at >= begin && at < end; }
};

/// The same time as spans of which none overlaps another one, ascending.
std::vector<RecordedSpan> joined(std::vector<RecordedSpan> spans);

/// Where the times of ops come from.
enum class OpClock : std::uint8_t {
  kernels,  ///< The kernels that were launched within an op's range.
  work,     ///< On a CPU: what was computed within it, from the first to the last call.
  ranges,   ///< The ranges themselves.
};

/// One op. Its time is that of its work: a wait for its input at its begin is not part of it.
struct RecordedOp {
  NamedOp op;
  std::optional<NamedOp> partner;  ///< The other op of an overlapped pair, which has no entry.
  RecordedSpan work;
  Duration busy{};          ///< The part of it in which something computed.
  SimTime issued;           ///< The begin of its range, on the CPU.
  std::int64_t device = 0;  ///< Of the devices of this rank.
};

/// One end of a transfer. On a GPU, the kernel of a send or receive: it waits for its other end,
/// then it moves.
struct RecordedTransfer {
  bool sends = false;
  std::optional<std::int64_t> peer;  ///< The other rank.
  std::optional<NamedOp> op;         ///< What made the data (send), or needs it (receive).
  RecordedSpan span;
  Bytes bytes;  ///< 0 = unknown.
  /// Whether a receive surely ended when its data was there; a range around it may only post it.
  bool is_whole = false;
};

/// One optimizer's step.
struct RecordedUpdate {
  RecordedSpan work;
  SimTime issued;
  std::int64_t device = 0;
};

/// One training step, as the profiler counts it, on the CPU.
struct RecordedStep {
  std::int64_t number = 0;
  RecordedSpan span;
};

/// All that is kept of one trace. Lists are ascending by `issued` or by their begin.
struct RankRecording {
  std::string file;
  std::int64_t rank = 0;
  bool guessed = false;  ///< Nothing named its ops: they were told from what launched their work.
  bool rank_known = false;  ///< From the trace itself or its name; else the place among the files.
  OpClock clock = OpClock::ranges;
  std::vector<RecordedOp> ops;
  std::vector<RecordedTransfer> transfers;
  std::vector<RecordedSpan> collectives;  ///< Those that are no part of an op.
  std::vector<RecordedSpan> sends;  ///< On a CPU: from a send until the other rank had taken it.
  std::vector<RecordedUpdate> updates;
  std::vector<RecordedStep> steps;
  std::size_t events = 0;
  std::set<int> fitting;           ///< The own templates that some range fits, by their places.
  bool has_peers = false;          ///< Whether anything was sent or received.
  std::string other_ranges;        ///< A sentence on ranges whose names are not known; "" = none.
  std::vector<std::string> notes;  ///< Sentences about what was left out.
};

/// Reads the trace of one rank: plain, or compressed with gzip. Memory grows with its launches,
/// kernels and calls on the CPU (32 to 80 bytes each) while it is read, and with its ops
/// afterwards. Errors: those of read_torch_events and GzipFile; no range of an op, with the names
/// that there are.
Result<RankRecording> read_recording(const std::string& path, const OpNames& names);

/// The same for a text in memory.
Result<RankRecording> parse_recording(std::istream& text,
                                      const std::shared_ptr<const Source>& source,
                                      const OpNames& names);

}  // namespace plumbline
