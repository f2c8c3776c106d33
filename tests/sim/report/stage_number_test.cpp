// Schedules with several stages on a device, on scenarios with one on each.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/stage_number.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "sim/report/sweep_report.h"
#include "sim/whatif/sweep.h"
#include "tests/support/builders.h"
#include "tests/support/close_to.h"

namespace plumbline::test {
namespace {

/// Four equal stages on four devices, of two layers each: F 2 ms and B 4 ms, of eight
/// micro-batches.
const std::string kFour =
    "version: 1\n"
    "model: {uniform: {layers: 8, forward: 1 ms, backward: 2 ms}}\n"
    "cluster: {devices: 4}\n"
    "plan: {stages: 4}\n"
    "schedule: {name: 1f1b, micro_batches: 8}\n";

Result<Scenario> scenario_of(const std::vector<std::string>& overrides) {
  auto scenario = parse_scenario(text_source("s.yaml", kFour), overrides);
  if (!scenario) return scenario;
  return resolve_plan(*std::move(scenario));
}

Outcome outcome_of(const std::vector<std::string>& overrides) {
  const auto scenario = scenario_of(overrides);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  auto outcome = predict(*scenario);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

/// Message and help.
std::string refused(const std::vector<std::string>& overrides) {
  const auto scenario = scenario_of(overrides);
  REQUIRE_FALSE(scenario);
  const Diagnostic& problem = scenario.problems().front();
  return problem.message + " / " + problem.help;
}

std::size_t stages_of(const Outcome& outcome) { return outcome.setup.partition.stages.size(); }

bool has_note(const Outcome& outcome, const std::string& text) {
  const std::vector<std::string>& notes = outcome.setup.notes;
  return std::find(notes.begin(), notes.end(), text) != notes.end();
}

TEST_CASE("schedules with several stages on a device use every device of four equal stages") {
  using std::chrono::milliseconds;
  CHECK(outcome_of({}).metrics.makespan == milliseconds(66));  // (m+p-1)(f+b)
  struct Expected {
    std::string schedule;
    std::size_t stages;
    milliseconds makespan;
  };
  // p = 4, m = 8; with two stages a device f = 1 ms, b = 2 ms, halved i = w = 1 ms, else twice
  // that.
  for (const Expected& one : {Expected{"interleaved-1f1b", 8, milliseconds(57)},  // (vm+p-1)(f+b)
                              Expected{"looped-bfs", 8, milliseconds(57)},
                              Expected{"interleaved-zb", 8, milliseconds(51)},  // + (p-1)(f+i-w)
                              Expected{"zb-v", 8, milliseconds(51)},            // + (p-1)f
                              Expected{"v-half", 8, milliseconds(53)},          // + (3p-7)f
                              Expected{"v-min", 8, milliseconds(59)},           // + (4p-5)f
                              Expected{"dualpipev", 8, milliseconds(51)},
                              Expected{"zb-h1", 4, milliseconds(54)},  // m(f+b) + (p-1)(f+i-w)
                              Expected{"zb-h2", 4, milliseconds(54)},
                              Expected{"dualpipe", 4, milliseconds(50)}}) {  // + (p/2-1)(f+i-w)
    CAPTURE(one.schedule);
    const Outcome outcome = outcome_of({"schedule.name=" + one.schedule});
    CHECK(outcome.metrics.makespan == one.makespan);
    CHECK(stages_of(outcome) == one.stages);
    CHECK(outcome.devices_used() == 4);
    CHECK(seconds(outcome.metrics.busy()) == close_to(4 * 0.048));
    REQUIRE(outcome.formula);
    CHECK(outcome.formula->bubble_fraction == close_to(outcome.metrics.bubble_fraction()));
    CHECK(has_note(outcome,
                   "plan.stages is 4, one on each of 4 devices; the schedule puts 2 on each "
                   "(schedule.chunks): 8 stages are taken") == (one.stages == 8));
    CHECK(outcome.setup.stages_raised_from ==
          (one.stages == 8 ? std::optional<std::int64_t>(4) : std::nullopt));
  }
  const Outcome interleaved = outcome_of({"schedule.name=interleaved-1f1b"});
  CHECK(interleaved.metrics.bubble_overhead() == close_to(3.0 / (8 * 2)));  // (p-1)/(m v)
}

TEST_CASE("stages are raised to as many as the devices that they were written for have room for") {
  struct Case {
    std::vector<std::string> overrides;
    std::size_t stages;
    std::int64_t devices;
  };
  const std::string interleaved = "schedule.name=interleaved-1f1b";
  for (const Case& one :
       {Case{{interleaved, "schedule.chunks=4", "model.uniform.layers=16"}, 16, 4},
        Case{{interleaved, "schedule.chunks=3", "model.uniform.layers=12"}, 12, 4},
        // Written for two a device, and for as many as there are.
        Case{{interleaved, "schedule.chunks=4", "plan.stages=8", "model.uniform.layers=16"}, 16, 4},
        Case{{interleaved, "plan.stages=8"}, 8, 4},
        // Fewer stages than devices stay on as many devices.
        Case{{interleaved, "plan.stages=2"}, 4, 2},
        Case{{"schedule.name=zb-v", "plan.stages=3"}, 6, 3},
        Case{{interleaved, "plan.stages=2", "plan.data_parallel=2"}, 4, 4},
        Case{{interleaved, "plan.stages=null"}, 8, 4},
        Case{{interleaved, "plan.partition=balanced"}, 8, 4},
        // A list of as many as there are to be.
        Case{{interleaved, "plan.partition=[1,1,1,1,1,1,1,1]"}, 8, 4},
        Case{{interleaved, "plan.stages=null", "plan.partition=[1,1,1,1,1,1,1,1]"}, 8, 4}}) {
    CAPTURE(one.overrides);
    const Outcome outcome = outcome_of(one.overrides);
    CHECK(stages_of(outcome) == one.stages);
    CHECK(outcome.devices_used() == one.devices);
  }
}

TEST_CASE(
    "stages that leave devices idle and are not raised are told, with the number that is not") {
  const Outcome uneven = outcome_of({"schedule.name=zb-v", "plan.stages=6"});
  CHECK(stages_of(uneven) == 6);
  CHECK(has_note(uneven,
                 "6 stages, 2 on each device (schedule.chunks), leave 1 of 4 devices idle; "
                 "plan.stages: 8 would use all"));
  const Outcome filled = outcome_of({"schedule.name=v-half", "plan.data_parallel=fill"});
  CHECK(stages_of(filled) == 4);
  CHECK(has_note(filled,
                 "plan.data_parallel: fill makes 2 copies of 2 devices, with 2 of the 4 stages on "
                 "each (schedule.chunks); plan.stages: 8 makes 1 of 4"));
  const Outcome unknown = outcome_of({"schedule.name=looped-bfs", "cluster=null"});
  CHECK(stages_of(unknown) == 4);
  CHECK(
      has_note(unknown,
               "cluster.devices is not given: 4 stages are on 2 devices, as the schedule puts 2 on "
               "each (schedule.chunks)"));
}

TEST_CASE("stages that cannot be raised name the key to set") {
  const std::string four =
      "one on each of 4 devices; the schedule 'zb-v' puts 2 on each "
      "(schedule.chunks): 8 stages";
  const std::string zb_v = "schedule.name=zb-v";
  CHECK(refused({zb_v, "plan.stages=null", "plan.partition=[2,2,2,2]"}) ==
        "plan.partition has 4 entries, " + four +
            " / a list of 8, or plan.partition: even or balanced; for 4 stages on fewer devices, "
            "cluster.devices: 2");
  CHECK(refused({zb_v, "plan.partition=[2,2,2,2]"}) ==
        "plan.stages is 4, " + four +
            " / a list of 8, or plan.partition: even or balanced; for 4 stages on fewer devices, "
            "cluster.devices: 2");
  CHECK(refused({zb_v, "plan.devices=[0,1,2,3]"}) ==
        "plan.stages is 4, " + four +
            " / leave plan.devices out: the schedule places its stages itself");
  CHECK(refused({zb_v, "plan.stages=null", "plan.replicas=[1,1,1,1]"}) ==
        "plan.replicas has 4 entries, " + four +
            " / leave plan.replicas out: the schedule places its stages itself");
  CHECK(refused({zb_v, "model.uniform.layers=6"}) ==
        "plan.stages is 4, " + four +
            ", but the model has 6 layers / plan.stages: 3, which leaves 1 of 4 devices idle; or a "
            "schedule with one stage on each device");
  CHECK(
      refused({"schedule.name=interleaved-1f1b", "schedule.chunks=3"}) ==
      "plan.stages is 4, one on each of 4 devices; the schedule 'interleaved-1f1b' puts 3 on each "
      "(schedule.chunks): 12 stages, but the model has 8 layers / schedule.chunks: 2, or a "
      "schedule with one stage on each device");
  CHECK(
      refused({zb_v, "model.uniform.layers=1", "plan.stages=1"}) ==
      "plan.stages is 1, one on each of 1 device; the schedule 'zb-v' puts 2 on each "
      "(schedule.chunks): 2 stages, but the model has 1 layer / a schedule with one stage on each "
      "device");
}

TEST_CASE("what an error of too few layers says to write does run") {
  const auto placed =
      predict(*scenario_of({"schedule.name=zb-v", "model.uniform.layers=6", "plan.stages=null"}));
  REQUIRE_FALSE(placed);
  CHECK(placed.problems().front().help ==
        "each device has 2 stages (schedule.chunks); plan.stages: 3 uses as many devices");
  CHECK(stages_of(outcome_of({"schedule.name=zb-v", "model.uniform.layers=6", "plan.stages=3"})) ==
        6);
  CHECK(stages_of(outcome_of({"schedule.name=interleaved-1f1b", "schedule.chunks=2"})) == 8);
}

TEST_CASE("a sweep tells stages that were raised and rows that are not alike") {
  const auto table_of = [](const std::vector<std::string>& axes) {
    const auto sweep = Sweep::parse(text_source("s.yaml", kFour), axes);
    REQUIRE(sweep);
    SweepResult result = sweep->header();
    for (std::uint64_t point = 0; point < sweep->points(); ++point)
      result.rows.push_back(sweep->evaluate(point));
    return to_table(report(std::move(result), {})).print();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  };
  const std::string schedules = table_of({"schedule.name=1f1b,zb-v,interleaved-1f1b"});
  has(schedules, "schedule.name     stages");
  has(schedules, "zb-v                   8");
  has(schedules, "plan.stages 4 raised");
  has(schedules,
      "note: in 2 rows the schedule puts several stages on a device (schedule.chunks): plan.stages "
      "is raised");
  CHECK(schedules.find("not alike") == std::string::npos);
  has(table_of({"plan.stages=2,4"}), "not alike in devices used (2 to 4)");
  has(table_of({"schedule.micro_batches=8,16"}), "not alike in mini-batch (8 to 16 samples)");
  has(table_of({"schedule.name=1f1b,pipedream"}),
      "not alike in flush before each update (not of all schedules)");
}

}  // namespace
}  // namespace plumbline::test
