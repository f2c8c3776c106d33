// The smallest number of recomputed layers with which the memory suffices.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "sim/prediction/outcome.h"
#include "sim/scenario/scenario.h"

namespace plumbline {

/// The scenario, with `schedule.recompute_layers: fit` replaced by a number of layers for each
/// stage and a note; any other scenario is unchanged. The numbers are those with the least sum with
/// which all devices fit, by simulated peaks. Among several such, they are the fastest, as far as
/// there is time to simulate them. All smaller sums are excluded by lower bounds of the memory
/// (MemoryFloor) or by simulation. If there are too many to exclude, the note calls the numbers the
/// smallest that were found. If nothing fits, all layers are recomputed. AdaPipe (Sun et al. 2024)
/// also chooses stage by stage: under 1F1B an early stage holds more micro-batches than a late one.
/// Requires: a plan that is resolved. Errors: no memory is given; those of predict_resolved().
Result<Scenario> fit_recomputation(Scenario scenario);

/// The scenario that fit_recomputation() returns.
struct FittedRecomputation {
  Scenario scenario;
  /// Its outcome by Evaluation::fastest, if the number was to fit, no layer has to be recomputed
  /// and there is no noise.
  std::optional<Outcome> outcome;
};

/// fit_recomputation() with the outcome, if that is known.
Result<FittedRecomputation> fit_and_predict(Scenario scenario);

}  // namespace plumbline
