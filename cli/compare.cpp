// `plumbline compare`: runs side by side, and a sentence that says why one is faster.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/compare.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "sim/planning/planning.h"
#include "sim/report/compare_html.h"
#include "sim/scenario/axes.h"
#include "sim/scenario/overrides.h"
#include "sim/whatif/likeness.h"

namespace plumbline {
namespace {

constexpr std::size_t kMaxBytes = 100'000'000;
constexpr std::size_t kMaxRuns = 16;

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

/// What is compared, and what is not, as it cannot run.
struct Runs {
  std::vector<ComparedRun> runs;
  std::vector<std::string> sources;  ///< Of each the command that simulates it again, or its file.
  std::vector<RefusedRun> refused;
  Diagnostics why_refused;
};

std::string simulate_line(const std::string& path, const std::vector<std::string>& overrides) {
  std::string line = "plumbline simulate " + shell_word(path);
  for (const std::string& assignment : overrides) line += ' ' + shell_word(assignment);
  return line;
}

bool is_infeasible(const Diagnostics& problems) {
  return std::all_of(problems.begin(), problems.end(),
                     [](const Diagnostic& problem) { return problem.fault == Fault::infeasible; });
}

/// Predicts a scenario, which brings its keys along.
Result<ComparedRun> predict_run(const std::string& path, const std::vector<std::string>& overrides,
                                std::string title) {
  auto root = read_yaml(path);
  if (!root) return root.problems();
  auto scenario = read_overridden(*root, overrides);
  if (!scenario) return scenario.problems();
  const auto settled = resolve_plan(*std::move(scenario));
  if (!settled) return settled.problems();
  auto prediction = predict(*settled);
  if (!prediction) return prediction.problems();
  ComparedRun run =
      compared(std::make_shared<const Outcome>(*std::move(prediction)), std::move(title));
  run.keys = written_keys(*root);
  return run;
}

/// Errors: what is wrong with an input. What is well formed, but cannot run, is left out.
Result<Runs> read_runs(const std::vector<std::string>& paths,
                       const std::vector<std::vector<std::string>>& points) {
  const auto varying = varying_overrides(points);
  Diagnostics problems;
  Runs all;
  for (const std::string& path : paths) {
    if (is_result(path)) {
      const auto file = read_file(path, kMaxBytes);
      if (!keep(file, problems)) continue;
      auto run = read_result(*file, title_of(path, true, {}));
      if (!keep(run, problems)) continue;
      all.runs.push_back(*std::move(run));
      all.sources.push_back(path);
      continue;
    }
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::string title = title_of(path, paths.size() > 1, varying[i]);
      auto run = predict_run(path, points[i], title);
      if (run) {
        all.runs.push_back(*std::move(run));
        all.sources.push_back(simulate_line(path, points[i]));
      } else if (is_infeasible(run.problems())) {
        keep(run, all.why_refused);
        all.refused.push_back({title, printable(run.problems().front().message)});
      } else {
        keep(run, problems);
      }
    }
  }
  if (!problems.empty()) return problems;
  if (all.runs.size() < 2) return all.why_refused;
  return all;
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
  const auto read = read_runs(paths, *points);
  if (!read) return fail(read.problems());
  const std::vector<ComparedRun>& runs = read->runs;
  if (!arguments.report.empty()) {
    const std::string page =
        html_report(runs, read->sources, arguments.command_line, kVersion, read->refused);
    const int written = write_output(page, arguments.report);
    if (written != ExitCode::done) return written;
  }
  const int written = write_output(
      arguments.json ? to_json(runs, kVersion, read->refused) : to_table(runs, read->refused),
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
