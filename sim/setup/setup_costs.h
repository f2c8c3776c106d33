// The costs of a setup: of its layers, and of the stages that hold them.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/profile/profile.h"
#include "sim/scenario/placement.h"
#include "sim/scenario/scenario.h"
#include "sim/setup/training_setup.h"

namespace plumbline {

/// The costs of each layer on each run of devices, for a micro-batch of the scenario's size, or for
/// a slice of one. `setup` gets what is to be told of them: values that are estimated, expected
/// errors, notes on slices. Errors: costs whose sums do not fit into 64 bits.
Result<DeviceCosts> layer_costs(const Scenario& scenario, TrainingSetup& setup);

/// The costs of each layer on the devices of its stage. A layer that uses another one's table there
/// does not update it again.
std::vector<LayerCosts> on_their_devices(const Scenario& scenario, const DeviceCosts& costs,
                                         const Partition& partition);

/// Takes the copies of tables from layers whose devices hold these tables anyway. Requires: the
/// partition.
void share_tables(TrainingSetup& setup);

/// Adds the costs of stages, which depend on the order of their ops, their slow-down by neighbours,
/// and their buckets. Requires: partition and schedule. Errors: costs whose sums do not fit into 64
/// bits.
std::optional<Diagnostics> add_costs(const Scenario& scenario, std::vector<LayerCosts>& layers,
                                     TrainingSetup& setup);

/// Gives a setup other numbers of recomputed layers, one per stage, and the costs that follow;
/// stages and order stay. `layers`: the costs of layers that are all recomputed. Errors: those of
/// add_costs(); sizes that do not add up within 64 bits.
std::optional<Diagnostics> set_recomputed(const Scenario& scenario, std::vector<LayerCosts> layers,
                                          const std::vector<std::uint32_t>& recomputed,
                                          TrainingSetup& setup);

}  // namespace plumbline
