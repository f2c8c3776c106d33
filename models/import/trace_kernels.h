// The GPU work of each range of a trace: kernels joined to their launches.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "models/import/trace_events.h"

namespace plumbline {

/// The work of GPUs for one range on the CPU. Times are in microseconds.
struct RangeWork {
  std::size_t kernels = 0;
  double start = 0;  ///< Start of the first kernel.
  double end = 0;    ///< End of the last kernel.
  double busy = 0;   ///< Time in which at least one kernel ran.
};

/// The work of every range, and counts of the kernels that were left out.
struct TraceWork {
  std::vector<RangeWork> of_range;  ///< Parallel to TraceEvents::ranges; empty for ranges on GPUs.
  std::size_t kernels = 0;          ///< The number in all ranges together.
  std::size_t of_others = 0;        ///< Launched beside ranges by threads other than autograd's.
  std::size_t ambiguous = 0;        ///< Launched by autograd while several backwards waited.
  std::size_t without_launch = 0;   ///< Kernels whose correlation id no call in the trace has.
  std::size_t sends_and_receives = 0;  ///< In ranges; they are not part of a layer's work.
  std::size_t collectives = 0;         ///< NCCL kernels in ranges that are certainly collectives.
  std::size_t maybe_sends = 0;         ///< Kernels of PeerWork::unknown; they count as work.
};

/// Assigns each kernel to the range in which it was launched, by its correlation id: an open range
/// of the launching thread. Where that thread has none open and belongs to autograd, it is the
/// backward of another thread that waits for autograd. The trace may not say which threads are
/// autograd's. Then they are the threads without ranges that launch within backwards, and never
/// while only other ranges are open. Work that other threads launch meanwhile (a loader's copies)
/// belongs to no range. Requires: ranges of one thread overlap by no more than rounding.
TraceWork join_kernels(TraceEvents& events, std::set<std::int64_t> autograd_threads);

}  // namespace plumbline
