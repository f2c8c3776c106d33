// Options of sweeps.
//
// SPDX-License-Identifier: MIT
#include "cli/sweep_options.h"

#include <CLI/App.hpp>
#include <cstdio>

#include "cli/option_checks.h"
#include "sim/report/sweep_html.h"
#include "sim/scenario/axes.h"

namespace plumbline {

void add_row_options(CLI::App& command, RowOptions& options) {
  command
      .add_option("--objective", options.objective,
                  "what is best: throughput, per-device (throughput for each device), memory, "
                  "bubble, cost, days, energy or goodput; for time it is throughput, because "
                  "micro-batch sizes may differ")
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option(
          "--where", options.where,
          "only rows that meet this, such as 'peak_memory_bytes < 80 GB' or 'plan.stages == 4'; "
          "may be repeated")
      ->type_name("CONDITION")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command.add_flag("--pareto{memory}", options.pareto,
                   "only rows that no other beats in both throughput and peak memory; "
                   "--pareto=cost,days: in both cost and days");
  command.add_option("--top", options.top, "only the best N rows")
      ->check(between(1, kMaxCombinations))
      ->type_name("N");
  CLI::Option* const json = command.add_flag("--json", options.json, "print JSON and nothing else");
  CLI::Option* const csv = command.add_flag("--csv", options.csv, "print CSV, unrounded");
  json->excludes(csv);
}

void add_sweep_options(CLI::App& command, SweepOptions& options) {
  add_row_options(command, options);
  command.add_flag("--markdown", options.markdown, "print a Markdown table")
      ->excludes(command.get_option("--json"))
      ->excludes(command.get_option("--csv"));
  command
      .add_option("--report", options.report,
                  "write a page with charts over the keys, the Pareto front and the rows here, for "
                  "any browser: one HTML file that needs no network")
      ->type_name("FILE");
}

void add_table_option(CLI::App& command, std::string& table) {
  command
      .add_option("--table", table,
                  "print one number of the rows, with the values of one key down and those of "
                  "another across: 'schedule.name,schedule.micro_batches,iteration_time_s'")
      ->excludes(command.get_option("--json"))
      ->type_name("ROWS,COLUMNS,VALUE");
}

Result<std::optional<SweepPivot>> read_pivot(const std::string& table,
                                             const std::vector<SweepAxis>& axes) {
  if (table.empty()) return std::optional<SweepPivot>();
  const auto pivot = parse_pivot(table, axes);
  if (!pivot) return pivot.problems();
  return std::optional(*pivot);
}

Result<SweepSelection> read_selection(const RowOptions& options,
                                      const std::vector<SweepAxis>& axes) {
  Diagnostics problems;
  SweepSelection selection;
  if (options.pareto) {
    const auto front = parse_front(*options.pareto);
    if (keep(front, problems)) selection.front = *front;
  }
  selection.top = options.top;
  const auto objective = parse_objective(options.objective);
  if (keep(objective, problems)) selection.objective = *objective;
  selection.where.reserve(options.where.size());
  for (const std::string& text : options.where) {
    auto condition = parse_condition(text, axes);
    if (keep(condition, problems)) selection.where.push_back(*std::move(condition));
  }
  if (!problems.empty()) return problems;
  return selection;
}

std::string to_text(const SweepReport& report, const SweepOptions& options,
                    const std::optional<SweepPivot>& pivot, PageWidth width) {
  if (pivot && options.csv) return to_csv(report, *pivot);
  if (pivot && options.markdown) return to_markdown(report, *pivot);
  if (pivot) return to_table(report, *pivot).print(width);
  if (options.json) return to_json(report, kVersion);
  if (options.csv) return to_csv(report);
  return options.markdown ? to_markdown(report) : to_table(report).print(width);
}

int write_page(const SweepReport& report, const SweepOptions& options,
               const std::string& command_line) {
  if (options.report.empty()) return ExitCode::done;
  return write_output(html_report(report, command_line, kVersion), options.report);
}

int report_feasibility(const SweepReport& report) {
  if (report.any_feasible()) return ExitCode::done;
  say("error: " + infeasibility(report) + '\n');
  return ExitCode::infeasible;
}

}  // namespace plumbline
