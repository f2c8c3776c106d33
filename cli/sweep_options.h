// Common options of `sweep`, `merge` and `search`: which rows are printed, and in which format.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "sim/report/sweep_pivot.h"
#include "sim/report/sweep_report.h"

namespace CLI {
class App;
}

namespace plumbline {

/// The selection of rows, and the choice of a table or data.
struct RowOptions {
  std::string objective = "throughput";
  std::vector<std::string> where;
  std::optional<std::string> pareto;  ///< Its two numbers; "memory" = throughput and memory.
  std::size_t top = 0;
  bool json = false;
  bool csv = false;
  bool distinct = false;  ///< For a search only.

  /// Whether rows are ordered or left out.
  bool selects() const {
    return objective != "throughput" || !where.empty() || pareto || top > 0 || distinct;
  }
};

/// The output options for the rows of a sweep.
struct SweepOptions : RowOptions {
  bool markdown = false;
  std::string report;  ///< The HTML file; "" = none.
};

void add_row_options(CLI::App& command, RowOptions& options);
/// Adds the row options, and the others of a sweep.
void add_sweep_options(CLI::App& command, SweepOptions& options);

/// Adds --table to a subcommand that has the options of a sweep.
void add_table_option(CLI::App& command, std::string& table);

/// The table that --table asks for; nothing for "". Errors: those of parse_pivot.
Result<std::optional<SweepPivot>> read_pivot(const std::string& table,
                                             const std::vector<SweepAxis>& axes);

/// The selection of rows of a sweep over these axes. Errors: an unknown objective, a wrong
/// condition.
Result<SweepSelection> read_selection(const RowOptions& options,
                                      const std::vector<SweepAxis>& axes);

/// The report in the requested format, as the rows or as the requested table of two keys. `width`
/// counts for tables.
std::string to_text(const SweepReport& report, const SweepOptions& options,
                    const std::optional<SweepPivot>& pivot, PageWidth width);

/// Writes the HTML page if it was requested. Returns the exit code.
int write_page(const SweepReport& report, const SweepOptions& options,
               const std::string& command_line);

/// If no row is feasible, prints the reason on stderr and returns ExitCode::infeasible; else
/// returns ExitCode::done.
int report_feasibility(const SweepReport& report);

}  // namespace plumbline
