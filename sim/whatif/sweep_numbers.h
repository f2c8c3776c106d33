// What a sweep is over, and the numbers of a row as JSON, for the rows of sweeps and of searches.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "sim/whatif/sweep_result.h"

namespace plumbline {

/// The values of each key; whole numbers as numbers, all else as it was written.
nlohmann::ordered_json axes_json(const std::vector<SweepAxis>& axes);

/// Adds a key for each of the numbers, null if there are none.
void add_numbers(const std::optional<SweepNumbers>& numbers, nlohmann::ordered_json& json);

/// Adds the row: its point, its numbers, the estimates behind them, and the reason why it is not
/// feasible.
void add_row(const SweepRow& row, nlohmann::ordered_json& json);
/// Reads the row back. Throws the exceptions of nlohmann's reader if something is missing.
SweepRow read_row(const nlohmann::ordered_json& json);
/// Whether a row that was read is safe to use in the rest of the program.
bool is_sound(const SweepRow& row);

}  // namespace plumbline
