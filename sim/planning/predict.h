// Scenario in, outcome out: what `plumbline simulate` does.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/planning/resolve.h"
#include "sim/prediction/predict_resolved.h"

namespace plumbline {

/// What a run of the scenario comes to: resolve(), then predict() of the setup. `as`: the partition
/// of another prediction, to be kept. Errors: those of resolve(); a run that does not fit into 64
/// bits.
Result<Outcome> predict(const Scenario& scenario, Evaluation evaluation = Evaluation::events,
                        const Partition* as = nullptr);

}  // namespace plumbline
