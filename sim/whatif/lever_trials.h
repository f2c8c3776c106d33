// Levers tried in simulations: what a share of one saves.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/whatif/levers.h"

namespace plumbline {

/// Settles each lever by the straight line from 0 that is nearest to what these shares of it save
/// (least squares). On all cores, each with a graph of its own, as far as memory allows.
void try_each(const Outcome& outcome, const CostIndex& index, const std::vector<Lever*>& levers,
              const std::vector<double>& shares);

}  // namespace plumbline
