// A bill as JSON, for results of single runs and for rows.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/prediction/bill.h"

namespace plumbline {

/// The keys of a bill's figures, in their order: "tokens_per_s".
const std::vector<std::string>& bill_keys();

/// Adds a key for each figure that is known, and for the currency of a cost.
void add_bill(const Bill& bill, nlohmann::ordered_json& json);

/// Reads the figures that are there. Throws the exceptions of nlohmann's reader for other types.
Bill read_bill(const nlohmann::ordered_json& json);

}  // namespace plumbline
