// The order of a file on the devices of a scenario.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/scenario/scenario.h"
#include "sim/setup/training_setup.h"

namespace plumbline {

/// The slot of each device, as an order numbers the devices. `placed` has the devices of each
/// stage.
std::vector<std::uint32_t> slots_of(const std::vector<std::vector<std::uint32_t>>& placed,
                                    const PipelineShape& shape);

/// Reorders lists by device into lists by slot.
OpLists by_slot(const OpLists& lists, const std::vector<std::uint32_t>& slots);

/// Gives the pipeline the schedule of the scenario's file. Errors: an order that does not run, or
/// that contradicts the rest of the scenario.
std::optional<Diagnostics> add_order_of_file(const Scenario& scenario, const PipelineShape& shape,
                                             TrainingSetup& setup);

/// Puts transfers in the order of the file's cells, if the scenario asks for that order. If it does
/// not and the file's order would hang, adds a note. Errors: the order hangs.
std::optional<Diagnostics> order_communication(const Scenario& scenario, TrainingSetup& setup);

}  // namespace plumbline
