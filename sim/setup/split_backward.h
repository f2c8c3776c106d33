// The two parts of backwards that were given as one time, for orders that run them apart.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "models/profile/profile.h"
#include "sim/setup/training_setup.h"

namespace plumbline {

/// Gives each layer the I and W that the setup's schedule runs, where it has W: a layer that gives
/// backward_input and backward_weight keeps them; of one that gives its backward as one time each
/// takes half, W the smaller half of an odd number of ns. A layer without parameters has no W,
/// where it is known which these are: some layer has parameters, or the network is known.
/// Requires: one entry of `layers` for each layer of the model.
AssumedSplit split_backwards(const TrainingSetup& setup, std::vector<LayerCosts>& layers);

}  // namespace plumbline
