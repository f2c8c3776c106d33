// `plumbline order`: the best order for a scenario's costs, and how far it is from the optimum.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string_view>

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

/// Whether an override is of one of the keys.
bool is_of(const std::string& one, std::initializer_list<std::string_view> keys) {
  return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) {
    return one.starts_with(key) && one.substr(key.size()).starts_with('=');
  });
}

/// The time of the ops under the order of a file. A partition that was chosen with the order is
/// that of the file, too, where it has as many stages; else it is balanced.
Result<double> time_of_file(const OrderArguments& arguments, const OrderAnswer& answer) {
  std::vector<std::string> overrides;
  for (const std::string& one : arguments.overrides) {
    const bool is_wish = is_of(one, {"schedule.placement", "schedule.in_flight", "schedule.effort",
                                     "schedule.chunks", "schedule.name", "schedule.file"});
    if (!is_wish && !(answer.partition && is_of(one, {"plan.partition"}))) overrides.push_back(one);
  }
  for (const char* const gone : {"schedule.placement=null", "schedule.in_flight=null",
                                 "schedule.effort=null", "schedule.chunks=null"})
    overrides.emplace_back(gone);
  overrides.push_back("schedule.file=" + arguments.compare);
  if (answer.partition) overrides.emplace_back("plan.partition=balanced");
  auto scenario = read_scenario(arguments.scenario, overrides);
  if (!scenario) return scenario.problems();
  if (answer.partition && scenario->schedule.file->stages == answer.partition->layers.size())
    scenario->plan.partition = answer.partition->layers;
  const auto outcome = predict(*scenario, Evaluation::fastest);
  if (!outcome) return outcome.problems();
  return order_time_s(*outcome);
}

int order(const OrderArguments& arguments) {
  const std::vector<std::string> overrides = for_open_order(arguments.overrides);
  auto read = read_scenario(arguments.scenario, overrides);
  if (!read) return fail(read.problems());
  auto scenario = with_open_order(*std::move(read), overrides);
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
