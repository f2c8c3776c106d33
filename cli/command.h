// What the subcommands share: exit codes, output, the way a command is added.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "sim/planning/predict.h"
#include "sim/report/timeline.h"

namespace CLI {
class App;
}

namespace plumbline {

/// The version that `--version` and the JSON tell.
inline constexpr const char* kVersion = PLUMBLINE_VERSION;

/// What a subcommand that reads a scenario was asked.
struct ScenarioArguments {
  std::string scenario;
  std::vector<std::string> overrides;
  std::string output;  ///< "" = stdout.
};

/// Adds SCENARIO, key=value and -o to a subcommand.
void add_scenario_arguments(CLI::App& command, ScenarioArguments& arguments);

/// What `simulate` and `run` were asked to tell.
struct ReportArguments : ScenarioArguments {
  bool json = false;
  std::string trace;
  std::string report;     ///< The HTML file; "" = none.
  std::size_t width = 0;  ///< 0 = the terminal's.
  bool no_timeline = false;
};

/// Adds --report to a subcommand.
void add_html_option(CLI::App& command, std::string& path);

/// `text` as a shell reads it as one word: quoted where that is needed.
std::string shell_word(const std::string& text);

/// What a shell would be told to do the same again: the subcommand and all that the user gave it,
/// quoted where a shell needs it. Requires: the command line has been read.
std::string command_line(const CLI::App& command);

/// Adds what add_scenario_arguments adds, and --json, --width, --no-timeline, --trace and --report;
/// `what` is what the trace shows.
void add_report_arguments(CLI::App& command, ReportArguments& arguments, const std::string& what);

/// Writes the trace and the HTML page where they were asked for, then JSON or the table with its
/// timeline; says which device has too little memory. Returns the exit code.
int write_report(const ReportArguments& arguments, const Outcome& outcome,
                 const std::function<std::string()>& page, const std::function<std::string()>& json,
                 const std::function<std::string(const std::optional<TimelineStyle>&)>& table);

/// How a timeline is drawn for stdout, or for a file where `output` names one: as wide as asked
/// for, else as the terminal, else 80; Unicode where the locale is UTF-8; colours on a terminal
/// unless NO_COLOR is set.
TimelineStyle timeline_style(const std::string& output, std::size_t width);

/// The scenario that was asked for, with its plan settled.
Result<Scenario> load_scenario(const ScenarioArguments& arguments);

/// Prints diagnostics to stderr; returns the exit code of the gravest: a wrong input, then a file,
/// then a device that is not there, then infeasible.
int fail(const Diagnostics& problems);

/// Says on stderr which device has too little memory, if one has; returns ExitCode::infeasible
/// then, else ExitCode::done.
int report_fit(const Outcome& prediction);

/// Each adds its subcommand to `app`; when the user calls it, its exit code is put into
/// `exit_code`.
void add_bubble(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_completion(CLI::App& app, int& exit_code);
void add_schema(CLI::App& app, int& exit_code);
void add_simulate(CLI::App& app, int& exit_code);
void add_compare(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_schedule(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_calibrate(CLI::App& app, int& exit_code);
void add_import(CLI::App& app, int& exit_code);
void add_list(CLI::App& app, int& exit_code);
void add_merge(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_search(CLI::App& app, int& exit_code);
void add_sweep(CLI::App& app, int& exit_code);
void add_validate(CLI::App& app, int& exit_code);

}  // namespace plumbline
