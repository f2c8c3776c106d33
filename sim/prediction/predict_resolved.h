// From a scenario to a prediction: the tool's main path, a list of passes.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/prediction/outcome.h"

namespace plumbline {

/// The run of a pipeline: from here on the order is fixed. With `first_copy_only`, of its first
/// copy alone. Errors: those of lower().
Result<OpGraph> lower_pipeline(const Scenario& scenario, const Pipeline& pipeline,
                               bool first_copy_only = false);

/// How a run is evaluated. Both give the same times to the tick.
enum class Evaluation {
  events,  ///< By the event engine, all of it.
  /// As a longest path where no rates change under way, else by the event engine; of copies that
  /// are alike the first one for all of them: its graph `copies_represented` them.
  fastest,
};

/// Predicts a scenario that leaves nothing open; predict() (sim/planning/predict.h) takes any. With
/// `as`, a run of this partition. Requires: a partition that is not to be planned, recomputation
/// that is not to be fitted. Errors: those of plan_pipeline; a run that does
/// not fit into 64 bits.
Result<Outcome> predict_resolved(const Scenario& scenario,
                                 Evaluation evaluation = Evaluation::events,
                                 const Partition* as = nullptr);

}  // namespace plumbline
