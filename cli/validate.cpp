// `plumbline validate`: predict and run, and print the one beside the other.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <memory>

#include "calibrate/real_run.h"
#include "calibrate/run_report.h"
#include "cli/command.h"
#include "cli/real.h"
#include "sim/axes.h"
#include "sim/chrome_trace.h"
#include "sim/html_report.h"

namespace plumbline {
namespace {

struct ValidateArguments : ScenarioArguments, RealArguments {
  double tolerance = 0.05;
  bool json = false;
  std::string trace;
  std::string report;  ///< The HTML file; "" = none.
  std::string command_line;
};

/// Refuses a file that shows one run where there are several.
std::optional<Diagnostic> refuse_several(const std::string& option, const std::string& file,
                                         std::size_t runs) {
  if (runs <= 1 || file.empty()) return std::nullopt;
  Diagnostic wrong;
  wrong.message = fmt::format("{} with {} runs", option, runs);
  wrong.help = "it shows one run above its prediction: one scenario, one value for each key";
  return wrong;
}

int validate_all(const ValidateArguments& arguments) {
  if (const auto wrong = refuse_backend(arguments.backend)) return fail({*wrong});
  // What stands without a '=' is one more scenario.
  std::vector<std::string> paths = {arguments.scenario};
  std::vector<std::string> axes;
  for (const std::string& argument : arguments.overrides)
    (argument.find('=') == std::string::npos ? paths : axes).push_back(argument);
  const auto combined = combinations(axes);
  if (!combined) return fail(combined.problems());
  const std::size_t count = paths.size() * combined->size();
  if (const auto wrong = refuse_several("--trace", arguments.trace, count)) return fail({*wrong});
  if (const auto wrong = refuse_several("--report", arguments.report, count)) return fail({*wrong});
  if (const int code = try_output(arguments.report); code != ExitCode::done) return code;
  // All are read and predicted before the first one runs.
  std::vector<Scenario> scenarios;
  std::vector<Outcome> predictions;
  std::vector<std::vector<std::string>> names;
  const auto varying = varying_overrides(*combined);
  for (const std::string& path : paths) {
    names.insert(names.end(), varying.begin(), varying.end());
    for (const auto& overrides : *combined) {
      auto scenario = load_scenario({path, overrides, ""});
      if (!scenario) return fail(scenario.problems());
      auto prediction = predict(*scenario);
      if (!prediction) return fail(prediction.problems());
      scenarios.push_back(*std::move(scenario));
      predictions.push_back(*std::move(prediction));
    }
  }
  std::vector<ValidationPoint> points;
  {
    ProgressLine line;
    for (std::size_t i = 0; i < scenarios.size(); ++i) {
      RunOptions options = arguments.run;
      options.progress = [&](std::uint32_t done, std::uint32_t most) {
        line.tell(fmt::format("run {} of {}: iteration {} of at most {}", i + 1, scenarios.size(),
                              done, most));
      };
      const auto backend = make_backend(arguments, scenarios[i]);
      if (!backend) return fail(backend.problems());
      auto run = run_scenario(scenarios[i], **backend, options);
      if (!run) return fail(run.problems());
      points.push_back(
          {names[i], validate(std::move(predictions[i]), *std::move(run), arguments.tolerance)});
    }
  }
  if (!arguments.trace.empty()) {
    const Validation& v = points.front().validation;
    const int written =
        write_trace(chrome_trace({{v.predicted, "predicted "}, {v.measured.outcome, "measured "}}),
                    arguments.trace);
    if (written != ExitCode::done) return written;
  }
  if (!arguments.report.empty()) {
    const Validation& v = points.front().validation;
    const std::string page = html_report(
        scenarios.front(), {{v.predicted, "predicted"}, {v.measured.outcome, "measured"}},
        {arguments.command_line, kVersion, combined->front(), report_figures(v),
         report_remarks(v)});
    const int written = write_output(page, arguments.report);
    if (written != ExitCode::done) return written;
  }
  const int written =
      write_output(arguments.json ? to_json(points, kVersion) : to_table(points), arguments.output);
  if (written != ExitCode::done) return written;
  if (verdict_on(points) == Verdict::off) return ExitCode::check_failed;
  for (const ValidationPoint& point : points) {
    if (const int fit = report_fit(point.validation.predicted); fit != ExitCode::done) return fit;
  }
  return ExitCode::done;
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
      ->check(CLI::Range(0.0, 10.0))
      ->type_name("FRACTION")
      ->capture_default_str();
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
