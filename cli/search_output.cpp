// The report of a search, in the requested format.
//
// SPDX-License-Identifier: MIT
#include "cli/search_output.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <cstdio>

#include "cli/command.h"
#include "sim/report/shell_command.h"

namespace plumbline {
namespace {

std::string to_text(const SearchReport& report, const SearchOptions& options) {
  if (options.json) return to_json(report, kVersion);
  if (options.csv) return to_csv(report);
  if (options.markdown) return to_markdown(report);
  return to_table(report).print(page_width(options.page, options.output));
}

}  // namespace

void add_distinct_option(CLI::App& command, bool& distinct) {
  command.add_flag(
      "--distinct", distinct,
      "of a search: only the best layout of each combination of tensor, context, expert and "
      "pipeline sizes");
}

Result<SearchSelection> read_selection(const SearchOptions& options, const SearchFacts& facts) {
  RowOptions numbers = options;  // conditions may be on the layout, too
  numbers.where.clear();
  auto rows = read_selection(numbers, std::vector<SweepAxis>());
  if (!rows) return rows.problems();
  auto selection = select_layouts(*std::move(rows), options.where, facts.varied_keys);
  if (selection) selection->distinct = options.distinct;
  return selection;
}

int tell_search(SearchPart part, SearchSelection selection, const Search* search, bool stopped,
                const SearchOptions& options, unsigned threads) {
  SearchReport report = plumbline::report(std::move(part), std::move(selection));
  if (!report.rows.empty()) {
    report.command =
        shell_command("simulate", report.facts.file, report.rows.front().layout.overrides);
    report.others_untried = !search;
    if (search && !stopped) try_other_devices(*search, report, threads);
  }
  if (!options.report.empty()) {
    if (search) add_memory_parts(*search, report.choices);
    const int written =
        write_output(html_report(report, options.command_line, kVersion), options.report);
    if (written != ExitCode::done) return written;
  }
  if (const int written = write_output(to_text(report, options), options.output);
      written != ExitCode::done)
    return written;
  if (stopped) {
    say(
        fmt::format("interrupted: {} of {} layouts are printed; with --all -o FILE an "
                    "interrupted search goes on\n",
                    report.done, report.layouts));
    return ExitCode::interrupted;
  }
  if (!report.rows.empty()) return ExitCode::done;
  say(report.feasible + report.slower > 0 ? "error: no layout that fits meets the conditions\n"
      : report.misfits > 0                ? "error: no layout fits\n"
                                          : "error: no layout can run\n");
  return ExitCode::infeasible;
}

}  // namespace plumbline
