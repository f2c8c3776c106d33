// A scenario executed for real: what was measured, in the same terms as a prediction.
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
  Statistics time_s;            ///< Of the clean iterations; of all where none was.
  std::size_t shown = 0;        ///< The iteration of `outcome`.
  /// The time of the shown iteration when it told its trace, where it was executed once more for
  /// that.
  std::optional<double> traced_s;
  std::size_t clean = 0;
  /// The iteration time of each round, of those with a clean iteration; of all where none has.
  std::vector<double> rounds_s;
  std::string backend;
  std::string device;
  unsigned cores = 1;
  std::vector<std::string> remarks;  ///< Of the profile beside these devices, and of the backend.

  /// From the release of an op, or of a part of one, to its begin in the shown iteration: the mean.
  double hand_over_per_op_s() const;
  /// The distance of the fastest and the slowest round, relative to the time of `outcome`.
  double range_of_rounds() const;
  /// What the time of `outcome` may be off by, as its rounds differ: half their range, or from four
  /// rounds on half the 95 % interval of their median. 0 for one round.
  double spread_of_rounds() const;
};

/// Resolves, lowers and runs. Errors: those of resolve_setup() and run_setup(), each at its key.
Result<RealRun> run_scenario(const Scenario& scenario, Backend& backend, const RunOptions& options);

/// Lowers and runs, with the overheads that the setup's rules set. Errors, without a mark: those of
/// lower() and assess(); a run that was given up (infeasible), with where every device stood.
Result<RealRun> run_setup(TrainingSetup setup, Backend& backend, const RunOptions& options);

/// Runs of one scenario as one: all their iterations, and the outcome of the round in the middle
/// (the lower of two), of those with a clean iteration. Requires: at least one.
RealRun together(std::vector<RealRun> rounds);

}  // namespace plumbline
