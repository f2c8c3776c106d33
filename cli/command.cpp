// Shared plumbing of the subcommands.
//
// SPDX-License-Identifier: MIT
#include "cli/command.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cli/option_checks.h"
#include "sim/planning/planning.h"
#include "sim/report/chrome_trace.h"
#include "sim/report/report.h"

namespace plumbline {

void add_scenario_arguments(CLI::App& command, ScenarioArguments& arguments) {
  command.add_option("scenario", arguments.scenario, "scenario file (YAML)")
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

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
  return size.ws_col;
}

}  // namespace

TimelineStyle timeline_style(const std::string& output, std::size_t width) {
  const bool on_terminal = output.empty() && isatty(STDOUT_FILENO) != 0;
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  TimelineStyle style;
  if (width > 0) {
    style.width = width;
  } else if (on_terminal) {
    style.width = terminal_width();
  }
  style.unicode = locale_is_utf8();
  style.color = on_terminal && !(no_color && *no_color != '\0') &&
                !(terminal && std::string_view(terminal) == "dumb");
  return style;
}

Result<Scenario> load_scenario(const ScenarioArguments& arguments) {
  auto scenario = read_scenario(arguments.scenario, arguments.overrides);
  if (!scenario) return scenario;
  return resolve_plan(*std::move(scenario));
}

int fail(const Diagnostics& problems) {
  std::fputs(to_text(problems).c_str(), stderr);
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
  std::fputs(fmt::format("error: {}\n", shortage(prediction)).c_str(), stderr);
  return ExitCode::infeasible;
}

void add_report_arguments(CLI::App& command, ReportArguments& arguments, const std::string& what) {
  add_scenario_arguments(command, arguments);
  command.add_flag("--json", arguments.json, "print JSON and nothing else");
  command
      .add_option("--width", arguments.width, "columns of the timeline; absent = the terminal's")
      ->check(between(20, 10'000))
      ->type_name("N");
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

std::string shell_word(const std::string& text) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./:,@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + '\'';
}

std::string command_line(const CLI::App& command) {
  std::string line = "plumbline " + command.get_name();
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0) continue;
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
                 const std::function<std::string(const std::optional<TimelineStyle>&)>& table) {
  if (!arguments.trace.empty()) {
    const int written = write_trace(chrome_trace(outcome), arguments.trace);
    if (written != ExitCode::done) return written;
  }
  if (!arguments.report.empty()) {
    const int written = write_output(page(), arguments.report);
    if (written != ExitCode::done) return written;
  }
  std::optional<TimelineStyle> style;
  if (!arguments.no_timeline) style = timeline_style(arguments.output, arguments.width);
  const int written = write_output(arguments.json ? json() : table(style), arguments.output);
  return written == ExitCode::done ? report_fit(outcome) : written;
}

}  // namespace plumbline
