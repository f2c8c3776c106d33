// Stages in pieces whose gradients are reduced, and whose weights are gathered, by themselves.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "models/profile/profile.h"
#include "sim/setup/training_setup.h"

namespace plumbline {

/// Whether other devices hold what a stage does: its replicas and copies, or where more than an
/// optimizer is shared those of its group.
bool is_shared(const TrainingSetup& setup, std::size_t stage);

/// Cuts those stages into buckets of whole layers with at least `min` bytes of gradients. What
/// groups send of them beside the passes is then no part of the updates any more. Requires: the
/// setup's partition and costs, which are those of `layers`.
void add_buckets(Bytes min, const std::vector<LayerCosts>& layers, TrainingSetup& setup);

}  // namespace plumbline
