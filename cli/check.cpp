// `plumbline check`: read everything and check it, the fit into memory included; run nothing.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>

#include "cli/command.h"
#include "sim/dot.h"
#include "sim/predict.h"

namespace plumbline {

void add_check(CLI::App& app, int& exit_code) {
  struct Arguments : ScenarioArguments {
    bool graph = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("check", "read and check everything, run nothing");
  add_scenario_arguments(*command, *arguments);
  command->add_flag("--graph", arguments->graph, "print the layer graph for Graphviz instead");
  command->callback([arguments, &exit_code] {
    const auto scenario = load_scenario(*arguments);
    if (!scenario) return void(exit_code = fail(scenario.problems()));
    const auto prediction = predict(*scenario);
    if (!prediction) return void(exit_code = fail(prediction.problems()));
    if (exit_code = report_fit(*prediction); exit_code != ExitCode::done) return;
    const Pipeline& pipeline = prediction->pipeline;
    if (arguments->graph) {
      exit_code = write_output(layer_graph_dot(scenario->model.graph, pipeline.partition),
                               arguments->output);
      return;
    }
    std::string text = fmt::format(
        "{}: ok: layers {}, stages {}, devices {}, schedule {}, ops {}\n", arguments->scenario,
        scenario->model.graph.size(), pipeline.partition.stages.size(), prediction->graph.slots(),
        pipeline.schedule.name, prediction->metrics.operations);
    for (const std::string& note : pipeline.notes) text += "note: " + note + '\n';
    exit_code = write_output(text, arguments->output);
  });
}

}  // namespace plumbline
