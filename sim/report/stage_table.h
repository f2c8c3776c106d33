// The layers and the costs of each stage of a pipeline, as a table.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "base/document.h"
#include "sim/setup/training_setup.h"

namespace plumbline {

/// One row per stage: its layers; the devices that hold it in all copies; the times of F, B,
/// recomputation (in addition to B) and U; the bytes of its parameters, of the activations that it
/// keeps of a micro-batch, and of its output. Below, the ratio of the slowest stage to the mean of
/// all, per replica: the most that another cut could gain.
Document stage_table(const TrainingSetup& setup);

}  // namespace plumbline
