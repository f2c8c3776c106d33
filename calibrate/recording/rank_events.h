// The events of one rank's trace that tell of ops: ranges, launches, kernels, calls on the CPU.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/diagnostic.h"
#include "calibrate/recording/op_names.h"
#include "calibrate/recording/rank_recording.h"
#include "models/import/torch_events.h"

namespace plumbline {

/// A range with a known name, on the CPU.
struct TitledRange {
  RangeTitle title;
  RecordedSpan span;
  std::int64_t thread = 0;
};

/// A call on the CPU that started work of a GPU.
struct GpuLaunch {
  std::int64_t correlation = 0;
  SimTime at;
  std::int64_t thread = 0;
};

/// A span on a thread of the CPU.
struct ThreadSpan {
  RecordedSpan span;
  std::int64_t thread = 0;
};

/// What a kernel does for other ranks.
enum class KernelUse : std::uint8_t { work, collective, send, receive, send_or_receive };

/// Work of a GPU.
struct GpuKernel {
  std::int64_t correlation = 0;
  RecordedSpan span;
  std::int32_t device = 0;
  KernelUse use = KernelUse::work;
  std::int32_t peer = -1;  ///< The other rank of a send or receive; -1 = unknown.
  std::int64_t bytes = 0;  ///< What a send or receive moves; 0 = unknown.
};

/// What a call on the CPU does.
enum class CallUse : std::uint8_t {
  work,
  send,      ///< It posts a send.
  sent,      ///< Gloo's own range around a send: it ends when the other rank has taken it.
  receive,   ///< It posts a receive.
  received,  ///< Gloo's own range around a receive: it ends when the data is there.
  collective,
};

/// A call on the CPU that computes or communicates.
struct CpuCall {
  RecordedSpan span;
  std::int64_t thread = 0;
  CallUse use = CallUse::work;
};

/// All of these of one trace.
struct RankEvents {
  TorchTraceHeader header;
  std::vector<TitledRange> ranges;
  std::vector<GpuLaunch> launches;
  std::vector<GpuKernel> kernels;
  std::vector<CpuCall> calls;
  std::vector<ThreadSpan> autograd;  ///< Functions that autograd evaluated.
  std::unordered_set<std::int64_t> autograd_threads;
  std::size_t without_time = 0;  ///< Kernels and calls without a time that makes sense.
  std::map<std::string, std::size_t> other_ranges;  ///< Names of unknown ranges, and how often.
};

/// Reads them. Errors: those of read_torch_events; a known range without a length.
Result<RankEvents> read_rank_events(std::istream& text, const std::shared_ptr<const Source>& source,
                                    const OpNames& names);

}  // namespace plumbline
