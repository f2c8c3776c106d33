// The figures of a training's cost that a selection of rows asks for, and whether they are known.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <vector>

#include "base/diagnostic.h"
#include "sim/scenario/cost_rates.h"
#include "sim/whatif/sweep_order.h"

namespace plumbline {

/// An error if the selection asks for days, a cost, an energy or a goodput that these rates do not
/// give.
std::optional<Diagnostic> check_figures(const SweepSelection& selection, const CostRates& rates);

/// The same for rows: an error if a figure is missing in all of them, or if costs are asked for
/// that are in several currencies.
std::optional<Diagnostic> check_figures(const SweepSelection& selection,
                                        const std::vector<SweepRow>& rows);

}  // namespace plumbline
