// `plumbline validate`: predict and run, and print the one beside the other.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>

#include "calibrate/measure/recalibration.h"
#include "calibrate/runtime/real_run.h"
#include "calibrate/runtime/run_report.h"
#include "cli/command.h"
#include "cli/option_checks.h"
#include "cli/progress.h"
#include "cli/real.h"
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
  std::string report;  ///< The HTML file; "" = none.
  std::string command_line;
};

/// Refuses a file that shows one run where there are several.
std::optional<Diagnostic> check_several(const std::string& option, const std::string& file,
                                        std::size_t runs) {
  if (runs <= 1 || file.empty()) return std::nullopt;
  Diagnostic wrong;
  wrong.message = fmt::format("{} with {} runs", option, runs);
  wrong.help = "it shows one run above its prediction: one scenario, one value for each key";
  return wrong;
}

/// Why layers are not timed again, if that was asked for.
std::optional<Diagnostic> check_recalibration(const ValidateArguments& arguments) {
  if (!arguments.recalibrates || arguments.backend != "synthetic") return std::nullopt;
  return input_error({}, "--recalibrate with --backend synthetic: it has no layers to time",
                     "cpu and cuda time real kernels");
}

/// One of the runs, before it runs.
struct PlannedRun {
  Scenario scenario;
  Outcome prediction;
  std::vector<std::string> varying;  ///< The overrides that tell it from the others.
};

/// Reads and predicts all of them: every scenario with every combination.
Result<std::vector<PlannedRun>> planned_runs(const std::vector<std::string>& paths,
                                             const std::vector<std::vector<std::string>>& all) {
  std::vector<PlannedRun> planned;
  const auto varying = varying_overrides(all);
  for (const std::string& path : paths) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto scenario = load_scenario({path, all[i], ""});
      if (!scenario) return scenario.problems();
      auto prediction = predict(*scenario);
      if (!prediction) return prediction.problems();
      planned.push_back({*std::move(scenario), *std::move(prediction), varying[i]});
    }
  }
  return planned;
}

/// Runs all of them, round after round; with the layers timed before, between and after, where that
/// was asked for. What fails of that after a round is told as a remark: the runs are worth more.
Result<std::vector<RealRun>> run_rounds(const ValidateArguments& arguments,
                                        const std::vector<PlannedRun>& planned,
                                        Recalibrations& recalibrations) {
  ProgressLine line;
  const std::string of_rounds =
      arguments.rounds > 1 ? fmt::format(", of {} rounds", arguments.rounds) : "";
  const auto time_layers = [&] {
    if (arguments.recalibrates) line.tell("the layers are timed again");
    return recalibrations.measure_pass();
  };
  if (auto failed = time_layers()) return *failed;
  RealArguments on_same_devices = arguments;
  on_same_devices.cuda.pool = cuda_device_pool();
  std::string untimed;  // why the layers were timed no more
  std::vector<std::vector<RealRun>> runs(planned.size());
  for (std::uint32_t round = 0; round < arguments.rounds; ++round) {
    for (std::size_t i = 0; i < planned.size(); ++i) {
      RunOptions options = arguments.run;
      options.iterations = (options.iterations + arguments.rounds - 1) / arguments.rounds;
      options.progress = [&](std::uint32_t done, std::uint32_t max) {
        line.tell(fmt::format("run {} of {}{}: iteration {} of at most {}",
                              round * planned.size() + i + 1, planned.size() * arguments.rounds,
                              of_rounds, done, max));
      };
      const auto backend = make_backend(on_same_devices, planned[i].scenario);
      if (!backend) return backend.problems();
      auto run = run_scenario(planned[i].scenario, **backend, options);
      if (!run) return run.problems();
      runs[i].push_back(*std::move(run));
    }
    if (!untimed.empty()) continue;
    if (const auto failed = time_layers())
      untimed = "the layers were timed no more: " + failed->front().message;
  }
  std::vector<RealRun> all;
  all.reserve(runs.size());
  for (std::vector<RealRun>& rounds : runs) {
    all.push_back(together(std::move(rounds)));
    if (!untimed.empty()) all.back().remarks.push_back(untimed);
  }
  return all;
}

/// Compares each run with its prediction, and with what the layers' times of now predict, where
/// they are known.
Result<std::vector<ValidationPoint>> compared(const ValidateArguments& arguments,
                                              std::vector<PlannedRun> planned,
                                              std::vector<RealRun> runs,
                                              const Recalibrations& recalibrations) {
  std::vector<ValidationPoint> points;
  points.reserve(planned.size());
  for (std::size_t i = 0; i < planned.size(); ++i) {
    PlannedRun& one = planned[i];
    std::optional<Outcome> again;
    if (arguments.recalibrates) {
      auto predicted = recalibrations.predict(one.scenario, one.prediction);
      if (!predicted) return predicted.problems();
      again = *std::move(predicted);
      runs[i].remarks.push_back(recalibrations.of(one.scenario, one.prediction).remark());
    }
    points.push_back({one.varying, validate(std::move(one.prediction), std::move(runs[i]),
                                            arguments.tolerance, again ? &*again : nullptr)});
  }
  return points;
}

int validate_all(const ValidateArguments& arguments) {
  if (const auto wrong = check_backend(arguments.backend)) return fail({*wrong});
  if (const auto wrong = check_recalibration(arguments)) return fail({*wrong});
  // What stands without a '=' is one more scenario.
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
  auto planned = planned_runs(paths, *combined);
  if (!planned) return fail(planned.problems());
  const Scenario first = planned->front().scenario;
  Recalibrations recalibrations([&](const Network& network, const CalibrationOptions& options) {
    return open_devices(arguments.backend, network, options.devices, {arguments.cuda});
  });
  if (arguments.recalibrates) {
    for (const PlannedRun& one : *planned) {
      if (const auto refused = recalibrations.add(one.scenario, one.prediction))
        return fail(*refused);
    }
  }

  // Run, and compare.
  auto runs = run_rounds(arguments, *planned, recalibrations);
  if (!runs) return fail(runs.problems());
  const auto compared_points =
      compared(arguments, *std::move(planned), *std::move(runs), recalibrations);
  if (!compared_points) return fail(compared_points.problems());
  const std::vector<ValidationPoint>& points = *compared_points;

  // Tell.
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
        html_report(*first.source, {{v.predicted, "predicted"}, {v.measured.outcome, "measured"}},
                    {arguments.command_line, kVersion, combined->front(), report_figures(v),
                     report_remarks(v)});
    const int written = write_output(page, arguments.report);
    if (written != ExitCode::done) return written;
  }
  const int written =
      write_output(arguments.json ? to_json(points, kVersion) : to_table(points), arguments.output);
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
  command->callback([arguments, command, &exit_code] {
    arguments->command_line = command_line(*command);
    exit_code = validate_all(*arguments);
  });
}

}  // namespace plumbline
