// Scenario in, outcome out: what `plumbline simulate` does.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/prediction/predict_resolved.h"

namespace plumbline {

/// What a run of the scenario comes to. What the scenario leaves open is decided first, with a note
/// of each choice: see resolve_plan(). `as`: the partition of another prediction, to be kept.
/// Errors: those of resolve_plan() and of predict_resolved().
Result<Outcome> predict(const Scenario& scenario, Evaluation evaluation = Evaluation::events,
                        const Partition* as = nullptr);

}  // namespace plumbline
