// The memory of a run by device and part, and what would make it fit.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/document.h"
#include "sim/prediction/outcome.h"
#include "sim/whatif/ways_to_fit.h"

namespace plumbline {

/// Tables for people: the parts of each device's peak, its reserve and what is left; the ways.
Document memory_table(const Outcome& outcome, const std::vector<WayToFit>& ways);

/// The same as JSON.
std::string memory_json(const Outcome& outcome, const std::vector<WayToFit>& ways,
                        const std::string& version);

}  // namespace plumbline
