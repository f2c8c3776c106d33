// `plumbline diagnose`: read the traces of a run that another framework made, and say where its
// time went.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <filesystem>
#include <memory>
#include <system_error>

#include "calibrate/diagnosis/against.h"
#include "calibrate/diagnosis/diagnosis.h"
#include "calibrate/diagnosis/diagnosis_report.h"
#include "calibrate/runtime/run_report.h"
#include "cli/command.h"
#include "cli/option_checks.h"
#include "cli/trace_options.h"
#include "sim/report/chrome_trace.h"
#include "sim/report/html_report.h"

namespace plumbline {
namespace {

struct DiagnoseArguments {
  std::vector<std::string> traces;
  TraceChoice choice;
  RunText text;
  std::string scenario;  ///< The file to write; "" = none.
  std::string csv;
  std::string trace;
  std::string report;
  bool json = false;
  bool no_timeline = false;
  bool grid = false;
  std::string order;  ///< The file for the order; "" = none.
  PageArguments page;
  std::string command_line;
};

/// "run.order.csv" for "run.yaml".
std::string order_path(const std::string& scenario) {
  std::filesystem::path path(scenario.empty() ? "run.yaml" : scenario);
  return path.replace_extension(".order.csv").string();
}

/// The run above the prediction of its scenario.
std::string page_of(const Diagnosis& diagnosis, const DiagnoseArguments& arguments) {
  Source source;
  source.name = arguments.scenario.empty() ? "recorded run" : arguments.scenario;
  source.text = diagnosis.scenario.yaml;
  std::vector<std::string> remarks = report_remarks(diagnosis.measured);
  return html_report(source,
                     {{*diagnosis.replayed, "predicted"}, {diagnosis.measured.outcome, "measured"}},
                     {arguments.command_line, kVersion, {}, {}, remarks});
}

int write_files(const Diagnosis& diagnosis, const DiagnoseArguments& arguments) {
  if (!arguments.scenario.empty()) {
    if (const int code = write_output(diagnosis.scenario.yaml, arguments.scenario);
        code != ExitCode::done)
      return code;
    if (!diagnosis.scenario.order.empty()) {
      const int code = write_output(diagnosis.scenario.order, order_path(arguments.scenario));
      if (code != ExitCode::done) return code;
    }
  }
  if (!arguments.order.empty()) {
    const int code =
        write_output(torch_csv(diagnosis.measured.outcome.setup.schedule), arguments.order);
    if (code != ExitCode::done) return code;
  }
  if (!arguments.csv.empty()) {
    const int code = write_output(ops_csv(diagnosis), arguments.csv);
    if (code != ExitCode::done) return code;
  }
  if (!arguments.trace.empty()) {
    const int code = write_trace(chrome_trace({{*diagnosis.replayed, "predicted "},
                                               {diagnosis.measured.outcome, "measured "}}),
                                 arguments.trace);
    if (code != ExitCode::done) return code;
  }
  if (arguments.report.empty()) return ExitCode::done;
  return write_output(page_of(diagnosis, arguments), arguments.report);
}

/// The order of all devices, step by step.
int print_grid(const Diagnosis& diagnosis, const DiagnoseArguments& arguments) {
  const Outcome& outcome = diagnosis.measured.outcome;
  std::vector<std::string> names;
  for (std::size_t slot = 0; slot < outcome.graph.slots(); ++slot)
    names.push_back("device " + outcome.device_name(slot));
  const auto grid = replay_grid(outcome.setup.schedule, names, page_width(arguments.page, ""));
  if (!grid) return fail(grid.problems());
  return write_output(*grid, "");
}

/// An error if the order beside the scenario would be written over another file of the command.
std::optional<Diagnostic> check_order_path(const DiagnoseArguments& arguments,
                                           const TraceFiles& traces) {
  if (arguments.scenario.empty()) return std::nullopt;
  const std::string path = order_path(arguments.scenario);
  std::vector<std::string> others = traces;
  others.insert(others.end(), {arguments.order, arguments.csv, arguments.trace, arguments.report});
  std::error_code ignored;
  const auto canonical = [&](const std::string& file) {
    return std::filesystem::weakly_canonical(file, ignored);
  };
  for (const std::string& other : others) {
    if (other.empty() || canonical(other) != canonical(path)) continue;
    return input_error({}, fmt::format("--output would also write '{}'", clipped(path)),
                       "name another file: that one has another use in this command");
  }
  return std::nullopt;
}

int diagnose_all(const DiagnoseArguments& arguments) {
  for (const std::string& file :
       {arguments.scenario, arguments.order, arguments.csv, arguments.report, arguments.trace}) {
    if (const int code = try_output(file); code != ExitCode::done) return code;
  }
  const auto names = names_of(arguments.choice);
  if (!names) return fail(names.problems());
  const auto runs = runs_of(arguments.traces);
  if (!runs) return fail(runs.problems());
  if (const auto wrong = check_order_path(arguments, runs->front())) return fail({*wrong});
  if (runs->size() > 1)
    return fail({input_error({}, fmt::format("{} folders and files of several runs", runs->size()),
                             "diagnose reads one run: one folder, or its traces")});
  const ReadTraces traces = read_traces(runs->front(), *names);
  // What is known of each trace helps to find the one that is missing or wrong.
  const auto give_up = [&](const Diagnostics& problems) {
    say(overview(traces.recordings).print());
    return fail(problems);
  };
  if (!traces.problems.empty()) return give_up(traces.problems);
  if (const auto wrong = check_templates(*names, traces.recordings); !wrong.empty())
    return fail(wrong);
  DiagnosisOptions options{arguments.choice.assembly, arguments.text};
  options.text.made_by = arguments.command_line;
  options.text.order_path =
      std::filesystem::path(order_path(arguments.scenario)).filename().string();
  const auto diagnosis = diagnose(traces.recordings, options);
  if (!diagnosis) return give_up(diagnosis.problems());
  if (const int code = write_files(*diagnosis, arguments); code != ExitCode::done) return code;
  if (arguments.grid) return print_grid(*diagnosis, arguments);
  if (arguments.json) return write_output(to_json(*diagnosis, kVersion), "");
  const auto style =
      arguments.no_timeline ? std::nullopt : std::optional(timeline_style(arguments.page, ""));
  return write_output(to_table(*diagnosis, style).print(page_width(arguments.page, "")), "");
}

}  // namespace

void add_diagnose(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<DiagnoseArguments>();
  CLI::App* command = app.add_subcommand(
      "diagnose",
      "read the profiler traces of all ranks of a training run, and say where its time went");
  command
      ->add_option("trace", arguments->traces,
                   "the traces, one of each rank: JSON, plain or .gz; or a folder with them")
      ->required()
      ->type_name("TRACE");
  command
      ->add_option("-o,--output", arguments->scenario,
                   "write the run as a scenario here, to ask what-ifs of; its order next to it "
                   "where no known schedule has it")
      ->type_name("FILE");
  command->add_option("--name", arguments->text.name, "of that scenario")
      ->type_name("NAME")
      ->capture_default_str();
  command
      ->add_option(
          "--layers", arguments->text.layers,
          "equal layers of each stage in the scenario, which plan.partition can move: such "
          "as 3,2, or one number for all; absent: one")
      ->delimiter(',')
      ->check(between(1, 100'000))
      ->type_name("N,...");
  CLI::Option* json = command->add_flag("--json", arguments->json, "print JSON and nothing else");
  command->add_flag("--grid", arguments->grid, "print the order of all devices and nothing else")
      ->excludes(json);
  command
      ->add_option("--order", arguments->order,
                   "write the order here, as PyTorch reads it: schedule.file takes it")
      ->type_name("FILE");
  command->add_option("--csv", arguments->csv, "write every op here, one a row")->type_name("FILE");
  command
      ->add_option("--trace", arguments->trace,
                   "write the run, on one clock, below its prediction as Chrome-trace JSON for "
                   "Perfetto here; compressed if the name ends in .gz")
      ->type_name("FILE");
  add_html_option(*command, arguments->report);
  command->add_flag("--no-timeline", arguments->no_timeline, "leave the timeline out");
  add_trace_options(*command, arguments->choice);
  add_page_arguments(*command, arguments->page);
  command->callback([arguments, command, &exit_code] {
    arguments->command_line = command_line(*command);
    exit_code = diagnose_all(*arguments);
  });
}

}  // namespace plumbline
