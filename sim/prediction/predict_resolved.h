// The whole way from a scenario that leaves nothing open to its outcome.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/prediction/predict_setup.h"
#include "sim/setup/resolve_setup.h"

namespace plumbline {

/// Predicts a scenario that leaves nothing open; predict() (sim/planning/predict.h) takes any
/// scenario. `as`, if given, is the partition. Requires: a partition that is not to be planned,
/// recomputation that is not to be fitted. Errors: those of resolve_setup(); a run that does not
/// fit into 64 bits.
Result<Outcome> predict_resolved(const Scenario& scenario,
                                 Evaluation evaluation = Evaluation::events,
                                 const Partition* as = nullptr);

}  // namespace plumbline
