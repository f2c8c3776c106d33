// What each stage of a pipeline is made of and costs, as a table.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/setup/training_setup.h"

namespace plumbline {

/// A row for each stage: its layers, the devices that hold it in all copies, what a micro-batch
/// takes on it (F, B, besides B what making activations again takes, U), the bytes of its
/// parameters, of what it keeps of a micro-batch, and of what it sends on. Behind it how far the
/// slowest stage is, replica for replica, from the mean of all: what another cut could win at most.
std::string stage_table(const TrainingSetup& setup);

}  // namespace plumbline
