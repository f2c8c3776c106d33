// `plumbline schedule`: print the order of the ops.
// SPDX-License-Identifier: MIT
#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <memory>

#include "cli/command.h"
#include "sim/dot.h"
#include "sim/predict.h"

namespace plumbline {

void add_schedule(CLI::App& app, int& exit_code) {
  struct Arguments : ScenarioArguments {
    std::string format = "grid";
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("schedule", "print the order of the ops of one mini-batch");
  add_scenario_arguments(*command, *arguments);
  command
      ->add_option("--format", arguments->format,
                   "grid: a column a step; torch-csv: PyTorch's file; sequence: as one host thread "
                   "launches it; dot: the graph of what waits for what, for Graphviz")
      ->check(CLI::IsMember({"grid", "torch-csv", "sequence", "dot"}))
      ->capture_default_str();
  command->callback([arguments, &exit_code] {
    const auto scenario = read_scenario(arguments->scenario, arguments->overrides);
    if (!scenario) return void(exit_code = fail(scenario.problems()));
    const auto pipeline = plan_pipeline(*scenario, /*for_run=*/false);
    if (!pipeline) return void(exit_code = fail(pipeline.problems()));
    const Schedule& schedule = pipeline->schedule;
    Result<std::string> text = std::string();
    if (arguments->format == "grid") {
      text = replay_grid(schedule, pipeline->devices);
    } else if (arguments->format == "dot") {
      const auto graph = lower_pipeline(*scenario, *pipeline);
      if (!graph) return void(exit_code = fail(graph.problems()));
      text = op_graph_dot(*graph);
    } else {
      text = arguments->format == "torch-csv" ? torch_csv(schedule) : issue_sequence(schedule);
    }
    if (!text) return void(exit_code = fail(text.problems()));
    exit_code = write_output(*text, arguments->output);
  });
}

}  // namespace plumbline
