// The ranges of a trace that lie within others, on the same thread or on autograd's threads.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "models/import/trace_events.h"

namespace plumbline {

/// The ranges found within other ranges.
struct TraceNesting {
  std::size_t recomputed = 0;  ///< Forwards within a backward, which have been taken out.
  /// Pairs of ranges of layers, the first within the second: its time would count twice.
  std::vector<std::pair<TraceRange, TraceRange>> twice;
  /// The threads that autograd works on: those on which it evaluated functions, and those whose
  /// ranges all lie within backwards of other threads.
  std::set<std::int64_t> autograd_threads;
};

/// Takes the forwards within a backward out of `events.ranges`, with their ranges on GPUs:
/// recomputed activations are part of that backward. A backward that waits for autograd's threads
/// contains their work in that time. `twice` returns at most `max` pairs, and each pair of names
/// once.
TraceNesting leave_out_recomputation(TraceEvents& events, std::size_t max);

}  // namespace plumbline
