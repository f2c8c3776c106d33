// As few layers run again as the memory needs.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/scenario/scenario.h"

namespace plumbline {

/// The scenario as it is, or, where schedule.recompute_layers is `fit`, with a number for each
/// stage and a note of them: those with the least sum with which all devices fit, by simulated
/// peaks; of several such the fastest, as far as there is time to simulate them. All smaller sums
/// are excluded, by lower bounds of the memory (MemoryFloor) or by simulation; where these are too
/// many the note says that they are the smallest that were found. Where nothing fits all layers are
/// taken. AdaPipe (Sun et al. 2024) chooses stage by stage, too: under 1F1B a stage in front holds
/// more micro-batches than one behind. Requires: a plan that is settled. Errors: no memory is
/// given; those of predict_resolved().
Result<Scenario> fit_recomputation(Scenario scenario);

}  // namespace plumbline
