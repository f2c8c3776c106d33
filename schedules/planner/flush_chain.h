// A lower bound for one iteration of a pipeline with a flush, built up from the end of the
// pipeline.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace plumbline {

/// One stage of such a pipeline, as one of its replicas sees it; times in nanoseconds.
struct FlushStage {
  double forward = 0;        ///< For one micro-batch.
  double backward = 0;       ///< For one micro-batch.
  double reduce = 0;         ///< All-reduce, after its last backward.
  double update = 0;         ///< Update, after the all-reduces of all stages.
  std::uint32_t own = 1;     ///< Its micro-batches in an iteration.
  std::uint32_t window = 1;  ///< The most of these in flight; >= 1.
  bool is_alone = true;      ///< The stage has no other replica.

  std::uint32_t windows() const { return (own + window - 1) / window; }
  /// The time of its own forwards and backwards.
  double work() const { return own * (forward + backward); }
};

/// The link in front of a stage; times in nanoseconds, each way.
struct FlushLink {
  double transfer = 0;  ///< For one micro-batch alone, on the fastest way.
  double load = 0;      ///< For all of an iteration, on the busiest link or card.
};

/// The stages from one stage to the end of the pipeline, in one iteration; nanoseconds. Each value
/// is the longest chain of ops and transfers that wait for each other, so no run is faster. Equal
/// stages on free links reach the bound under GPipe and 1F1B: (m + p - 1) (f + b).
struct FlushChain {
  double round_trip = 0;  ///< From a micro-batch's first forward to its last backward.
  double span = 0;        ///< From the first forward of the first stage to its last backward.
  double reduced = 0;     ///< From that forward to the end of the last all-reduce.
  double update = 0;      ///< The longest update: all begin after that all-reduce.
  /// Whether forwards and backwards are apart: no stage has a backward before its last forward, and
  /// no stage has replicas, as one replica might finish its forwards before the others.
  bool in_two = true;

  /// From the first forward to the end of the last update.
  double end() const { return reduced + update; }
  friend bool operator==(const FlushChain&, const FlushChain&) = default;
};

/// The chain, as seen from the other side of a link. All transfers hold the link for its load, and
/// a round trip follows the last one. If forwards and backwards are apart, the first gradient comes
/// after that.
FlushChain across(const FlushChain& chain, const FlushLink& link);

/// A lower bound for the idle time of a stage. `round_trip` is that of the stages behind it. From
/// its first forward to its first backward, only the other forwards of its window fill the time.
/// From its last forward to the end, only as many backwards do. In a single window all forwards may
/// come before the first backward: then both are one wait.
double idle(const FlushStage& stage, double round_trip);

/// The chain with one more stage in front. `behind` is the chain as this stage sees it across its
/// link; empty for the last stage. The span is the longest of
/// - the stage's own work plus its idle time;
/// - one micro-batch's forward and backward here, plus the span of the stages behind;
/// - one round trip per window of micro-batches, since the first forward of each window waits for
///   the first backward of the window before.
FlushChain with_front(const FlushChain& behind, const FlushStage& stage);

}  // namespace plumbline
