// `plumbline run`: execute the schedule for real, and print what was measured.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <memory>

#include "calibrate/real_run.h"
#include "calibrate/run_report.h"
#include "cli/command.h"
#include "cli/real.h"
#include "sim/chrome_trace.h"

namespace plumbline {

void add_run(CLI::App& app, int& exit_code) {
  struct Arguments : ScenarioArguments, RealArguments {
    bool json = false;
    std::string trace;
    std::size_t width = 0;  ///< 0 = the terminal's.
    bool no_timeline = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("run", "execute the schedule for real, and print what was measured");
  add_scenario_arguments(*command, *arguments);
  add_real_arguments(*command, *arguments);
  command->add_flag("--json", arguments->json, "print JSON and nothing else");
  command
      ->add_option("--width", arguments->width, "columns of the timeline; absent = the terminal's")
      ->check(CLI::Range(20, 10'000))
      ->type_name("N");
  command->add_flag("--no-timeline", arguments->no_timeline, "leave the timeline out");
  command
      ->add_option("--trace", arguments->trace,
                   "write the shown iteration as Chrome-trace JSON for Perfetto here; compressed "
                   "if the name ends in .gz")
      ->type_name("FILE");
  command->callback([arguments, &exit_code] {
    if (const auto wrong = refuse_backend(arguments->backend))
      return void(exit_code = fail({*wrong}));
    const auto scenario = load_scenario(*arguments);
    if (!scenario) return void(exit_code = fail(scenario.problems()));
    const auto backend = make_backend(*arguments, *scenario);
    if (!backend) return void(exit_code = fail(backend.problems()));
    auto run = [&] {
      ProgressLine line;
      RunOptions options = arguments->run;
      options.progress = [&](std::uint32_t done, std::uint32_t most) {
        line.tell(fmt::format("iteration {} of at most {}", done, most));
      };
      return run_scenario(*scenario, **backend, options);
    }();
    if (!run) return void(exit_code = fail(run.problems()));
    if (!arguments->trace.empty()) {
      exit_code = write_trace(chrome_trace(run->outcome), arguments->trace);
      if (exit_code != ExitCode::done) return;
    }
    std::optional<TimelineStyle> style;
    if (!arguments->no_timeline) style = timeline_style(arguments->output, arguments->width);
    exit_code = write_output(arguments->json ? to_json(*run, kVersion) : to_table(*run, style),
                             arguments->output);
    if (exit_code == ExitCode::done) exit_code = report_fit(run->outcome);
  });
}

}  // namespace plumbline
