// `plumbline compare`: runs side by side, and a sentence on why one is faster.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>

#include "cli/command.h"
#include "sim/report/compare_html.h"
#include "sim/report/compare_report.h"
#include "sim/report/shell_command.h"
#include "sim/scenario/axes.h"
#include "sim/whatif/compared_runs.h"

namespace plumbline {
namespace {

constexpr std::size_t kMaxRuns = 16;

struct CompareArguments {
  std::vector<std::string> what;
  std::string output;
  PageArguments page;
  bool json = false;
  std::string report;  ///< The HTML file; "" = none.
  std::string command_line;
};

/// The command that simulates this run, or its file.
std::string source_of(const RunOrigin& origin) {
  if (is_result(origin.path)) return origin.path;
  return shell_command("simulate", origin.path, origin.overrides);
}

int compare(const CompareArguments& arguments) {
  std::vector<std::string> paths;
  std::vector<std::string> axes;
  for (const std::string& argument : arguments.what)
    (argument.find('=') == std::string::npos ? paths : axes).push_back(argument);
  const auto points = combinations(axes);
  if (!points) return fail(points.problems());
  std::size_t count = 0;
  for (const std::string& path : paths) count += is_result(path) ? 1 : points->size();
  if (count < 2 || count > kMaxRuns) {
    Diagnostic wrong;
    wrong.message =
        count > kMaxRuns
            ? fmt::format("{} runs to compare, more than the {} that stand side by side", count,
                          kMaxRuns)
            : fmt::format("{} run{} to compare", count, count == 1 ? "" : "s");
    wrong.help = count > kMaxRuns ? "plumbline sweep puts them below each other"
                                  : "name several scenarios or results, or several values: "
                                    "schedule.name=gpipe,1f1b";
    return fail({wrong});
  }
  if (const int code = try_output(arguments.report); code != ExitCode::done) return code;
  const auto read = compared_runs(paths, *points);
  if (!read) return fail(read.problems());
  const std::vector<ComparedRun>& runs = read->runs;
  if (!arguments.report.empty()) {
    std::vector<std::string> sources;
    sources.reserve(runs.size());
    for (const RunOrigin& origin : read->origins) sources.push_back(source_of(origin));
    const std::string page =
        html_report(runs, sources, arguments.command_line, kVersion, read->refused);
    const int written = write_output(page, arguments.report);
    if (written != ExitCode::done) return written;
  }
  const int written = write_output(
      arguments.json
          ? to_json(runs, kVersion, read->refused)
          : to_table(runs, read->refused).print(page_width(arguments.page, arguments.output)),
      arguments.output);
  return written != ExitCode::done || read->refused.empty() ? written : fail(read->why_refused);
}

}  // namespace

void add_compare(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<CompareArguments>();
  CLI::App* command = app.add_subcommand(
      "compare", "runs side by side, and why one is faster; key=a,b for several");
  command
      ->add_option("what", arguments->what,
                   "scenarios, results (.json, as simulate --json and run --json write them), and "
                   "key=a,b,c for all of the scenarios")
      ->required()
      ->type_name("SCENARIO|RESULT|key=value");
  command
      ->add_option("-o,--output", arguments->output,
                   "write to this file instead of stdout, whole or not at all")
      ->type_name("FILE");
  add_page_arguments(*command, arguments->page);
  command->add_flag("--json", arguments->json, "print JSON and nothing else");
  command
      ->add_option("--report", arguments->report,
                   "write a page with the numbers, idle time, memory and timelines here, for any "
                   "browser: one HTML file that needs no network")
      ->type_name("FILE");
  command->callback([arguments, command, &exit_code] {
    arguments->command_line = command_line(*command);
    exit_code = compare(*arguments);
  });
}

}  // namespace plumbline
