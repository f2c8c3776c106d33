// The iteration time, computed from the ends of a few nodes.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/prediction/outcome.h"

namespace plumbline {

/// The ends of nodes that time a run: the end of the run, or, for an asynchronous run, the ends of
/// two backwards of stage 0 that bound the steady state. It works for every run of the outcome's
/// graph. A run without a flush is timed by its whole trace.
class IterationClock {
 public:
  explicit IterationClock(const Outcome& outcome);

  /// The nodes whose ends the clock needs besides the end of the run: none or two.
  const std::vector<std::uint32_t>& watched() const { return watched_; }

  /// The measured length, in nanoseconds. The run ends at row[0]; its watched nodes end at
  /// row[stride] and row[2 * stride]. Requires: a run with a flush, or an asynchronous one.
  std::int64_t length(const std::int64_t* row, std::size_t stride) const {
    return watched_.empty() ? row[0] : row[2 * stride] - row[stride];
  }
  /// The same for a trace of the outcome's graph, with these costs; of a run without a flush, its
  /// period.
  std::int64_t length(const OpGraph& graph, const Trace& trace) const;

  /// The iteration time of a run of this length. For a change of the length, the change of the
  /// iteration time.
  double iteration_time_s(double length) const;

 private:
  std::vector<std::uint32_t> watched_;
  std::uint32_t micro_batches_ = 1;  ///< Per iteration; the length covers `timed_`.
  std::uint32_t timed_ = 1;          ///< Micro-batches, or for a synchronous run mini-batches.
};

}  // namespace plumbline
