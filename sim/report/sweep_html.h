// A sweep as one HTML file that needs nothing else: charts over a key, the Pareto front, the rows.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/report/sweep_report.h"

namespace plumbline {

/// The most rows that a page holds; of more it has the first ones, and says so.
inline constexpr std::size_t kMaxPageRows = 100'000;

/// A page of rows, whatever asked for them.
struct RowsPage {
  SweepResult result;                ///< The rows and the axes that they lie on.
  std::string question;              ///< What was asked, in a line.
  std::vector<std::string> remarks;  ///< What is to be said of all, a sentence each.
  /// Of each row what predicts it alone, as `key=value`; empty = its values on the axes.
  std::vector<std::vector<std::string>> overrides;
  std::string command;  ///< Typed in a shell it writes the file again.
  std::string version;  ///< Of the tool.
};

/// The page. The same input gives the same bytes; nothing is loaded from anywhere.
std::string rows_page(const RowsPage& page);

/// The page of the rows that are told. `command` typed in a shell writes the file again. The same
/// input gives the same bytes; nothing is loaded from anywhere.
std::string html_report(const SweepReport& report, const std::string& command,
                        const std::string& version);

}  // namespace plumbline
