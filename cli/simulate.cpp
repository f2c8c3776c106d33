// `plumbline simulate`: predict, and print a table or JSON.
//
// SPDX-License-Identifier: MIT
#include <CLI/App.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/emit.h"
#include "sim/prediction/uncertainty.h"
#include "sim/report/html_report.h"
#include "sim/report/report.h"

namespace plumbline {

namespace {

struct SimulateArguments : ReportArguments {
  std::string emit;  ///< A launcher; "" = the table or JSON.
};

}  // namespace

void add_simulate(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SimulateArguments>();
  CLI::App* command =
      app.add_subcommand("simulate", "predict iteration time, throughput, bubbles and memory");
  add_report_arguments(*command, *arguments, "the run");
  add_emit_option(*command, arguments->emit);
  command->callback([arguments, command, &exit_code] {
    exit_code = try_output(arguments->report);
    if (exit_code != ExitCode::done) return;
    const auto scenario = load_scenario(*arguments);
    if (!scenario) return void(exit_code = fail(scenario.problems()));
    auto prediction = predict(*scenario);
    if (!prediction) return void(exit_code = fail(prediction.problems()));
    if (!arguments->emit.empty())
      return void(exit_code =
                      emit_launch(arguments->emit, *scenario, *prediction, arguments->output));
    if (auto note = lockstep_note(*prediction)) prediction->setup.notes.push_back(*std::move(note));
    prediction->bubble_terms = bubble_terms(*prediction);
    exit_code = write_report(
        *arguments, *prediction,
        [&] {
          return html_report(*scenario->source, {{*prediction, "predicted"}},
                             {command_line(*command), kVersion, arguments->overrides, {}, {}});
        },
        [&] { return to_json(*prediction, kVersion); },
        [&](const auto& style) { return to_table(*prediction, style); });
  });
}

}  // namespace plumbline
