// Shared plumbing of the subcommands.
//
// SPDX-License-Identifier: MIT
#include "cli/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cli/option_checks.h"
#include "cli/record/recorder.h"
#include "sim/planning/planning.h"
#include "sim/report/chrome_trace.h"
#include "sim/report/report.h"
#include "sim/report/shell_command.h"

namespace plumbline {

void add_scenario_arguments(CLI::App& command, ScenarioArguments& arguments) {
  command
      .add_option("scenario", arguments.scenario, "scenario file (YAML), or a model's config.json")
      ->required()
      ->type_name("SCENARIO");
  command
      .add_option("overrides", arguments.overrides,
                  "set a key of the scenario: schedule.micro_batches=16")
      ->type_name("key=value");
  command
      .add_option("-o,--output", arguments.output,
                  "write to this file instead of stdout, whole or not at all")
      ->type_name("FILE");
  add_page_arguments(command, arguments.page);
}

void add_page_arguments(CLI::App& command, PageArguments& arguments) {
  CLI::Option* const width =
      command
          .add_option("--width", arguments.width,
                      "print at most N columns of text; absent = those of the terminal, else what "
                      "COLUMNS says, else 100")
          ->check(between(kMinPageWidth, kMaxPageWidth))
          ->type_name("N");
  command.add_flag("--wide", arguments.wide, "print all columns of tables, however wide they are")
      ->excludes(width);
}

namespace {

/// The first of the locale's variables that is set decides, as in setlocale.
bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (!value || *value == '\0') continue;
    const std::string_view locale = value;
    for (const std::string_view codeset : {"UTF-8", "utf-8", "UTF8", "utf8"}) {
      if (locale.find(codeset) != std::string_view::npos) return true;
    }
    return false;
  }
  return false;
}

bool stdout_shows_color() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && !(no_color && *no_color != '\0') &&
         !(terminal && std::string_view(terminal) == "dumb");
}

}  // namespace

RecordedPage page_of_stdout() {
  if (const Recorder* const recorder = Recorder::active()) return recorder->page();
  return {stdout_columns(), locale_is_utf8(), stdout_shows_color()};
}

PageWidth page_width(const PageArguments& arguments, const std::string& output) {
  if (arguments.wide) return std::nullopt;
  if (arguments.width > 0) return arguments.width;
  return output.empty() ? page_of_stdout().columns : kUsualColumns;
}

TimelineStyle timeline_style(const PageArguments& arguments, const std::string& output) {
  const RecordedPage page = page_of_stdout();
  TimelineStyle style;
  style.width = page_width(arguments, output).value_or(page.columns);
  style.unicode = page.unicode;
  style.color = output.empty() && page.color;
  return style;
}

Result<Scenario> load_scenario(const ScenarioArguments& arguments) {
  auto scenario = read_scenario(arguments.scenario, arguments.overrides);
  if (!scenario) return scenario;
  return resolve_plan(*std::move(scenario));
}

int fail(const Diagnostics& problems) {
  say(problems);
  int code = ExitCode::infeasible;
  for (const Diagnostic& problem : problems) {
    if (problem.fault == Fault::input) return ExitCode::wrong_input;
    if (problem.fault == Fault::file) code = ExitCode::file_trouble;
    if (problem.fault == Fault::no_device && code == ExitCode::infeasible)
      code = ExitCode::no_device;
  }
  return code;
}

int report_fit(const Outcome& prediction) {
  if (prediction.fits() != false) return ExitCode::done;
  say(fmt::format("error: {}\n", shortage(prediction)));
  return ExitCode::infeasible;
}

void add_report_arguments(CLI::App& command, ReportArguments& arguments, const std::string& what) {
  add_scenario_arguments(command, arguments);
  command.add_flag("--json", arguments.json, "print JSON and nothing else");
  command.add_flag("--no-timeline", arguments.no_timeline, "leave the timeline out");
  command
      .add_option("--trace", arguments.trace,
                  fmt::format("write {} as Chrome-trace JSON for Perfetto here; compressed if the "
                              "name ends in .gz",
                              what))
      ->type_name("FILE");
  add_html_option(command, arguments.report);
}

void add_html_option(CLI::App& command, std::string& path) {
  command
      .add_option("--report", path,
                  "write a page with the timeline, memory and idle time here, for any browser: one "
                  "HTML file that needs no network")
      ->type_name("FILE");
}

std::string command_line(const CLI::App& command) {
  std::string line = "plumbline " + command.get_name();
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->check_name("--record")) continue;
    const bool takes_values = option->get_items_expected_max() > 0;
    if (!option->get_positional()) line += ' ' + option->get_name();
    if (!takes_values) continue;
    if (const char between = option->get_delimiter(); between != '\0') {
      line += ' ' + shell_word(fmt::format(
                        "{}", fmt::join(option->results(), std::string_view(&between, 1))));
      continue;
    }
    for (const std::string& value : option->results()) line += ' ' + shell_word(value);
  }
  return line;
}

int write_report(const ReportArguments& arguments, const Outcome& outcome,
                 const std::function<std::string()>& page, const std::function<std::string()>& json,
                 const std::function<Document(const std::optional<TimelineStyle>&)>& table) {
  if (!arguments.trace.empty()) {
    const int written = write_trace(chrome_trace(outcome), arguments.trace);
    if (written != ExitCode::done) return written;
  }
  if (!arguments.report.empty()) {
    const int written = write_output(page(), arguments.report);
    if (written != ExitCode::done) return written;
  }
  std::optional<TimelineStyle> style;
  if (!arguments.no_timeline) style = timeline_style(arguments.page, arguments.output);
  const int written = write_output(
      arguments.json ? json() : table(style).print(page_width(arguments.page, arguments.output)),
      arguments.output);
  return written == ExitCode::done ? report_fit(outcome) : written;
}

}  // namespace plumbline
