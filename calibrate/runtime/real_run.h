// A scenario executed for real, with its measurements in the same terms as a prediction.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/statistics.h"
#include "calibrate/runtime/backend.h"
#include "calibrate/runtime/runner.h"
#include "sim/prediction/outcome.h"
#include "sim/scenario/scenario.h"
#include "sim/setup/training_setup.h"

namespace plumbline {

struct RealRun {
  /// The measured iteration whose time is the median of the clean ones (the lower of two): its
  /// trace, its metrics, its memory. Where none was clean, the median of all.
  Outcome outcome;
  std::vector<MeasuredIteration> iterations;
  std::vector<double> times_s;  ///< The time of a mini-batch in each iteration.
  Statistics time_s;            ///< Over the clean iterations; over all where none was.
  std::size_t shown = 0;        ///< The iteration of `outcome`.
  /// The time of the shown iteration with its trace recorded, where it was executed a second time
  /// to record it.
  std::optional<double> traced_s;
  std::size_t clean = 0;
  /// Whether memory was measured; if not, that of `outcome` is what the rules say.
  bool knows_memory = true;
  /// The iteration time of each round that has a clean iteration; of all rounds where none has.
  std::vector<double> rounds_s;
  std::string backend;
  std::string device;
  unsigned cores = 1;                ///< 0 = unknown.
  std::vector<std::string> remarks;  ///< On the profile against these devices, and by the backend.

  /// The mean time from the release of an op (or of a part of one) to its begin, in the shown
  /// iteration.
  double hand_over_per_op_s() const;
  /// The distance of the fastest and the slowest round, relative to the time of `outcome`.
  double range_of_rounds() const;
  /// The uncertainty of the time of `outcome` from the differences between rounds. It is half the
  /// range of the rounds, or with four or more rounds half the 95 % interval of their median. 0 for
  /// one round.
  double spread_of_rounds() const;
};

/// Resolves, lowers and runs. Errors: those of resolve_setup() and run_setup(), each at its key;
/// training.flush: none, as real runs flush.
Result<RealRun> run_scenario(const Scenario& scenario, Backend& backend, const RunOptions& options);

/// Lowers and runs, with the overheads that the setup's rules set. Errors, without a mark: those of
/// lower() and assess(); a run that was given up (infeasible), with where every device stood.
Result<RealRun> run_setup(TrainingSetup setup, Backend& backend, const RunOptions& options);

/// Merges the runs of one scenario: all their iterations, and the outcome of the middle round (the
/// lower of two) among those with a clean iteration. Requires: at least one.
RealRun together(std::vector<RealRun> rounds);

}  // namespace plumbline
