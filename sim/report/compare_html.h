// A comparison as one HTML file that needs nothing else: numbers, idle time, memory, timelines.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/whatif/compare.h"

namespace plumbline {

/// The page of runs side by side. `sources` gives the origin of each run: the command that
/// simulates it again, or the file that it was read from. `command`, typed in a shell, writes the
/// page again. Runs that were predicted here show their timelines one above the other on one axis.
/// The same input gives the same bytes. Requires: at least two runs, as many sources.
std::string html_report(const std::vector<ComparedRun>& runs,
                        const std::vector<std::string>& sources, const std::string& command,
                        const std::string& version, const std::vector<RefusedRun>& refused = {});

}  // namespace plumbline
