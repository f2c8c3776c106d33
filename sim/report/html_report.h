// A run as one HTML file that needs nothing else: timeline, memory, idle time, formula, plan.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "sim/report/chrome_trace.h"

namespace plumbline {

/// A number at the head of the page: what it is, its value, what it means.
struct ReportFigure {
  std::string label;
  std::string value;
  std::string remark;
};

/// What a page tells besides its runs.
struct ReportOrigin {
  std::string command;                 ///< Typed in a shell, it writes the file again.
  std::string version;                 ///< Of the tool.
  std::vector<std::string> overrides;  ///< What the command set, `key=value`.
  /// Before the figures of the first run: how far off it was, say.
  std::vector<ReportFigure> figures;
  std::vector<std::string> remarks;  ///< Sentences below the figures.
};

/// The page of one run, or of several runs of the scenario with this text, on the same devices,
/// which stand one above the other, device by device. The titles name them: "predicted",
/// "measured". Where there are several their graphs have the same nodes, and the page tells how the
/// others differ from the first, op by op. The same input gives the same bytes; nothing is loaded
/// from anywhere. Requires: at least one run.
std::string html_report(const Source& scenario, const std::vector<TracedRun>& runs,
                        const ReportOrigin& origin);

}  // namespace plumbline
