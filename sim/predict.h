// From a scenario to a prediction: the tool's main path, a list of passes.
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/outcome.h"

namespace plumbline {

/// The run of a pipeline: from here on the order is fixed. Errors: those of lower().
Result<OpGraph> lower_pipeline(const Scenario& scenario, const Pipeline& pipeline);

/// Predicts. Errors: those of plan_pipeline; a run that does not fit into 64 bits.
Result<Outcome> predict(const Scenario& scenario);

}  // namespace plumbline
