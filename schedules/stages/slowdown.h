// Longer times of a stage's ops while neighbours compute.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "models/profile/layer_graph.h"
#include "models/profile/profile.h"
#include "schedules/stages/partition.h"

namespace plumbline {

/// The times of one stage's ops, in ns, while 0, 1, ... neighbours of their device compute. The
/// last entry holds for all larger numbers. All lists are equally long.
struct StageSlowdown {
  std::vector<double> forward;
  std::vector<double> backward;
  std::vector<double> backward_input;
  std::vector<double> backward_weight;
  std::vector<double> again;  ///< Recomputing activations.
  std::vector<double> update;
};

/// Sums the layers' times, each multiplied by its kind's factors in its stage (`factors`, by stage,
/// each like Profile::slowdown). A kind without factors always takes its time. Updates use the
/// factors in `slowdown` in every stage. One entry for each stage; no entries where every factor of
/// the partition's layers is 1. Requires: one entry of `costs` for each layer of the graph.
std::vector<StageSlowdown> stage_slowdowns(const LayerGraph& graph,
                                           const std::vector<LayerCosts>& costs,
                                           const Partition& partition,
                                           const std::vector<KindFactors>& factors,
                                           const KindFactors& slowdown);

/// Changes the costs to those of devices without neighbours: multiplies every time by its kind's
/// first factor.
void run_alone(const LayerGraph& graph, const KindFactors& factors, std::vector<LayerCosts>& costs);

}  // namespace plumbline
