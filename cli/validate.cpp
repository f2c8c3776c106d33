// `plumbline validate`: predict and run, and print both side by side.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>

#include "base/table.h"
#include "calibrate/diagnosis/against.h"
#include "calibrate/diagnosis/diagnosis.h"
#include "calibrate/runtime/run_report.h"
#include "calibrate/validate/validate_runs.h"
#include "cli/command.h"
#include "cli/option_checks.h"
#include "cli/progress.h"
#include "cli/real.h"
#include "cli/trace_options.h"
#include "sim/report/chrome_trace.h"
#include "sim/report/html_report.h"
#include "sim/scenario/axes.h"

namespace plumbline {
namespace {

struct ValidateArguments : ScenarioArguments, RealArguments {
  double tolerance = 0.05;
  std::uint32_t rounds = 1;
  bool recalibrates = false;
  bool json = false;
  std::string trace;
  std::string report;                ///< The HTML file; "" = none.
  std::vector<std::string> against;  ///< Traces of recorded runs; empty = a backend runs.
  TraceChoice traces;
  std::string command_line;
};

/// An error if a file for one run is requested for several runs.
std::optional<Diagnostic> check_several(const std::string& option, const std::string& file,
                                        std::size_t runs) {
  if (runs <= 1 || file.empty()) return std::nullopt;
  Diagnostic wrong;
  wrong.message = fmt::format("{} with {} runs", option, runs);
  wrong.help = "it shows one run above its prediction: one scenario, one value for each key";
  return wrong;
}

/// An error if layers cannot be timed again, but that was requested.
std::optional<Diagnostic> check_recalibration(const ValidateArguments& arguments) {
  if (!arguments.recalibrates || arguments.backend != "synthetic") return std::nullopt;
  return input_error({}, "--recalibrate with --backend synthetic: it has no layers to time",
                     "cpu and cuda time real kernels");
}

/// An error if there is neither a backend nor a recorded run, or both.
std::optional<Diagnostic> check_measurement(const ValidateArguments& arguments) {
  const std::string help =
      "--backend runs the scenario here; --against compares it with a run that was recorded";
  if (!arguments.against.empty()) {
    if (arguments.backend.empty() && !arguments.recalibrates) return std::nullopt;
    return input_error({}, "--against with --backend or --recalibrate: nothing runs here", help);
  }
  if (!arguments.backend.empty()) return check_backend("--backend", arguments.backend);
  return input_error(
      {}, "plumbline validate needs --backend: what runs the ops (plumbline list backends)", help);
}

/// "run 3 of 8, of 2 rounds: iteration 4 of at most 20".
std::string progress_text(const ValidationStep& step, std::uint32_t rounds) {
  if (step.times_layers) return "the layers are timed again";
  return fmt::format("run {} of {}{}: iteration {} of at most {}", step.run, step.runs,
                     rounds > 1 ? fmt::format(", of {} rounds", rounds) : "", step.iteration,
                     step.max_iterations);
}

/// Runs all of them as requested, and shows progress.
Result<std::vector<ValidationPoint>> validate_with_progress(const ValidateArguments& arguments,
                                                            std::vector<PlannedRun> planned) {
  ProgressLine line;
  RealArguments on_same_devices = arguments;
  on_same_devices.cuda.pool = cuda_device_pool();
  ValidationOptions options;
  options.backend = [&](const Scenario& scenario) {
    return recorded_backend(on_same_devices, scenario);
  };
  options.run = arguments.run;
  options.rounds = arguments.rounds;
  options.tolerance = arguments.tolerance;
  if (arguments.recalibrates) {
    options.devices = [&](const Network& network, const CalibrationOptions& calibration) {
      return recorded_devices(arguments.backend, network, calibration.devices, arguments.cuda);
    };
  }
  options.progress = [&](const ValidationStep& step) {
    line.tell(progress_text(step, arguments.rounds));
  };
  return validate_runs(std::move(planned), options);
}

/// The recorded runs, as many as there are predictions. Errors: another number of them; those of
/// reading and assembling.
Result<std::vector<RecordedRun>> recorded_runs(const ValidateArguments& arguments,
                                               std::size_t predictions) {
  const auto names = names_of(arguments.traces);
  if (!names) return names.problems();
  const auto words = runs_of(arguments.against);
  if (!words) return words.problems();
  if (words->size() != predictions)
    return input_error({},
                       fmt::format("--against {} beside {}", plural(words->size(), "recorded run"),
                                   plural(predictions, "prediction")),
                       "a folder has the traces of one run; runs stand in the order of scenarios "
                       "and values");
  std::vector<RecordedRun> runs;
  for (const TraceFiles& files : *words) {
    const ReadTraces traces = read_traces(files, *names);
    if (!traces.problems.empty()) return traces.problems;
    if (auto wrong = check_templates(*names, traces.recordings); !wrong.empty()) return wrong;
    auto run = assemble(traces.recordings, arguments.traces.assembly);
    if (!run) return run.problems();
    runs.push_back(*std::move(run));
  }
  return runs;
}

/// Runs all of them, or takes the recorded runs, and compares.
Result<std::vector<ValidationPoint>> validated(const ValidateArguments& arguments,
                                               std::vector<PlannedRun> planned) {
  if (arguments.against.empty()) return validate_with_progress(arguments, std::move(planned));
  const auto runs = recorded_runs(arguments, planned.size());
  if (!runs) return runs.problems();
  return validate_against(std::move(planned), *runs, arguments.tolerance);
}

int validate_all(const ValidateArguments& arguments) {
  if (const auto wrong = check_measurement(arguments)) return fail({*wrong});
  if (const auto wrong = check_recalibration(arguments)) return fail({*wrong});
  // A word without a '=' is one more scenario.
  std::vector<std::string> paths = {arguments.scenario};
  std::vector<std::string> axes;
  for (const std::string& argument : arguments.overrides)
    (argument.find('=') == std::string::npos ? paths : axes).push_back(argument);
  const auto combined = combinations(axes);
  if (!combined) return fail(combined.problems());
  const std::size_t count = paths.size() * combined->size();
  if (const auto wrong = check_several("--trace", arguments.trace, count)) return fail({*wrong});
  if (const auto wrong = check_several("--report", arguments.report, count)) return fail({*wrong});
  if (const int code = try_output(arguments.report); code != ExitCode::done) return code;

  // All are read and predicted before the first one runs.
  auto planned = plan_runs(paths, *combined,
                           arguments.against.empty() ? Beside::own_run : Beside::recorded_run);
  if (!planned) return fail(planned.problems());
  const std::shared_ptr<const Source> source = planned->front().scenario.source;
  const auto compared = validated(arguments, *std::move(planned));
  if (!compared) return fail(compared.problems());
  const std::vector<ValidationPoint>& points = *compared;

  // Print.
  if (!arguments.trace.empty()) {
    const Validation& v = points.front().validation;
    const int written =
        write_trace(chrome_trace({{v.predicted, "predicted "}, {v.measured.outcome, "measured "}}),
                    arguments.trace);
    if (written != ExitCode::done) return written;
  }
  if (!arguments.report.empty()) {
    const Validation& v = points.front().validation;
    const std::string page =
        html_report(*source, {{v.predicted, "predicted"}, {v.measured.outcome, "measured"}},
                    {arguments.command_line, kVersion, combined->front(), report_figures(v),
                     report_remarks(v)});
    const int written = write_output(page, arguments.report);
    if (written != ExitCode::done) return written;
  }
  const int written = write_output(
      arguments.json ? to_json(points, kVersion)
                     : to_table(points).print(page_width(arguments.page, arguments.output)),
      arguments.output);
  if (written != ExitCode::done) return written;
  const int verdict = exit_code_of(verdict_on(points));
  if (verdict == ExitCode::check_failed) return verdict;
  for (const ValidationPoint& point : points) {
    if (const int fit = report_fit(point.validation.predicted); fit != ExitCode::done) return fit;
  }
  return verdict;
}

}  // namespace

void add_validate(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ValidateArguments>();
  CLI::App* command = app.add_subcommand(
      "validate", "predict and run, and print the one beside the other; key=a,b,c for several");
  add_scenario_arguments(*command, *arguments);
  add_real_arguments(*command, *arguments);
  command->get_option("--backend")->required(false);
  command
      ->add_option("--tolerance", arguments->tolerance,
                   "the relative error of the iteration time that still passes")
      ->check(between_reals(0.0, 10.0))
      ->type_name("FRACTION")
      ->capture_default_str();
  command
      ->add_option("--rounds", arguments->rounds,
                   "measure in so many rounds, in each of which every run has its part of the "
                   "iterations: what a machine does meanwhile meets all of them")
      ->check(between(1, 1000))
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--recalibrate", arguments->recalibrates,
                    "cpu, cuda: time the layers again before, between and after the rounds, to "
                    "tell how much of the error is the profile's age");
  command->add_flag("--json", arguments->json, "print JSON and nothing else");
  command
      ->add_option("--trace", arguments->trace,
                   "write both as Chrome-trace JSON for Perfetto here, one above the other; "
                   "compressed if the name ends in .gz")
      ->type_name("FILE");
  add_html_option(*command, arguments->report);
  CLI::Option* const against =
      command
          ->add_option(
              "--against", arguments->against,
              "in the place of a backend: the traces of a run of another framework, one of "
              "each rank, or a folder with them; a folder for each run")
          ->type_name("TRACE");
  add_trace_options(*command, arguments->traces);
  for (const char* const name : {"--forward", "--backward", "--backward-input", "--backward-weight",
                                 "--update", "--stages", "--copy", "--skip"})
    command->get_option(name)->needs(against);
  // What a run of a backend takes; nothing runs here.
  for (const char* const name :
       {"--iterations", "--warm-up", "--rounds", "--spread", "--one-gpu", "--nccl"})
    against->excludes(command->get_option(name));
  command->callback([arguments, command, &exit_code] {
    arguments->command_line = command_line(*command);
    exit_code = validate_all(*arguments);
  });
}

}  // namespace plumbline
