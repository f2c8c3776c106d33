// Common parts of the subcommands: exit codes, output, the functions that add a command.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/document.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/record/record.h"
#include "sim/planning/predict.h"
#include "sim/report/timeline.h"

namespace CLI {
class App;
}

namespace plumbline {

/// The version that `--version` and the JSON print.
inline constexpr const char* kVersion = PLUMBLINE_VERSION;

/// Runs a command line without the program's name. Returns the exit code. Bugs are thrown.
int run_command(std::vector<std::string> words);

/// How wide a command prints.
struct PageArguments {
  std::size_t width = 0;  ///< 0 = the terminal's.
  bool wide = false;      ///< As wide as the text.
};

/// Adds --width and --wide to a subcommand.
void add_page_arguments(CLI::App& command, PageArguments& arguments);

/// The width of what a command writes to stdout, or to the file `output`: that of the arguments,
/// else the terminal's, else what COLUMNS says, else 100.
PageWidth page_width(const PageArguments& arguments, const std::string& output);

/// The page of stdout: the columns of its terminal, else what COLUMNS says, else 100; Unicode where
/// the locale is UTF-8; colours on a terminal unless NO_COLOR is set. A command that runs again has
/// the page of its record.
RecordedPage page_of_stdout();

/// The arguments of a subcommand that reads a scenario.
struct ScenarioArguments {
  std::string scenario;
  std::vector<std::string> overrides;
  std::string output;  ///< "" = stdout.
  PageArguments page;
};

/// Adds SCENARIO, key=value, -o, --width and --wide to a subcommand.
void add_scenario_arguments(CLI::App& command, ScenarioArguments& arguments);

/// The report options of `simulate` and `run`.
struct ReportArguments : ScenarioArguments {
  bool json = false;
  std::string trace;
  std::string report;  ///< The HTML file; "" = none.
  bool no_timeline = false;
};

/// Adds --report to a subcommand.
void add_html_option(CLI::App& command, std::string& path);

/// The shell command that does the same again: the subcommand and all its arguments but --record,
/// quoted where necessary. Requires: the command line has been read.
std::string command_line(const CLI::App& command);

/// Adds the arguments of add_scenario_arguments, and --json, --no-timeline, --trace and --report.
/// `what` describes what the trace shows.
void add_report_arguments(CLI::App& command, ReportArguments& arguments, const std::string& what);

/// Writes the trace and the HTML page where they were requested, then JSON or the table with its
/// timeline. Prints which device has too little memory. Returns the exit code.
int write_report(const ReportArguments& arguments, const Outcome& outcome,
                 const std::function<std::string()>& page, const std::function<std::string()>& json,
                 const std::function<Document(const std::optional<TimelineStyle>&)>& table);

/// The style of a timeline for stdout, or for the file `output`. It fills the page.
TimelineStyle timeline_style(const PageArguments& arguments, const std::string& output);

/// The scenario of the arguments, with its plan resolved.
Result<Scenario> load_scenario(const ScenarioArguments& arguments);

/// Prints diagnostics to stderr; returns the exit code of the gravest: a wrong input, then a file,
/// then a missing device, then infeasible.
int fail(const Diagnostics& problems);

/// Prints on stderr which device has too little memory, and returns ExitCode::infeasible; if there
/// is none, returns ExitCode::done.
int report_fit(const Outcome& prediction);

/// Each function adds its subcommand to `app`. When the user calls the subcommand, its exit code is
/// stored in `exit_code`.
void add_bubble(CLI::App& app, int& exit_code);
void add_order(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_completion(CLI::App& app, int& exit_code);
void add_schema(CLI::App& app, int& exit_code);
void add_simulate(CLI::App& app, int& exit_code);
void add_compare(CLI::App& app, int& exit_code);
void add_diagnose(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_schedule(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_calibrate(CLI::App& app, int& exit_code);
void add_grade(CLI::App& app, int& exit_code);
void add_import(CLI::App& app, int& exit_code);
void add_kernels(CLI::App& app, int& exit_code);
void add_list(CLI::App& app, int& exit_code);
void add_memory(CLI::App& app, int& exit_code);
void add_merge(CLI::App& app, int& exit_code);
void add_quiz(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_search(CLI::App& app, int& exit_code);
void add_sweep(CLI::App& app, int& exit_code);
void add_validate(CLI::App& app, int& exit_code);

}  // namespace plumbline
