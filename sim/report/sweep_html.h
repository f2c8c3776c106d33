// A sweep as one HTML file that needs nothing else: charts over a key, the Pareto front, the rows.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/report/sweep_report.h"

namespace plumbline {

/// The largest number of rows on a page. Of more rows the page has the first ones, and says so.
inline constexpr std::size_t kMaxPageRows = 100'000;

/// A page of rows from a sweep or a search.
struct RowsPage {
  SweepResult result;                ///< The rows and their axes.
  std::string question;              ///< The question in a line.
  std::vector<std::string> remarks;  ///< Remarks on all rows, a sentence each.
  /// Per row, the `key=value` overrides that predict it alone; empty = its values on the axes.
  std::vector<std::vector<std::string>> overrides;
  std::string command;     ///< Typed in a shell, it writes the file again.
  std::string version;     ///< Version of the tool.
  std::string decision{};  ///< JSON of what a search decides, see search_html.cpp; "" = a sweep.
};

/// The page. The same input gives the same bytes; the page loads nothing from elsewhere.
std::string rows_page(const RowsPage& page);

/// The page of the reported rows. `command`, typed in a shell, writes the file again. The same
/// input gives the same bytes; the page loads nothing from elsewhere.
std::string html_report(const SweepReport& report, const std::string& command,
                        const std::string& version);

}  // namespace plumbline
