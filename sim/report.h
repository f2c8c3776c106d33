// A prediction as a table for people and as JSON for programs.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/predict.h"

namespace plumbline {

/// The table that `simulate` prints.
std::string to_table(const Prediction& prediction);

/// One sentence about the device that is the farthest beyond the memory. Requires: fits() is false.
std::string shortage(const Prediction& prediction);

/// The JSON of `simulate --json`, one line a key at the top, in the order of the contract. Ends in
/// a newline.
std::string to_json(const Prediction& prediction, const std::string& version);

}  // namespace plumbline
