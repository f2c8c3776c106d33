// The parts I and W of backwards that were given as one time, for orders that run them separately.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "models/profile/profile.h"
#include "sim/setup/training_setup.h"

namespace plumbline {

/// Gives each layer its I and W, if the setup's schedule has W. A layer that gives backward_input
/// and backward_weight keeps them. If a layer gives its backward as one time, I and W take half
/// each; of an odd number of ns, W takes the smaller half. A layer without parameters has no W. The
/// layers without parameters are known if some layer has parameters, or if the network is known.
/// Requires: one entry of `layers` for each layer of the model.
AssumedSplit split_backwards(const TrainingSetup& setup, std::vector<LayerCosts>& layers);

}  // namespace plumbline
