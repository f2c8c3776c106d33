// Stages cut into buckets: each bucket reduces its gradients and gathers its weights by itself.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "models/profile/profile.h"
#include "sim/setup/training_setup.h"

namespace plumbline {

/// Whether other devices hold the same parameters as the stage. These are its replicas and copies.
/// Where more than the optimizer is shared, the devices of its group count too.
bool is_shared(const TrainingSetup& setup, std::size_t stage);

/// Cuts those stages into buckets of whole layers with at least `min` bytes of gradients. The data
/// that groups send beside the passes are then no longer a part of the updates. Requires: the
/// setup's partition, and its costs, computed from `layers`.
void add_buckets(Bytes min, const std::vector<LayerCosts>& layers, TrainingSetup& setup);

}  // namespace plumbline
