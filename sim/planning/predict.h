// Scenario in, outcome out: what `plumbline simulate` does.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/planning/resolve.h"
#include "sim/prediction/predict_resolved.h"

namespace plumbline {

/// The outcome of a run of the scenario: resolve(), then predict() of the setup. `as`, if given, is
/// the partition of another prediction, to be kept. Errors: those of resolve(); a run that does not
/// fit into 64 bits.
Result<Outcome> predict(const Scenario& scenario, Evaluation evaluation = Evaluation::events,
                        const Partition* as = nullptr);

/// A scenario that leaves nothing open, and its outcome.
struct SettledOutcome {
  Scenario scenario;
  Outcome outcome;
};

/// resolve_plan() and a prediction by Evaluation::fastest in one. Where recomputation is to fit and
/// no layer has to be recomputed, the run that showed it is the prediction. Errors: those of
/// predict().
Result<SettledOutcome> settle_and_predict(Scenario scenario);

}  // namespace plumbline
