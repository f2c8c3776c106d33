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

/// The slot of each device as an order numbers them; `placed` are those of each stage.
std::vector<std::uint32_t> slots_of(const std::vector<std::vector<std::uint32_t>>& placed,
                                    const PipelineShape& shape);

/// Lists by device, as lists by slot.
OpLists by_slot(const OpLists& lists, const std::vector<std::uint32_t>& slots);

/// Gives the pipeline the schedule of the scenario's file. Errors: an order that does not run, or
/// does not go with the rest of the scenario.
std::optional<Diagnostics> add_order_of_file(const Scenario& scenario, const PipelineShape& shape,
                                             TrainingSetup& setup);

/// Puts transfers in the order of the file's cells, where they keep it; else a note where that
/// would hang. Errors: it hangs.
std::optional<Diagnostics> order_communication(const Scenario& scenario, TrainingSetup& setup);

}  // namespace plumbline
