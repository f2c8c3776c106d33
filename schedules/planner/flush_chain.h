// What one iteration of a pipeline with a flush takes at least, put together from its end.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace plumbline {

/// One stage of such a pipeline, seen from one of its replicas; times in nanoseconds.
struct FlushStage {
  double forward = 0;        ///< Of one micro-batch.
  double backward = 0;       ///< Of one micro-batch.
  double reduce = 0;         ///< All-reduce, behind its last backward.
  double update = 0;         ///< Behind the all-reduces of all stages.
  std::uint32_t own = 1;     ///< Micro-batches of an iteration that it takes.
  std::uint32_t window = 1;  ///< How many of these it has in flight at most; >= 1.
  bool is_alone = true;      ///< Has no other replica.

  std::uint32_t windows() const { return (own + window - 1) / window; }
  /// Its own forwards and backwards.
  double work() const { return own * (forward + backward); }
};

/// The link in front of a stage; times in nanoseconds, each way.
struct FlushLink {
  double transfer = 0;  ///< Of one micro-batch that is alone, where it is fastest.
  double load = 0;      ///< For which all of an iteration hold what is shared by most of them.
};

/// The stages from one on to the end of the pipeline, in one iteration; nanoseconds. Each value is
/// the longest of chains of ops and transfers that wait for each other, so that no run is faster;
/// equal stages on free links take just as long under GPipe and 1F1B: (m + p - 1) (f + b).
struct FlushChain {
  double round_trip = 0;  ///< Of one micro-batch: from its forward on the first stage to its
                          ///< backward there.
  double span = 0;        ///< From the first forward of the first stage to its last backward.
  double reduced = 0;     ///< From that forward to the end of the last all-reduce of any stage.
  double update = 0;      ///< The longest of any stage: all begin behind that.
  /// No stage has a backward before its last forward, nor replicas, of which one might have its
  /// forwards behind it before the others.
  bool in_two = true;

  /// From the first forward to the end of the last update.
  double end() const { return reduced + update; }
  friend bool operator==(const FlushChain&, const FlushChain&) = default;
};

/// The same seen from the other side of a link. All transfers there hold it for as long as its
/// load, and the last one is followed by its round trip; where forwards and backwards are apart the
/// first gradient comes behind that.
FlushChain across(const FlushChain& chain, const FlushLink& link);

/// How long a stage waits at least for `round_trip`, which is that behind it: from its first
/// forward to its first backward only as many more forwards fill the time as its window takes, and
/// from its last forward to the end only as many backwards. All micro-batches of a single window
/// may be forward before the first is backward: then both are one wait.
double idle(const FlushStage& stage, double round_trip);

/// The chain with one more stage in front of `behind`, which is what this stage sees across its
/// link; of nothing for the last stage. The span is the longest of
/// - the stage's own work and how long it waits meanwhile;
/// - one micro-batch on its way there and back, and all that the stages behind do meanwhile;
/// - as many round trips as windows of micro-batches, since the first forward of each window waits
///   for the first backward of the one before.
FlushChain with_front(const FlushChain& behind, const FlushStage& stage);

}  // namespace plumbline
