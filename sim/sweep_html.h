// A sweep as one HTML file that needs nothing else: charts over a key, the Pareto front, the rows.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/sweep_report.h"

namespace plumbline {

/// The most rows that a page holds; of more it has the first ones, and says so.
inline constexpr std::size_t kMostPageRows = 100'000;

/// The page of the rows that are told. `command` typed in a shell writes the file again. The same
/// input gives the same bytes; nothing is loaded from anywhere.
std::string html_report(const SweepReport& report, const std::string& command,
                        const std::string& version);

}  // namespace plumbline
