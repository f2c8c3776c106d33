// Which ranges of a trace lie within others, on the same thread or on one of autograd's.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "models/import/trace_events.h"

namespace plumbline {

/// What was found of ranges within ranges.
struct TraceNesting {
  std::size_t recomputed = 0;  ///< Forwards within a backward, which left_out() has taken away.
  /// Two ranges of layers of which the first lies within the second: its time would count twice.
  std::vector<std::pair<TraceRange, TraceRange>> twice;
  /// The threads that autograd works on: those on which it evaluated functions, and those all of
  /// whose ranges lie within backwards of other threads.
  std::set<std::int64_t> autograd_threads;
};

/// Takes the forwards within a backward out of `events.ranges`, with their ranges on GPUs:
/// activations that are recomputed are part of that backward. A backward that waits for autograd's
/// threads holds what they do meanwhile. At most `max` pairs are returned in `twice`, each pair of
/// names once.
TraceNesting leave_out_recomputation(TraceEvents& events, std::size_t max);

}  // namespace plumbline
