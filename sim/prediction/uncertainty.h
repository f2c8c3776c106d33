// The effect of noise on a run: the distribution of its time, from many sampled runs.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/prediction/outcome.h"

namespace plumbline {

/// The iteration times of sampled runs. In each run, every F, B, I, W and U takes another time;
/// transfers keep theirs, unless links vary. `sampling` gives the spread of an op: the measured one
/// of its stage, else the same for all. A device that stands for a group is as slow as the slowest
/// of it.
Uncertainty sample_uncertainty(const NoiseSampling& sampling, const Outcome& outcome);

/// A note on runs in lockstep. Transfers that arrive at a shared card at the very same instant
/// share it for ever. A run whose ops differ by a millionth, or by a nanosecond, may find another
/// rhythm and be faster; each such run may find its own. The note says so if up to eleven such runs
/// are 1 % or more apart, from the prediction or from each other. Nothing for a prediction with
/// noise, without transfers that share cards, or with more than two million activities.
std::optional<std::string> lockstep_note(const Outcome& outcome);

/// The probability that a run of `a` takes less time per sample than one of `b`, over all pairs of
/// their sampled runs. Equal pairs count half. Requires: both have an uncertainty.
double probability_faster(const Outcome& a, const Outcome& b);

}  // namespace plumbline
