// The work of each range: kernels joined to the range in which they were launched, or calls on the
// CPU.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "calibrate/recording/rank_events.h"

namespace plumbline {

/// What was done for one range.
struct RangeWork {
  std::optional<RecordedSpan> work;  ///< From the first to the last computation; nothing = none.
  Duration busy{};                   ///< The time within it in which at least one computed.
  std::int64_t device = 0;           ///< The device that computed longest.
};

/// The work of all ranges, and what belongs to none.
struct RangesWork {
  std::vector<RangeWork> of_range;          ///< Parallel to the ranges.
  std::vector<RecordedTransfer> transfers;  ///< `op` is that of the range around it, if any.
  std::vector<RecordedSpan> collectives;    ///< In no op.
  std::vector<RecordedSpan> sends;          ///< On a CPU: see RankRecording::sends.
  Duration outside{};                       ///< Work of GPUs in no range.
  std::size_t untold = 0;      ///< Sends or receives of NCCL that do not tell what they are.
  std::size_t unlaunched = 0;  ///< Kernels whose call the trace does not have.
};

/// Takes ranges of ops out that lie within another op's on the same thread: a forward within a
/// backward is its recomputation. Ranges are ascending by their begin afterwards. Returns how many
/// were taken out.
std::size_t leave_out_inner_ops(std::vector<TitledRange>& ranges);

/// Joins kernels to ranges: a kernel belongs to the range that is open on the thread that launched
/// it. If that thread is autograd's and has none open, to the backward that another thread has open
/// then. A send or receive is no work of an op. A collective within an op is. Requires: ranges that
/// are ascending by their begin.
RangesWork work_on_gpus(const RankEvents& events);

/// The calls on the CPU within each range, on its thread. Sends, receives and collectives are no
/// work of an op. Requires: ranges that are ascending by their begin.
RangesWork work_on_cpu(const RankEvents& events);

}  // namespace plumbline
