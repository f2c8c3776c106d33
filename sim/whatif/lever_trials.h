// Levers tried in simulations: the time that a share of a lever saves.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/whatif/levers.h"

namespace plumbline {

/// Sets the gain of each lever: the slope of the straight line from 0 that is nearest to what these
/// shares of it save (least squares). Uses all cores, each with its own graph, as far as memory
/// allows.
void try_each(const Outcome& outcome, const CostIndex& index, const std::vector<Lever*>& levers,
              const std::vector<double>& shares);

}  // namespace plumbline
