// `plumbline memory`: what each device holds, and what would take less.
//
// SPDX-License-Identifier: MIT
#include <CLI/App.hpp>
#include <memory>

#include "calibrate/diagnosis/recorded_memory.h"
#include "cli/command.h"
#include "sim/planning/predict.h"
#include "sim/report/memory_report.h"

namespace plumbline {
namespace {

struct MemoryArguments : ScenarioArguments {
  bool json = false;
  std::string against;  ///< What was recorded; "" = nothing.
  std::string csv;
};

/// Prints the prediction beside what was recorded.
int show_beside(const MemoryArguments& arguments, const Outcome& outcome, Document text) {
  const auto recorded = read_recorded_memory(arguments.against);
  if (!recorded) return fail(recorded.problems());
  auto beside = memory_beside(outcome, *recorded);
  if (!beside) return fail(beside.problems());
  if (!arguments.csv.empty()) {
    const int code = write_output(memory_csv(outcome, *recorded), arguments.csv);
    if (code != ExitCode::done) return code;
  }
  text.append(*std::move(beside));
  return write_output(text.print(page_width(arguments.page, arguments.output)), arguments.output);
}

int show_memory(const MemoryArguments& arguments) {
  if (const int code = try_output(arguments.csv); code != ExitCode::done) return code;
  const auto scenario = load_scenario(arguments);
  if (!scenario) return fail(scenario.problems());
  const auto outcome = predict(*scenario, Evaluation::fastest);
  if (!outcome) return fail(outcome.problems());
  if (!arguments.against.empty()) {
    const int code = show_beside(arguments, *outcome, memory_table(*outcome, {}));
    return code == ExitCode::done ? report_fit(*outcome) : code;
  }
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
  CLI::Option* json = command->add_flag("--json", arguments->json, "print JSON and nothing else");
  CLI::Option* against =
      command
          ->add_option(
              "--against", arguments->against,
              "what scripts/memory-snapshot.py made of PyTorch's snapshots of the run, one "
              "of each device: predicted beside recorded")
          ->type_name("FILE")
          ->excludes(json);
  command->add_option("--csv", arguments->csv, "write both curves here")
      ->type_name("FILE")
      ->needs(against);
  command->callback([arguments, &exit_code] { exit_code = show_memory(*arguments); });
}

}  // namespace plumbline
