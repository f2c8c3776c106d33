// The numbers of a row as JSON, for the rows of sweeps and of searches.
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "sim/sweep.h"

namespace plumbline {

/// Adds a key for each of the numbers, null where there are none.
void add_numbers(const std::optional<SweepNumbers>& numbers, nlohmann::ordered_json& json);

}  // namespace plumbline
