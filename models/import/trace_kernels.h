// Which work of a GPU belongs to which range of a trace: kernels joined to their launches.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "models/import/trace_events.h"

namespace plumbline {

/// What GPUs did for one range on the CPU. Times in microseconds.
struct RangeWork {
  std::size_t kernels = 0;
  double start = 0;  ///< Of the first kernel.
  double end = 0;    ///< Of the last one.
  double busy = 0;   ///< During which at least one of them ran.
};

/// The work of every range, and what was left out of it.
struct TraceWork {
  std::vector<RangeWork> of_range;  ///< As in TraceEvents::ranges; empty for ranges on GPUs.
  std::size_t kernels = 0;          ///< Of all ranges together.
  std::size_t of_others = 0;        ///< Launched beside ranges by threads that are not of autograd.
  std::size_t ambiguous = 0;        ///< Launched by autograd while several backwards waited.
  std::size_t without_launch = 0;   ///< The trace has no call with their correlation id.
  std::size_t sends_and_receives = 0;  ///< Of ranges; they are no part of a layer's work.
  std::size_t collectives = 0;  ///< Kernels of NCCL in ranges that are none of the two others.
  std::size_t maybe_sends = 0;  ///< PeerWork::unknown; they count.
};

/// A kernel belongs to the range in which it was launched, by its correlation id: a range of the
/// launching thread; where that has none open and is a thread of autograd, the backward of another
/// thread that waits for it. Where the trace does not say which threads are autograd's, they are
/// those without ranges that launch within backwards and never within another range alone; what
/// other threads launch meanwhile (a loader's copies) is of no range. Requires: ranges of one
/// thread do not overlap by more than rounding.
TraceWork join_kernels(TraceEvents& events, std::set<std::int64_t> autograd_threads);

}  // namespace plumbline
