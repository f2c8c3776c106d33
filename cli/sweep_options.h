// What `sweep`, `merge` and `search` have in common: which rows are told, and in which format.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "sim/report/sweep_report.h"

namespace CLI {
class App;
}

namespace plumbline {

/// Which rows are told, as a table or as data.
struct RowOptions {
  std::string objective = "throughput";
  std::vector<std::string> where;
  bool pareto = false;
  std::size_t top = 0;
  bool json = false;
  bool csv = false;
  bool distinct = false;  ///< Of a search.

  /// Whether rows are to be ordered or left out.
  bool selects() const {
    return objective != "throughput" || !where.empty() || pareto || top > 0 || distinct;
  }
};

/// How the rows of a sweep are told.
struct SweepOptions : RowOptions {
  bool markdown = false;
  std::string report;  ///< The HTML file; "" = none.
};

void add_row_options(CLI::App& command, RowOptions& options);
/// Those, and the others of a sweep.
void add_sweep_options(CLI::App& command, SweepOptions& options);

/// Of a sweep over these axes. Errors: an unknown objective, a wrong condition.
Result<SweepSelection> read_selection(const RowOptions& options,
                                      const std::vector<SweepAxis>& axes);

/// The report in the format that was asked for.
std::string to_text(const SweepReport& report, const SweepOptions& options);

/// Writes the HTML page where it was asked for. Returns the exit code.
int write_page(const SweepReport& report, const SweepOptions& options,
               const std::string& command_line);

/// Says on stderr why no row is feasible, if none is; returns ExitCode::infeasible then, else
/// ExitCode::done.
int report_feasibility(const SweepReport& report);

}  // namespace plumbline
