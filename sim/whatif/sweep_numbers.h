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

/// Adds a key for each of the numbers, null where there are none.
void add_numbers(const std::optional<SweepNumbers>& numbers, nlohmann::ordered_json& json);

/// Adds the row: its point, its numbers, how they were estimated, and why it is not feasible.
void add_row(const SweepRow& row, nlohmann::ordered_json& json);
/// The row again; throws what nlohmann's reader throws where something is missing.
SweepRow read_row(const nlohmann::ordered_json& json);
/// Whether the rest of the program can count on a row that was read.
bool is_sound(const SweepRow& row);

}  // namespace plumbline
