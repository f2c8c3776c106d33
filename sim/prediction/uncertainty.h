// What noise does to a run: the distribution of its time, from many sampled runs.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/prediction/outcome.h"

namespace plumbline {

/// The iteration times of sampled runs, in each of which every F, B, I, W and U takes another time.
/// Transfers keep theirs. An op scatters as `sampling` says: as its stage was measured, else all
/// alike.
Uncertainty sample_uncertainty(const NoiseSampling& sampling, const Outcome& outcome);

/// Where transfers share cards, what arrives at the very same instant shares them for ever; a run
/// whose ops differ by a millionth, or a nanosecond, may fall into another step, and be faster; and
/// each of several such runs into one of its own. Says so where up to eleven such runs are 1 % or
/// more apart, from the prediction or from each other; nothing for a prediction with noise, without
/// transfers that share, or of more than two million activities.
std::optional<std::string> lockstep_note(const Outcome& outcome);

/// The probability that a run of `a` takes less time per sample than one of `b`, over all pairs of
/// their samples; of equal ones the half counts. Requires: both have an uncertainty.
double probability_faster(const Outcome& a, const Outcome& b);

}  // namespace plumbline
