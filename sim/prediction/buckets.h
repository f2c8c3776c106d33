// Stages in pieces whose gradients are reduced, and whose weights are gathered, by themselves.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "models/profile/profile.h"
#include "sim/prediction/pipeline.h"
#include "sim/scenario/scenario.h"

namespace plumbline {

/// Whether other devices hold what a stage does: its replicas and copies, or where more than an
/// optimizer is shared those of its group.
bool is_shared(const Scenario& scenario, const Pipeline& pipeline, std::size_t stage);

/// Cuts those stages into buckets of whole layers, as large as the scenario says. What groups send
/// of them beside the passes is then no part of the updates any more. Requires: the pipeline's
/// partition and costs, which are those of `layers`.
void add_buckets(const Scenario& scenario, const std::vector<LayerCosts>& layers,
                 Pipeline& pipeline);

}  // namespace plumbline
