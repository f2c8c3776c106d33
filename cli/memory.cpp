// `plumbline memory`: what each device holds, and what would take less.
//
// SPDX-License-Identifier: MIT
#include <CLI/App.hpp>
#include <memory>

#include "cli/command.h"
#include "sim/planning/predict.h"
#include "sim/report/memory_report.h"

namespace plumbline {
namespace {

struct MemoryArguments : ScenarioArguments {
  bool json = false;
};

int show_memory(const MemoryArguments& arguments) {
  const auto scenario = load_scenario(arguments);
  if (!scenario) return fail(scenario.problems());
  const auto outcome = predict(*scenario, Evaluation::fastest);
  if (!outcome) return fail(outcome.problems());
  const std::vector<WayToFit> ways =
      ways_to_fit(arguments.scenario, arguments.overrides, *scenario, *outcome);
  const int code = write_output(
      arguments.json
          ? memory_json(*outcome, ways, kVersion)
          : memory_table(*outcome, ways).print(page_width(arguments.page, arguments.output)),
      arguments.output);
  return code == ExitCode::done ? report_fit(*outcome) : code;
}

}  // namespace

void add_memory(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<MemoryArguments>();
  CLI::App* command =
      app.add_subcommand("memory", "what each device holds, by part, and what would take less");
  add_scenario_arguments(*command, *arguments);
  command->add_flag("--json", arguments->json, "print JSON and nothing else");
  command->callback([arguments, &exit_code] { exit_code = show_memory(*arguments); });
}

}  // namespace plumbline
