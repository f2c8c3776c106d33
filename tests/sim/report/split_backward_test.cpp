// Backwards that are given as one time, under orders with I and W.
//
// SPDX-License-Identifier: MIT
#include "sim/setup/split_backward.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "sim/report/explain_report.h"
#include "sim/report/report.h"
#include "sim/whatif/explain.h"
#include "tests/support/close_to.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

Result<Scenario> scenario_of(const std::string& layers, const std::string& schedule) {
  auto scenario =
      parse_scenario(text_source("s.yaml", fmt::format("version: 1\n"
                                                       "model:\n"
                                                       "  layers:\n{}"
                                                       "cluster: {{devices: 2}}\n"
                                                       "schedule: {{name: {}, micro_batches: 4}}\n",
                                                       layers, schedule)),
                     {});
  if (!scenario) return scenario;
  return resolve_plan(*std::move(scenario));
}

Outcome outcome_of(const std::string& layers, const std::string& schedule) {
  const auto scenario = scenario_of(layers, schedule);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  auto outcome = predict(*scenario);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

const std::string kWhole =
    "    - {name: a, forward: 1 ms, backward: 2 ms}\n"
    "    - {name: b, forward: 1 ms, backward: 2000001 ns}\n";
const std::string kSplit =
    "    - {name: a, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n"
    "    - {name: b, forward: 1 ms, backward_input: 1000001 ns, backward_weight: 1 ms}\n";
const std::string kMixed =
    "    - {name: a, forward: 1 ms, backward: 2 ms, parameters: 4 MiB}\n"
    "    - {name: relu, forward: 1 ms, backward: 3 ms}\n"
    "    - {name: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 3 ms,"
    " parameters: 4 MiB}\n"
    "    - {name: unused, forward: 1 ms, backward: 0 ms}\n";

TEST_CASE("a backward that is given as one time is halved under every order with W") {
  for (const char* schedule : {"zb-h1", "zb-h2", "dualpipe"}) {
    CAPTURE(schedule);
    const Outcome whole = outcome_of(kWhole, schedule);
    const Outcome split = outcome_of(kSplit, schedule);
    const std::vector<StageCost>& stages = whole.setup.costs.stages;
    CHECK(stages[0].backward_input == std::chrono::milliseconds(1));
    CHECK(stages[0].backward_weight == std::chrono::milliseconds(1));
    CHECK(stages[1].backward_input == std::chrono::nanoseconds(1'000'001));  // the odd one
    CHECK(stages[1].backward_weight == std::chrono::milliseconds(1));
    CHECK(whole.metrics.makespan == split.metrics.makespan);
    CHECK(whole.setup.split.halved == 2);
    CHECK(split.setup.split.halved == 0);
    CHECK(split.setup.estimated.empty());
    CHECK(whole.setup.estimated ==
          std::vector<std::string>{"I and W of 2 layers: half of the backward each, assumed"});
    const std::string note =
        "2 layers give their backward as one time: half of it is taken as I (backward_input), half "
        "as W (backward_weight)";
    const std::vector<std::string>& notes = whole.setup.notes;
    CHECK(std::count(notes.begin(), notes.end(), note) == 1);
    for (const std::string& text : {to_table(whole, std::nullopt).print(),
                                    to_table(whole, explain(whole), std::nullopt).print()}) {
      CAPTURE(text);
      CHECK(text.find("\nestimated: I and W of 2 layers") != std::string::npos);
      CHECK(text.find("\nnote: 2 layers give") != std::string::npos);
    }
    const auto json = nlohmann::json::parse(to_json(whole, "0"));
    CHECK(json["estimated"].size() == 1);
  }
}

TEST_CASE("orders without W leave a whole backward as it is") {
  for (const char* schedule : {"1f1b", "gpipe", "chimera"}) {
    CAPTURE(schedule);
    const Outcome outcome = outcome_of(kWhole, schedule);
    CHECK(outcome.setup.split.halved == 0);
    CHECK(outcome.setup.estimated.empty());
  }
}

TEST_CASE("a layer without parameters has no W, and parts that are given stay") {
  const Outcome outcome = outcome_of(kMixed, "zb-h1");
  const std::vector<StageCost>& stages = outcome.setup.costs.stages;
  CHECK(stages[0].backward_input == std::chrono::milliseconds(1 + 3));
  CHECK(stages[0].backward_weight == std::chrono::milliseconds(1));
  CHECK(stages[1].backward_input == std::chrono::milliseconds(1));
  CHECK(stages[1].backward_weight == std::chrono::milliseconds(3));
  const AssumedSplit& split = outcome.setup.split;
  CHECK(
      split.note() ==
      "1 layer gives its backward as one time: half of it is taken as I (backward_input), half as "
      "W (backward_weight); 1 layer without parameters has no W");
  CHECK(split.estimate() == "I and W of 1 layer: half of the backward each, assumed");

  const Outcome bare = outcome_of(
      "    - {name: a, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms,"
      " parameters: 1 MiB}\n"
      "    - {name: b, forward: 1 ms, backward: 2 ms}\n",
      "zb-h2");
  CHECK(bare.setup.costs.stages[1].backward_input == std::chrono::milliseconds(2));
  CHECK(bare.setup.costs.stages[1].backward_weight == Duration{});
  CHECK(bare.setup.estimated.empty());
  CHECK(bare.setup.split.note() ==
        "1 layer without parameters gives its backward as one time: all of it is I, and W takes no "
        "time");
}

TEST_CASE("halves keep quartiles in proportion, so that noise reaches both parts") {
  const auto scenario = scenario_of(
      "    - {name: a, forward: 1 ms, backward: {mean: 4 ms, median: 4 ms, q1: 3 ms, q3: 5 ms,"
      " samples: 9}}\n"
      "    - {name: b, forward: 1 ms, backward: 2 ms}\n",
      "zb-h1");
  REQUIRE(scenario);
  const auto pipeline = resolve_setup(*scenario, true);
  REQUIRE(pipeline);
  std::vector<LayerCosts> layers = scenario->model->profile.measurements.front().layers;
  CHECK(split_backwards(*pipeline, layers).halved == 2);
  for (const MeasuredTime& part : {layers[0].split->input, layers[0].split->weight}) {
    CHECK(part.mean == std::chrono::milliseconds(2));
    CHECK(part.q1 == std::chrono::microseconds(1500));
    CHECK(part.q3 == std::chrono::microseconds(2500));
    CHECK(part.samples == 9);
  }
}

TEST_CASE("a real run, which measures I and W, does not tell that they were assumed") {
  const auto scenario = scenario_of(kWhole, "zb-h1");
  REQUIRE(scenario);
  auto pipeline = resolve_setup(*scenario, true);
  REQUIRE(pipeline);
  const std::size_t notes = pipeline->notes.size();
  pipeline->forget_split();
  CHECK(pipeline->notes.size() == notes - 1);
  CHECK(pipeline->estimated.empty());
}

}  // namespace
}  // namespace plumbline::test
