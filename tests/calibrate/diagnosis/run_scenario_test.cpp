// A recorded run as a scenario: the same time again, the name of its schedule, or a file with its
// order.
//
// SPDX-License-Identifier: MIT
#include "calibrate/diagnosis/run_scenario.h"

#include <doctest/doctest.h>

#include "base/memory_files.h"
#include "sim/setup/resolve_setup.h"
#include "tests/calibrate/diagnosis/made_recordings.h"
#include "tests/support/close_to.h"
#include "tests/support/temporary_folder.h"

namespace plumbline::test {
namespace {

using std::chrono::microseconds;
using Transfers = RecordingStyle::Transfers;

RunScenario texts_of(const RecordedRun& run, const RunText& wanted = {}) {
  auto texts = scenario_of(run, costs_of(run), wanted);
  REQUIRE_MESSAGE(texts, (texts ? "" : to_text(texts.problems())));
  return *std::move(texts);
}

Scenario scenario_back(const RunScenario& texts) {
  auto scenario = read_back(texts);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  return *std::move(scenario);
}

Outcome replay_of(const RunScenario& texts) {
  auto outcome = predict(scenario_back(texts));
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

bool has_line(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// An order that no known schedule has.
MadeTraining strange_training() {
  return {.micro_batches = 3, .order = "0F0,0F1,0F2,0B1,0B0,0B2\n1F0,1F1,1F2,1B1,1B0,1B2\n"};
}

TEST_CASE("the scenario of a run names its schedule") {
  for (const MadeTraining& made : made_trainings()) {
    CAPTURE(made.schedule);
    const RunScenario texts = texts_of(run_of(made));
    CHECK(texts.schedule == made.schedule);
    CHECK(texts.order.empty());
    const Scenario scenario = scenario_back(texts);
    REQUIRE(scenario.schedule.rule);
    CHECK(scenario.schedule.rule->name == made.schedule);
    CHECK(scenario.schedule.micro_batches == made.micro_batches);
    CHECK(scenario.schedule.chunks == made.chunks);
    CHECK_FALSE(scenario.flushes);
  }
}

TEST_CASE("where several schedules have the order, the scenario names the usual one") {
  CHECK(texts_of(run_of(MadeTraining{.schedule = "naive", .micro_batches = 1})).schedule == "1f1b");
  CHECK(texts_of(run_of(MadeTraining{.schedule = "gpipe", .micro_batches = 1})).schedule == "1f1b");
}

TEST_CASE("the scenario of a run with equal ops takes as long as the run, to the nanosecond") {
  for (const Transfers transfers :
       {Transfers::none, Transfers::named, Transfers::by_peer, Transfers::received}) {
    for (const std::int64_t update : {0, 30}) {
      for (MadeTraining made : made_trainings()) {
        CAPTURE(made.schedule);
        CAPTURE(static_cast<int>(transfers));
        CAPTURE(update);
        made.update = {update};
        RecordingStyle style;
        style.transfers = transfers;
        if (transfers == Transfers::received) style.clock = OpClock::work;
        style.pause = microseconds(11);
        const Outcome predicted = prediction_of(made);
        const Outcome again = replay_of(texts_of(run_of(recordings_of(predicted, style))));
        CHECK(again.metrics.whole() == made_period(predicted, style));
        CHECK(again.iteration_time_s == seconds(made_period(predicted, style)));
        CHECK(again.setup.schedule.lists() == predicted.setup.schedule.lists());
      }
    }
  }
}

TEST_CASE("stages that differ take their own times again") {
  for (const char* schedule : {"1f1b", "gpipe", "zb-h1"}) {
    CAPTURE(schedule);
    const MadeTraining made{.schedule = schedule,
                            .devices = 4,
                            .micro_batches = 8,
                            .forward = {100, 137, 90, 111},
                            .backward_input = {110, 95, 123, 101},
                            .backward_weight = {90, 86, 140, 77},
                            .update = {30, 10, 20, 40}};
    const Outcome predicted = prediction_of(made);
    const Outcome again = replay_of(texts_of(run_of(recordings_of(predicted))));
    CHECK(again.metrics.whole() == made_period(predicted));
  }
}

TEST_CASE("a latency and a bandwidth are told apart where bytes and moving times are known") {
  RecordingStyle style;
  style.bytes = {1'000'000};
  const MadeTraining made{.latency = 20};
  const RunScenario texts = texts_of(run_of(made, style));
  // All of the 20 us moved 1 MB, as far as kernels tell.
  CHECK_MESSAGE(has_line(texts.yaml, "link: {latency: 0 s, bandwidth: 50 GB/s}"), texts.yaml);
  CHECK(has_line(texts.yaml, "output: 1 MB"));
  CHECK(replay_of(texts).metrics.whole() == made_period(prediction_of(made)));
  style.bytes = {};
  CHECK(has_line(texts_of(run_of(made, style)).yaml, "link: {latency: 20 us}"));
}

TEST_CASE("an order that no known schedule has is written to a file") {
  const MadeTraining made = strange_training();
  const Outcome predicted = prediction_of(made);
  RunText wanted;
  wanted.order_path = "strange order.csv";
  const RunScenario texts = texts_of(run_of(recordings_of(predicted)), wanted);
  CHECK(texts.schedule.empty());
  CHECK(texts.order == made.order);
  CHECK_MESSAGE(has_line(texts.yaml, "schedule: {file: strange order.csv}"), texts.yaml);
  const Outcome again = replay_of(texts);
  CHECK(again.setup.schedule.lists() == predicted.setup.schedule.lists());
  CHECK(again.metrics.whole() == made_period(predicted));
  // So it is from the disk.
  const TemporaryFolder folder;
  const std::string path = folder.file("run.yaml", texts.yaml);
  static_cast<void>(folder.file("strange order.csv", texts.order));
  const auto scenario = read_scenario(path, {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  const auto from_disk = predict(*scenario);
  REQUIRE(from_disk);
  CHECK(from_disk->metrics.whole() == made_period(predicted));
}

TEST_CASE("a scenario has the name and the command that it is given") {
  RunText wanted;
  wanted.name = "a run: ours";
  wanted.made_by = "plumbline diagnose run";
  const RunScenario texts = texts_of(run_of(MadeTraining{}), wanted);
  CHECK(texts.yaml.find("# Made by: plumbline diagnose run\n") == 0);
  CHECK(scenario_back(texts).name == "a run: ours");
}

TEST_CASE("the layers of a stage are equal parts of it, and add up to it exactly") {
  MadeTraining made{.forward = {100, 101}};
  const Outcome predicted = prediction_of(made);
  const RecordedRun run = run_of(recordings_of(predicted));
  RunText wanted;
  for (const std::vector<std::uint32_t>& layers :
       {std::vector<std::uint32_t>{3}, std::vector<std::uint32_t>{7, 1}}) {
    wanted.layers = layers;
    const RunScenario texts = texts_of(run, wanted);
    const Scenario scenario = scenario_back(texts);
    CHECK(scenario.model->graph.size() == (layers.size() == 1 ? 6 : 8));
    const Outcome again = replay_of(texts);
    CHECK(again.metrics.whole() == made_period(predicted));
    for (const std::uint32_t stage : {0U, 1U}) {
      CHECK(again.graph.cost_of({stage}, 0).hold == predicted.graph.cost_of({stage}, 0).hold);
      CHECK(again.graph.cost_of({stage}, OpGraph::kUpdateClass).hold ==
            costs_of(run).updates[stage]);
    }
  }
  wanted.layers = {1, 2, 3};
  const auto wrong = scenario_of(run, costs_of(run), wanted);
  REQUIRE_FALSE(wrong);
  CHECK(wrong.problems().front().message == "--layers has 3 numbers, and the run had 2 stages");
}

TEST_CASE("the scenario of a disturbed run takes about as long as the run") {
  RecordingStyle style;
  style.iterations = 12;
  style.earlier = [](std::int64_t iteration, const Op& op) -> Duration {
    return Duration{(iteration * 37 + op.micro_batch.value * 1009 + op.stage.value * 53) % 6000};
  };
  const Outcome predicted = prediction_of({.devices = 4, .micro_batches = 8});
  const Outcome again = replay_of(texts_of(run_of(recordings_of(predicted, style))));
  CHECK(again.iteration_time_s == close_to(seconds(made_period(predicted)), 0.01));
}

TEST_CASE("a run on one device is a scenario without a link") {
  const MadeTraining made{.schedule = "naive", .devices = 1, .micro_batches = 2};
  const Outcome predicted = prediction_of(made);
  const RunScenario texts = texts_of(run_of(recordings_of(predicted)));
  CHECK_FALSE(has_line(texts.yaml, "link: {"));
  CHECK(texts.schedule == "1f1b");
  CHECK(replay_of(texts).metrics.whole() == made_period(predicted));
}

}  // namespace
}  // namespace plumbline::test
