// `plumbline run`: execute the schedule for real, and print the measurements.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>

#include "calibrate/runtime/real_run.h"
#include "calibrate/runtime/run_report.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/real.h"
#include "sim/report/html_report.h"

namespace plumbline {

void add_run(CLI::App& app, int& exit_code) {
  struct Arguments : ReportArguments, RealArguments {};
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("run", "execute the schedule for real, and print what was measured");
  add_report_arguments(*command, *arguments, "the shown iteration");
  add_real_arguments(*command, *arguments);
  command->callback([arguments, command, &exit_code] {
    exit_code = try_output(arguments->report);
    if (exit_code != ExitCode::done) return;
    if (const auto wrong = check_backend("--backend", arguments->backend))
      return void(exit_code = fail({*wrong}));
    const auto scenario = load_scenario(*arguments);
    if (!scenario) return void(exit_code = fail(scenario.problems()));
    const auto backend = recorded_backend(*arguments, *scenario);
    if (!backend) return void(exit_code = fail(backend.problems()));
    auto run = [&] {
      ProgressLine line;
      RunOptions options = arguments->run;
      options.progress = [&](std::uint32_t done, std::uint32_t max) {
        line.tell(fmt::format("iteration {} of at most {}", done, max));
      };
      return run_scenario(*scenario, **backend, options);
    }();
    if (!run) return void(exit_code = fail(run.problems()));
    exit_code = write_report(
        *arguments, run->outcome,
        [&] {
          return html_report(
              *scenario->source, {{run->outcome, "measured"}},
              {command_line(*command), kVersion, arguments->overrides, {}, report_remarks(*run)});
        },
        [&] { return to_json(*run, kVersion); },
        [&](const auto& style) { return to_table(*run, style); });
  });
}

}  // namespace plumbline
