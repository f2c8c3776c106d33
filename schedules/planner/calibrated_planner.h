// The planner of the calibrated cost model; see plan() in planner.h.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "schedules/planner/planner.h"

namespace plumbline {

/// The best plans by formula_time, among all frontiers of the graph. Requirements and errors as for
/// plan().
Result<Plans> plan_calibrated(const PlannerInput& input);

}  // namespace plumbline
