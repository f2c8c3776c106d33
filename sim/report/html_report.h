// A run as one HTML file that needs nothing else: timeline, memory, idle time, formula, plan.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "sim/report/chrome_trace.h"

namespace plumbline {

/// A number at the head of the page, with its label, value and meaning.
struct ReportFigure {
  std::string label;
  std::string value;
  std::string remark;
  bool is_main = false;  ///< One of the few that are shown large.
};

/// The content of a page besides its runs.
struct ReportOrigin {
  std::string command;                 ///< Typed in a shell, it writes the file again.
  std::string version;                 ///< Version of the tool.
  std::vector<std::string> overrides;  ///< Overrides that the command set, `key=value`.
  /// Figures before those of the first run, such as the prediction error.
  std::vector<ReportFigure> figures;
  std::vector<std::string> remarks;  ///< Sentences below the figures.
};

/// The page of one run, or of several runs of the scenario with this text on the same devices. The
/// runs stand one above the other, device by device, with titles such as "predicted" and
/// "measured". With several runs, the page shows how the others differ from the first, op by op.
/// The same input gives the same bytes; the page loads nothing from elsewhere. Requires: at least
/// one run; the graphs of several runs have the same nodes.
std::string html_report(const Source& scenario, const std::vector<TracedRun>& runs,
                        const ReportOrigin& origin);

}  // namespace plumbline
