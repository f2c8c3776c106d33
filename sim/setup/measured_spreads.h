// The spread of each stage's op times, from the profile's measurements of its layers.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "models/profile/profile.h"
#include "sim/setup/training_setup.h"

namespace plumbline {

/// The relative standard deviation of each stage's ops. An op's time is the sum of its layers'
/// times, which are independent of each other. A layer's standard deviation comes from its
/// quartiles: their distance / 1.349, as for normal samples, at the nearest measured batch size. 0
/// where a layer has no quartiles. Requires: partition, schedule and rules of the setup.
std::vector<OpSpreads> measured_spreads(const TrainingSetup& setup);

}  // namespace plumbline
