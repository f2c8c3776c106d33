// From a scenario to a prediction: the tool's main path, a list of passes.
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/outcome.h"

namespace plumbline {

/// The run of a pipeline: from here on the order is fixed. Errors: those of lower().
Result<OpGraph> lower_pipeline(const Scenario& scenario, const Pipeline& pipeline);

/// How an op graph is evaluated. Both give the same trace to the tick.
enum class Evaluation {
  events,   ///< By the event engine, always.
  fastest,  ///< As a longest path where no rates change under way, else by the event engine.
};

/// Predicts; with `as`, a run of this partition. Errors: those of plan_pipeline; a run that does
/// not fit into 64 bits.
Result<Outcome> predict(const Scenario& scenario, Evaluation evaluation = Evaluation::events,
                        const Partition* as = nullptr);

}  // namespace plumbline
