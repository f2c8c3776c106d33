// What noise does to a run: the distribution of its time, from many sampled runs.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/prediction/outcome.h"
#include "sim/scenario/noise.h"

namespace plumbline {

/// Adds `uncertainty` to a prediction: as many runs as the scenario's noise says, in each of which
/// every F, B, I, W and U takes another time. Transfers keep theirs. The spread of a stage's op,
/// where it is measured, is that of its layers' sum: each layer's standard deviation from its
/// quartiles (their distance / 1.349, as for normal samples), the layers independent of each other.
/// Errors: a measured spread where the profile holds none.
Result<Outcome> with_uncertainty(const Scenario& scenario, Outcome outcome);

/// Where transfers share cards, what arrives at the very same instant shares them for ever; a run
/// whose ops differ by a millionth, or a nanosecond, may fall into another step, and be faster; and
/// each of several such runs into one of its own. Says so where up to eleven such runs are 1 % or
/// more apart, from the prediction or from each other; nothing for a prediction with noise, without
/// transfers that share, or of more than two million activities.
std::optional<std::string> lockstep_note(const Scenario& scenario, const Outcome& outcome);

/// The probability that a run of `a` takes less time per sample than one of `b`, over all pairs of
/// their samples; of equal ones the half counts. Requires: both have an uncertainty.
double probability_faster(const Outcome& a, const Outcome& b);

}  // namespace plumbline
