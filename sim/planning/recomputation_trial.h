// Runs that differ in the numbers of recomputed layers alone.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "models/profile/profile.h"
#include "sim/prediction/iteration_clock.h"
#include "sim/prediction/outcome.h"
#include "sim/scenario/scenario.h"

namespace plumbline {

/// Tries numbers of recomputed layers. Ops and their order are the same with all numbers, unless
/// pairs overlap. So only costs and times are computed anew, and nothing is reported but what a
/// choice needs.
class RecomputationTrial {
 public:
  /// The result of one run.
  struct Run {
    double iteration_time_s = 0;
    std::vector<Bytes> peaks;  ///< One per slot.

    bool fits(const std::vector<Bytes>& memory) const;
  };

  /// `none`: the outcome of `scenario`, which recomputes no layer. Errors: costs whose sums do not
  /// fit into 64 bits.
  static Result<RecomputationTrial> of(Scenario scenario, const Outcome& none);

  /// Requires: one number per stage, not above its layers. Errors: those of predict_resolved().
  Result<Run> run(const std::vector<std::int64_t>& recomputed);

 private:
  RecomputationTrial(Scenario scenario, const Outcome& none, std::vector<LayerCosts> layers);

  Result<Run> run_all(const std::vector<std::int64_t>& recomputed);

  Scenario scenario_;
  TrainingSetup setup_;
  OpGraph graph_;
  IterationClock clock_;
  std::vector<LayerCosts> layers_;  ///< With the recompute of every layer.
};

}  // namespace plumbline
