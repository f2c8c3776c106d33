// `plumbline simulate`: predict, and print a table or JSON.
// SPDX-License-Identifier: MIT
#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <memory>

#include "cli/command.h"
#include "sim/chrome_trace.h"
#include "sim/report.h"

namespace plumbline {

void add_simulate(CLI::App& app, int& exit_code) {
  struct Arguments : ScenarioArguments {
    bool json = false;
    std::string trace;
    std::size_t width = 0;  ///< 0 = the terminal's.
    bool no_timeline = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("simulate", "predict iteration time, throughput, bubbles and memory");
  add_scenario_arguments(*command, *arguments);
  command->add_flag("--json", arguments->json, "print JSON and nothing else");
  command
      ->add_option("--width", arguments->width, "columns of the timeline; absent = the terminal's")
      ->check(CLI::Range(20, 10'000))
      ->type_name("N");
  command->add_flag("--no-timeline", arguments->no_timeline, "leave the timeline out");
  command
      ->add_option("--trace", arguments->trace,
                   "write Chrome-trace JSON for Perfetto here; compressed if the name ends in .gz")
      ->type_name("FILE");
  command->callback([arguments, &exit_code] {
    const auto scenario = load_scenario(*arguments);
    if (!scenario) return void(exit_code = fail(scenario.problems()));
    const auto prediction = predict(*scenario);
    if (!prediction) return void(exit_code = fail(prediction.problems()));
    if (!arguments->trace.empty()) {
      exit_code = write_trace(chrome_trace(*prediction), arguments->trace);
      if (exit_code != ExitCode::done) return;
    }
    std::optional<TimelineStyle> style;
    if (!arguments->no_timeline) style = timeline_style(arguments->output, arguments->width);
    exit_code = write_output(
        arguments->json ? to_json(*prediction, kVersion) : to_table(*prediction, style),
        arguments->output);
    if (exit_code == ExitCode::done) exit_code = report_fit(*prediction);
  });
}

}  // namespace plumbline
