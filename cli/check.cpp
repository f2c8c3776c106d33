// `plumbline check`: read everything and check it, the fit into memory and what is expected
// included; run nothing.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <map>
#include <memory>
#include <string_view>

#include "base/document.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/option_checks.h"
#include "cli/replay.h"
#include "models/kernels/kernel_table_reader.h"
#include "models/network/network_reader.h"
#include "models/profile/profile_reader.h"
#include "sim/planning/predict.h"
#include "sim/report/dot.h"
#include "sim/report/network_report.h"
#include "sim/report/stage_table.h"
#include "sim/scenario/model_section.h"
#include "sim/whatif/expectation.h"

namespace plumbline {
namespace {

/// The kind that the file states: "network", "profile", "kernels". "" for a scenario, or for a file
/// that cannot be read; its own reader reports that.
std::string kind_of(const std::string& path) {
  const auto root = read_yaml(path);
  if (!root || root->kind != YamlNode::Kind::map) return "";
  for (const YamlNode::Entry& entry : root->entries) {
    if (entry.key == "kind") return entry.value.text;
  }
  return "";
}

int check_network(const ScenarioArguments& arguments, std::int64_t batch) {
  const auto network = read_network(arguments.scenario);
  if (!network) return fail(network.problems());
  return write_output(to_table(*network, batch).print(page_width(arguments.page, arguments.output)),
                      arguments.output);
}

int check_profile(const ScenarioArguments& arguments) {
  const auto model = read_profile(arguments.scenario);
  if (!model) return fail(model.problems());
  return write_output(
      fmt::format("{}: ok: a profile of {} layers at {} batch size{}\n", arguments.scenario,
                  model->graph.size(), model->profile.measurements.size(),
                  model->profile.measurements.size() == 1 ? "" : "s"),
      arguments.output);
}

int check_kernels(const ScenarioArguments& arguments) {
  const auto table = read_kernel_table(arguments.scenario);
  if (!table) return fail(table.problems());
  Document text;
  text.sentence(fmt::format("{}: ok: {} of kernels, of {}", arguments.scenario,
                            plural(table->rows.size(), "measured time"), clipped(table->device)));
  std::map<std::string_view, std::size_t> unused;
  for (const KernelRow& row : table->rows) {
    if (const std::string_view why = why_never_launched(row.key); !why.empty()) ++unused[why];
  }
  for (const auto& [why, count] : unused)
    text.sentence(fmt::format("note: {} that no layer has: {}", plural(count, "time"), why));
  return write_output(text.print(page_width(arguments.page, arguments.output)), arguments.output);
}

}  // namespace

void add_check(CLI::App& app, int& exit_code) {
  struct Arguments : ScenarioArguments, RecordCheckArguments {
    bool graph = false;
    bool stages = false;
    std::int64_t batch = 1;
    std::vector<std::string> expected;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("check", "read and check everything, run nothing");
  add_scenario_arguments(*command, *arguments);
  auto* const graph =
      command->add_flag("--graph", arguments->graph, "print the layer graph for Graphviz instead");
  command
      ->add_flag("--stages", arguments->stages,
                 "print what each stage is made of and costs, too: layers, times, bytes")
      ->excludes(graph);
  command
      ->add_option("--batch", arguments->batch, "samples for which the table of a network is made")
      ->check(between(1, kMaxBatch))
      ->type_name("N");
  command
      ->add_option("--expect", arguments->expected,
                   "simulate, and end with 1 unless this holds, such as 'makespan = 15 ms' or "
                   "'bubble_fraction < 0.3'; may be repeated")
      ->type_name("CONDITION")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->excludes(graph);
  add_record_check(*command, *arguments);
  command->callback([arguments, &exit_code] {
    Diagnostics unread;
    std::vector<Expectation> expected;
    for (const std::string& text : arguments->expected) {
      auto one = parse_expectation(text);
      if (keep(one, unread)) expected.push_back(*std::move(one));
    }
    if (!unread.empty()) return void(exit_code = fail(unread));
    if (!expected.empty() && !arguments->record.empty())
      return void(exit_code = fail({input_error({}, "--expect beside --record",
                                                "a record has its own numbers: leave one out")}));
    if (!arguments->record.empty())
      return void(exit_code = check_record(*arguments, arguments->page, arguments->output));
    if (arguments->rerun)
      return void(exit_code = fail({input_error({}, "--rerun without --record",
                                                "only a record has a command to run again")}));
    const std::string kind = kind_of(arguments->scenario);
    if (kind == kRecordKind)
      return void(exit_code = fail({input_error(
                      {}, fmt::format("'{}' is a record of a command", arguments->scenario),
                      fmt::format("plumbline check --record {}", arguments->scenario))}));
    if (kind == "network" || kind == "profile" || kind == "kernels") {
      if (!expected.empty())
        return void(exit_code =
                        fail({input_error({},
                                          fmt::format("--expect with '{}', which is no scenario",
                                                      clipped(arguments->scenario)),
                                          "only a scenario is simulated")}));
      if (!arguments->overrides.empty()) {
        Diagnostic wrong;
        wrong.message = fmt::format("'{}' overrides a key of a scenario, but the file is a {}",
                                    clipped(arguments->overrides.front()),
                                    kind == "kernels" ? "table of kernels" : kind);
        return void(exit_code = fail({wrong}));
      }
      exit_code = kind == "network"   ? check_network(*arguments, arguments->batch)
                  : kind == "kernels" ? check_kernels(*arguments)
                                      : check_profile(*arguments);
      return;
    }
    const auto scenario = load_scenario(*arguments);
    if (!scenario) return void(exit_code = fail(scenario.problems()));
    const auto prediction = predict(*scenario);
    if (!prediction) return void(exit_code = fail(prediction.problems()));
    const TrainingSetup& setup = prediction->setup;
    Document text;
    bool all_met = true;
    if (arguments->graph) {
      text.verbatim(layer_graph_dot(scenario->model->graph, setup.partition));
    } else {
      text.sentence(fmt::format(
          "{}: {}: layers {}, stages {}, devices {}, schedule {}, ops {}", arguments->scenario,
          prediction->fits() == false ? "does not fit" : "ok", scenario->model->graph.size(),
          setup.partition.stages.size(), prediction->graph.slots(), setup.schedule.name,
          prediction->metrics.operations));
      if (arguments->stages) {
        text.blank_line();
        text.append(stage_table(setup));
        text.blank_line();
      }
      for (const std::string& one : setup.estimated) text.sentence("estimated: " + one);
      for (const std::string& note : setup.notes) text.sentence("note: " + note);
      for (const Expectation& one : expected) {
        const MetExpectation met = meets(one, *prediction);
        text.sentence((met.met ? "ok: " : "") + met.said);
        all_met = all_met && met.met;
      }
    }
    exit_code =
        write_output(text.print(page_width(arguments->page, arguments->output)), arguments->output);
    if (exit_code == ExitCode::done) exit_code = report_fit(*prediction);
    if (!all_met && exit_code != ExitCode::file_trouble) exit_code = ExitCode::check_failed;
  });
}

}  // namespace plumbline
