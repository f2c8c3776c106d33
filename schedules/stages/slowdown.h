// How the ops of a stage take longer while neighbours compute.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "models/profile/layer_graph.h"
#include "models/profile/profile.h"
#include "schedules/stages/partition.h"

namespace plumbline {

/// What the ops of one stage take, in ns, while 0, 1, ... neighbours of their device compute; the
/// last entry holds for all more. Lists are equally long.
struct StageSlowdown {
  std::vector<double> forward;
  std::vector<double> backward;
  std::vector<double> backward_input;
  std::vector<double> backward_weight;
  std::vector<double> again;  ///< What making activations again takes.
  std::vector<double> update;
};

/// Sums the layers' times, each with its kind's factors in its stage (`factors`, by stage, each as
/// Profile::slowdown); a kind without factors always takes its time. Updates take those of
/// `slowdown` in every stage. One entry for each stage; none where no factor of the partition's
/// layers is other than 1. Requires: one entry of `costs` for each layer of the graph.
std::vector<StageSlowdown> stage_slowdowns(const LayerGraph& graph,
                                           const std::vector<LayerCosts>& costs,
                                           const Partition& partition,
                                           const std::vector<KindFactors>& factors,
                                           const KindFactors& slowdown);

/// Makes the costs those of devices without neighbours: every time takes its kind's first factor.
void run_alone(const LayerGraph& graph, const KindFactors& factors, std::vector<LayerCosts>& costs);

}  // namespace plumbline
