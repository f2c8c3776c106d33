// `plumbline explain`: why a run takes its time, and what to speed up first.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "sim/report/explain_report.h"

namespace plumbline {
namespace {

struct ExplainArguments : ScenarioArguments {
  bool json = false;
  std::string op;
  std::optional<std::uint32_t> device;
};

int explain_one(const ExplainArguments& arguments) {
  const auto scenario = load_scenario(arguments);
  if (!scenario) return fail(scenario.problems());
  auto prediction = predict(*scenario);
  if (!prediction) return fail(prediction.problems());
  const Outcome& p = *prediction;
  if (!arguments.op.empty()) {
    const auto node = find_op(p.graph, arguments.op);
    if (!node) return fail({no_such_op(p, "--op", arguments.op)});
    return write_output(op_table(p, *node).print(page_width(arguments.page, arguments.output)),
                        arguments.output);
  }
  std::optional<DeviceId> device;
  if (arguments.device) {
    device = DeviceId{*arguments.device};
    if (std::find(p.graph.devices.begin(), p.graph.devices.end(), *device) ==
        p.graph.devices.end()) {
      Diagnostic wrong;
      wrong.message =
          fmt::format("--device is {}, which holds no stage of this run", *arguments.device);
      wrong.help = fmt::format("its {} devices are {} to {}", p.graph.devices.size(),
                               p.graph.devices.front().value, p.graph.devices.back().value);
      return fail({wrong});
    }
  }
  prediction->bubble_terms = bubble_terms(p);
  Explanation explanation = explain(p);
  if (!device) explanation.orders = other_orders(*scenario, arguments.overrides, p);
  const int written = write_output(
      arguments.json
          ? to_json(p, explanation, kVersion)
          : to_table(p, explanation, device).print(page_width(arguments.page, arguments.output)),
      arguments.output);
  return written == ExitCode::done ? report_fit(p) : written;
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ExplainArguments>();
  CLI::App* command =
      app.add_subcommand("explain", "critical path, causes of idle time, what to speed up first");
  add_scenario_arguments(*command, *arguments);
  CLI::Option* json = command->add_flag("--json", arguments->json, "print JSON and nothing else");
  CLI::Option* op = command->add_option("--op", arguments->op, "explain one op: 1F3")
                        ->type_name("OP")
                        ->excludes(json);
  command->add_option("--device", arguments->device, "say why one device was idle")
      ->type_name("N")
      ->excludes(json)
      ->excludes(op);
  command->callback([arguments, &exit_code] { exit_code = explain_one(*arguments); });
}

}  // namespace plumbline
