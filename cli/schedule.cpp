// `plumbline schedule`: print the order of the ops.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <cstdio>
#include <memory>
#include <numeric>

#include "base/table.h"
#include "cli/command.h"
#include "cli/option_checks.h"
#include "sim/planning/predict.h"
#include "sim/report/dot.h"

namespace plumbline {

namespace {

/// "device 3", or the devices of all copies: "device 6-7".
std::vector<std::string> row_names(const TrainingSetup& setup) {
  std::vector<std::string> names;
  for (const DeviceId device : setup.devices) {
    std::vector<std::uint32_t> numbers(setup.copies());
    std::iota(numbers.begin(), numbers.end(), device.value * setup.copies());
    names.push_back("device " + alike_name(numbers));
  }
  return names;
}

/// `# plan.devices: [[0], [1], [0], [1]]`, for readers of the sequence, if its stages are not on
/// device 0, 1, ... in turn; else "".
std::string devices_line(const TrainingSetup& setup) {
  std::string stages;
  bool in_turn = true;
  for (std::size_t s = 0; s < setup.partition.stages.size(); ++s) {
    const std::vector<DeviceId>& devices = setup.partition.stages[s].devices;
    in_turn = in_turn && devices.size() == 1 && devices.front().value == s;
    stages += s == 0 ? "[" : ", [";
    for (std::size_t r = 0; r < devices.size(); ++r)
      stages += (r == 0 ? "" : ", ") + std::to_string(devices[r].value);
    stages += ']';
  }
  return in_turn ? "" : "# plan.devices: [" + stages + "]\n";
}

}  // namespace

void add_schedule(CLI::App& app, int& exit_code) {
  struct Arguments : ScenarioArguments {
    std::string format = "grid";
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "schedule", "print the order of the ops of one mini-batch, or of an asynchronous stream");
  add_scenario_arguments(*command, *arguments);
  command
      ->add_option("--format", arguments->format,
                   "grid: a column a step; torch-csv: PyTorch's file; sequence: as one host thread "
                   "launches it; dot: the graph of what waits for what, for Graphviz")
      ->check(one_of({"grid", "torch-csv", "sequence", "dot"}))
      ->capture_default_str();
  command->callback([arguments, &exit_code] {
    const auto scenario = load_scenario(*arguments);
    if (!scenario) return void(exit_code = fail(scenario.problems()));
    const auto setup = resolve_setup(*scenario, /*for_run=*/false);
    if (!setup) return void(exit_code = fail(setup.problems()));
    const Schedule& schedule = setup->schedule;
    Result<std::string> text = std::string();
    if (arguments->format == "grid") {
      text =
          replay_grid(schedule, row_names(*setup), page_width(arguments->page, arguments->output));
    } else if (arguments->format == "dot") {
      const auto graph = lower(*setup);
      if (!graph)
        return void(exit_code =
                        fail(located(graph.problems(), scenario->schedule.micro_batches_mark)));
      text = op_graph_dot(*graph);
    } else {
      text = arguments->format == "torch-csv" ? torch_csv(schedule)
                                              : devices_line(*setup) + issue_sequence(schedule);
    }
    if (!text) return void(exit_code = fail(text.problems()));
    if (const auto from = setup->stages_raised_from) {
      say(
          fmt::format("note: plan.stages is {}, raised to {}: the schedule puts {} on each "
                      "device (schedule.chunks)\n",
                      *from, setup->partition.stages.size(), setup->chunks));
    }
    exit_code = write_output(*text, arguments->output);
  });
}

}  // namespace plumbline
