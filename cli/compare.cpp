// `plumbline compare`: runs side by side, and a sentence that says why one is faster.
// SPDX-License-Identifier: MIT
#include "sim/compare.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "sim/axes.h"
#include "sim/compare_html.h"

namespace plumbline {
namespace {

constexpr std::size_t kMostBytes = 100'000'000;
constexpr std::size_t kMostRuns = 16;

struct CompareArguments {
  std::vector<std::string> what;
  std::string output;
  bool json = false;
  std::string report;  ///< The HTML file; "" = none.
  std::string command_line;
};

bool is_result(const std::string& path) { return path.ends_with(".json"); }

/// "gpipe" for schedule.name=gpipe, "micro_batches=8" for others.
std::string short_name(const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string key = assignment.substr(0, equals);
  std::string value = assignment.substr(equals + 1);
  if (key == "schedule.name") return value;
  const std::size_t dot = key.rfind('.');
  return (dot == std::string::npos ? key : key.substr(dot + 1)) + '=' + value;
}

/// What tells a run from the others: its file, where there are several, and the keys that vary.
std::string title_of(const std::string& path, bool several_files,
                     const std::vector<std::string>& varying) {
  std::string title;
  if (several_files || varying.empty()) title = std::filesystem::path(path).stem().string();
  for (const std::string& assignment : varying)
    title += (title.empty() ? "" : " ") + short_name(assignment);
  return printable(title);
}

Result<std::vector<ComparedRun>> read_runs(const std::vector<std::string>& paths,
                                           const std::vector<std::vector<std::string>>& points) {
  const auto varying = varying_overrides(points);
  Diagnostics problems;
  std::vector<ComparedRun> runs;
  for (const std::string& path : paths) {
    if (is_result(path)) {
      const auto file = read_file(path, kMostBytes);
      if (!keep(file, problems)) continue;
      auto run = read_result(*file, title_of(path, true, {}));
      if (keep(run, problems)) runs.push_back(*std::move(run));
      continue;
    }
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto scenario = load_scenario({path, points[i], ""});
      if (!keep(scenario, problems)) continue;
      auto prediction = predict(*scenario);
      if (!keep(prediction, problems)) continue;
      runs.push_back(compared(std::make_shared<const Outcome>(*std::move(prediction)),
                              title_of(path, paths.size() > 1, varying[i])));
    }
  }
  if (!problems.empty()) return problems;
  return runs;
}

/// Of each run that read_runs gives the command that simulates it again, or its file.
std::vector<std::string> sources_of(const std::vector<std::string>& paths,
                                    const std::vector<std::vector<std::string>>& points) {
  std::vector<std::string> sources;
  for (const std::string& path : paths) {
    if (is_result(path)) {
      sources.push_back(path);
      continue;
    }
    for (const std::vector<std::string>& overrides : points) {
      std::string line = "plumbline simulate " + shell_word(path);
      for (const std::string& assignment : overrides) line += ' ' + shell_word(assignment);
      sources.push_back(std::move(line));
    }
  }
  return sources;
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
  if (count < 2 || count > kMostRuns) {
    Diagnostic wrong;
    wrong.message =
        count > kMostRuns
            ? fmt::format("{} runs to compare, more than the {} that stand side by side", count,
                          kMostRuns)
            : fmt::format("{} run{} to compare", count, count == 1 ? "" : "s");
    wrong.help = count > kMostRuns ? "plumbline sweep puts them below each other"
                                   : "name several scenarios or results, or several values: "
                                     "schedule.name=gpipe,1f1b";
    return fail({wrong});
  }
  if (const int code = try_output(arguments.report); code != ExitCode::done) return code;
  const auto runs = read_runs(paths, *points);
  if (!runs) return fail(runs.problems());
  if (!arguments.report.empty()) {
    const std::string page =
        html_report(*runs, sources_of(paths, *points), arguments.command_line, kVersion);
    const int written = write_output(page, arguments.report);
    if (written != ExitCode::done) return written;
  }
  return write_output(arguments.json ? to_json(*runs, kVersion) : to_table(*runs),
                      arguments.output);
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
