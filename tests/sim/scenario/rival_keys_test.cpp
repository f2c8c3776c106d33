// An override takes the place of what does not stand beside it.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/rival_keys.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "schedules/generators/generators.h"
#include "sim/scenario/scenario_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

const std::string kText =
    "version: 1\n"
    "model: {batch: 4, uniform: {layers: 4, forward: 1 ms, backward: 2 ms}}\n"
    "cluster: {devices: 4, levels: [{size: 2}, {size: 2}]}\n"
    "plan: {stages: 4, warm_up: [3, 2, 1, 0]}\n"
    "schedule: {name: 1f1b, micro_batches: 8}\n"
    "training: {micro_batch_size: 4}\n";

Result<Scenario> read(const std::vector<std::string>& overrides, const std::string& text = kText) {
  return parse_scenario(text_source("rivals.yaml", text), overrides);
}

bool says(const Scenario& scenario, const std::string& note) {
  return std::find(scenario.notes.begin(), scenario.notes.end(), note) != scenario.notes.end();
}

TEST_CASE("schedule.file on the command line replaces the name, and what was written for it") {
  const TemporaryFolder folder;
  const std::string path = folder.file("order.csv", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  const auto scenario = read({"schedule.file=" + path});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  CHECK(scenario->schedule.rule == nullptr);
  CHECK(scenario->schedule.micro_batches == 2);
  CHECK(says(*scenario, "schedule.name of the scenario is left out: schedule.file replaces it"));
  for (const char* key : {"plan.stages", "plan.warm_up", "schedule.micro_batches"}) {
    CHECK(says(*scenario, std::string(key) +
                              " of the scenario is left out: schedule.file says it in its place"));
  }
  // The other way round, and with both on the command line.
  const std::string with_file =
      "version: 1\nmodel: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms}}\n"
      "schedule: {file: " +
      path + "}\n";
  const auto named = read({"schedule.name=gpipe", "schedule.micro_batches=3"}, with_file);
  REQUIRE_MESSAGE(named, (named ? "" : to_text(named.problems())));
  CHECK(named->schedule.rule->name == "gpipe");
  CHECK(says(*named, "schedule.file of the scenario is left out: schedule.name replaces it"));
  const auto both = read({"schedule.name=gpipe", "schedule.file=" + path});
  REQUIRE(!both);
  CHECK(both.problems().front().message == "schedule.name stands beside schedule.file");
  // A key that is written beside a written file stays a fault.
  CHECK(!read({},
              "version: 1\nmodel: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms}}\n"
              "schedule: {micro_batches: 3, file: " +
                  path + "}\n"));
  const auto count = read({"schedule.micro_batches=3", "schedule.file=" + path});
  REQUIRE(!count);
  CHECK(count.problems().front().message == "schedule.micro_batches is 3, but schedule.file has 2");
}

TEST_CASE("another kind of model replaces the one that is written, and what needed it") {
  const auto layers = read({"model.layers=[{name: a, forward: 1 ms, backward: 1 ms}]",
                            "plan.stages=1", "plan.warm_up=[0]"});
  REQUIRE_MESSAGE(layers, (layers ? "" : to_text(layers.problems())));
  CHECK(layers->model->graph.size() == 1);
  CHECK(says(*layers, "model.uniform of the scenario is left out: model.layers replaces it"));
  const std::string chain =
      "version: 1\nmodel:\n  layers: [{name: a, forward: 1 ms, backward: 1 ms}, {name: b, forward: "
      "1 ms, backward: 1 ms}]\n  edges: [[a, b]]\nschedule: {name: gpipe, micro_batches: 2}\n";
  const auto uniform = read({"model.uniform={layers: 3, forward: 1 ms, backward: 1 ms}"}, chain);
  REQUIRE_MESSAGE(uniform, (uniform ? "" : to_text(uniform.problems())));
  CHECK(uniform->model->graph.size() == 3);
  CHECK(
      says(*uniform,
           "model.layers, model.edges of the scenario are left out: model.uniform replaces them"));
}

TEST_CASE("devices and levels replace each other where their numbers differ") {
  const auto more = read({"cluster.devices=8"});
  REQUIRE(more);
  CHECK(more->cluster.device_count() == 8);
  CHECK(more->cluster.levels.size() == 1);
  CHECK(says(*more, "cluster.levels of the scenario is left out: cluster.devices replaces it"));
  const auto same = read({"cluster.devices=4"});
  REQUIRE(same);
  CHECK(same->cluster.levels.size() == 2);
  const auto levels = read({"cluster.levels=[{size: 8}]"});
  REQUIRE(levels);
  CHECK(levels->cluster.device_count() == 8);
  CHECK(says(*levels, "cluster.devices of the scenario is left out: cluster.levels replaces it"));
  const auto gpus = read({"cluster.gpus=4"});
  REQUIRE_MESSAGE(gpus, (gpus ? "" : to_text(gpus.problems())));
  CHECK(says(*gpus,
             "cluster.devices, cluster.levels of the scenario are left out: cluster.gpus replaces "
             "them"));
}

TEST_CASE("of mini-batch, micro-batch and their number an override leaves two") {
  const auto mini = read({"training.mini_batch_size=64"});
  REQUIRE_MESSAGE(mini, (mini ? "" : to_text(mini.problems())));
  CHECK(mini->schedule.micro_batches == 8);
  CHECK(mini->micro_batch_size == 8);
  CHECK(says(*mini,
             "training.micro_batch_size of the scenario is left out: training.mini_batch_size "
             "replaces it"));
  const auto sizes = read({"training.mini_batch_size=64", "training.micro_batch_size=2"});
  REQUIRE(sizes);
  CHECK(sizes->schedule.micro_batches == 32);
  const auto all = read(
      {"training.mini_batch_size=64", "training.micro_batch_size=2", "schedule.micro_batches=32"});
  CHECK(!all);
  const std::string by_sizes =
      "version: 1\nmodel: {batch: 4, uniform: {layers: 4, forward: 1 ms, backward: 2 ms}}\n"
      "schedule: {name: 1f1b}\ntraining: {micro_batch_size: 4, mini_batch_size: 32}\n"
      "cluster: {devices: 4}\n";
  const auto number = read({"schedule.micro_batches=16"}, by_sizes);
  REQUIRE(number);
  CHECK(number->micro_batch_size == 4);
  CHECK(number->schedule.micro_batches == 16);
}

TEST_CASE("what an earlier override has set stays, wherever it was read from") {
  const std::string text = kText +
                           "sweep: {training.mini_batch_size: [32, 64], "
                           "training.micro_batch_size: [1, 2]}\n";
  const auto axes_text = ScenarioText::parse(text_source("rivals.yaml", text));
  REQUIRE(axes_text);
  Diagnostics problems;
  const YamlNode& root = axes_text->root();
  const auto axes = read_axes(root.entries.back().value, problems);
  REQUIRE(problems.empty());
  const auto scenario =
      axes_text->read({axes.at(0).changes.data() + 1, axes.at(1).changes.data() + 1});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  CHECK(scenario->schedule.micro_batches == 32);
  CHECK(scenario->micro_batch_size == 2);
}

TEST_CASE("what takes a key out, or stands beside nothing else, replaces nothing") {
  CHECK(read({"schedule.name=gpipe", "plan.warm_up="})->notes == read({})->notes);
}

TEST_CASE("schedules have names in any case, and PyTorch's") {
  const auto name = [](std::string_view text) {
    const ScheduleRule* const rule = find_schedule_rule(text);
    return rule ? std::string(rule->name) : "";
  };
  for (const ScheduleRule& rule : schedule_rules()) CHECK(name(rule.name) == rule.name);
  CHECK(name("GPipe") == "gpipe");
  CHECK(name("ScheduleGPipe") == "gpipe");
  CHECK(name("Schedule1F1B") == "1f1b");
  CHECK(name("Interleaved1F1B") == "interleaved-1f1b");
  CHECK(name("ScheduleInterleaved1F1B") == "interleaved-1f1b");
  CHECK(name("ScheduleLoopedBFS") == "looped-bfs");
  CHECK(name("InterleavedZeroBubble") == "interleaved-zb");
  CHECK(name("ScheduleZBVZeroBubble") == "zb-v");
  CHECK(name("ScheduleDualPipeV") == "dualpipev");
  CHECK(name("zb_h1") == "zb-h1");
  CHECK(name("ZB-H2") == "zb-h2");
  CHECK(name("DualPipe") == "dualpipe");
  CHECK(name("PipeDream") == "pipedream");
  CHECK(name("Schedule") == "");
  CHECK(name("") == "");
  CHECK(name("1f1d") == "");
  const auto scenario =
      read({"schedule.name=GPipe", "plan.warm_up=", "schedule.transfers=Blocking"});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  CHECK(scenario->schedule.rule->name == "gpipe");
  CHECK(scenario->schedule.blocking);
}

}  // namespace
}  // namespace plumbline::test
