// Reading the iteration time off the ends of a few nodes.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/prediction/outcome.h"

namespace plumbline {

/// What a run is timed by: its end, and in an asynchronous run the ends of two backwards of stage 0
/// that bound the steady state. It holds for every run of the outcome's graph.
class IterationClock {
 public:
  explicit IterationClock(const Outcome& outcome);

  /// The nodes whose ends it needs besides the end of the run; none or two.
  const std::vector<std::uint32_t>& watched() const { return watched_; }

  /// What it times, in nanoseconds, of a run that ends at row[0] and whose watched nodes end at
  /// row[stride] and row[2 * stride].
  std::int64_t length(const std::int64_t* row, std::size_t stride) const {
    return watched_.empty() ? row[0] : row[2 * stride] - row[stride];
  }
  /// The same of a trace.
  std::int64_t length(const Trace& trace) const;

  /// The iteration time of a run of this length, or what a change of the length changes it by.
  double iteration_time_s(double length) const;

 private:
  std::vector<std::uint32_t> watched_;
  std::uint32_t micro_batches_ = 1;  ///< Of an iteration; in the length there are `timed_`.
  std::uint32_t timed_ = 1;          ///< Micro-batches, or mini-batches of a synchronous run.
};

}  // namespace plumbline
