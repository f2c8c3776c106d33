// `plumbline order`: the best order for a scenario's costs, and how far it is from the optimum.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <memory>

#include "base/quantity.h"
#include "cli/command.h"
#include "cli/emit.h"
#include "schedules/files/lowered_csv.h"
#include "sim/planning/found_order.h"
#include "sim/report/order_report.h"

namespace plumbline {

namespace {

struct OrderArguments : ScenarioArguments {
  std::string compare;
  bool communication = false;
  bool json = false;
  std::string emit;  ///< A launcher; "" = the report.
};

/// The time of the ops under the order of a file.
Result<double> time_of_file(const OrderArguments& arguments, const OrderAnswer& answer) {
  std::vector<std::string> overrides;
  for (const std::string& one : arguments.overrides) {
    const bool is_wish = one.starts_with("schedule.placement=") ||
                         one.starts_with("schedule.in_flight=") ||
                         one.starts_with("schedule.effort=") || one.starts_with("schedule.name=");
    if (!is_wish) overrides.push_back(one);
  }
  for (const char* const gone : {"schedule.placement=null", "schedule.in_flight=null",
                                 "schedule.effort=null", "schedule.chunks=null"})
    overrides.emplace_back(gone);
  if (answer.partition) {
    overrides.push_back(
        fmt::format("plan.partition=[{}]", fmt::join(answer.partition->layers, ", ")));
  }
  overrides.push_back("schedule.file=" + arguments.compare);
  const auto scenario = read_scenario(arguments.scenario, overrides);
  if (!scenario) return scenario.problems();
  const auto outcome = predict(*scenario, Evaluation::fastest);
  if (!outcome) return outcome.problems();
  return time_of_ops(*outcome);
}

int order(const OrderArguments& arguments) {
  auto read = read_scenario(arguments.scenario, arguments.overrides);
  if (!read) return fail(read.problems());
  auto scenario = with_open_order(*std::move(read), arguments.overrides);
  if (!scenario) return fail(scenario.problems());
  auto answer = answer_order(*std::move(scenario));
  if (!answer) return fail(answer.problems());
  const auto setup = resolve_setup(answer->scenario, /*for_run=*/false);
  if (!setup) return fail(setup.problems());
  OrderReport report{*answer, *setup, {}, {}};
  if (!arguments.compare.empty()) {
    const auto time = time_of_file(arguments, *answer);
    if (!time) return fail(time.problems());
    report.compared = arguments.compare;
    report.compared_s = *time;
  }
  if (!arguments.output.empty()) {
    const std::string csv =
        arguments.communication ? lowered_csv(setup->schedule) : torch_csv(setup->schedule);
    if (const int code = write_output(csv, arguments.output)) return code;
  }
  if (arguments.emit.empty()) {
    return write_output(arguments.json ? order_json(report, kVersion)
                                       : order_text(report, page_width(arguments.page, "")),
                        "");
  }
  const auto outcome = predict(answer->scenario, Evaluation::fastest);
  if (!outcome) return fail(outcome.problems());
  return emit_launch(arguments.emit, answer->scenario, *outcome, "", {}, arguments.output);
}

}  // namespace

void add_order(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<OrderArguments>();
  CLI::App* command = app.add_subcommand(
      "order", "find the best order for these costs, and tell how far it can be from the optimum");
  add_scenario_arguments(*command, *arguments);
  command
      ->add_option("--compare", arguments->compare,
                   "an order in a file, to be timed with the same costs")
      ->type_name("FILE");
  command->add_flag("--communication", arguments->communication,
                    "write SEND and RECV too, as PyTorch's runtime takes them");
  command->add_flag("--json", arguments->json, "print JSON and nothing else");
  add_emit_option(*command, arguments->emit);
  command->get_option("--emit")->excludes(command->get_option("--communication"));
  command->get_option("--emit")->excludes(command->get_option("--json"));
  command->callback([arguments, &exit_code] { exit_code = order(*arguments); });
}

}  // namespace plumbline
