// The planner's formula against the simulation of what it proposes.
// SPDX-License-Identifier: MIT
#include "sim/planning.h"

#include <fmt/format.h>

#include "sim/predict.h"
#include "tests/support/builders.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

std::string random_scenario(std::uint64_t seed) {
  Dice dice(seed);
  std::string text = "version: 1\nmodel:\n  layers:\n";
  const std::int64_t layers = dice.roll(2, 7);
  for (std::int64_t i = 0; i < layers; ++i) {
    text += fmt::format(
        "    - {{name: l{}, forward: {} us, backward: {} us, output: {} KiB, activation: {} KiB, "
        "parameters: {} KiB}}\n",
        i, dice.roll(1, 90), dice.roll(1, 90), dice.roll(0, 64), dice.roll(0, 64),
        dice.roll(0, 64));
  }
  text += dice.roll(0, 1) == 0
              ? fmt::format("cluster: {{devices: {}, link: {{bandwidth: {} GB/s}}}}\n",
                            dice.roll(1, 6), dice.roll(1, 20))
              : fmt::format(
                    "cluster: {{levels: [{{size: {}, bandwidth: 20 GB/s}}, {{size: 2, "
                    "bandwidth: {} GB/s}}]}}\n",
                    dice.roll(1, 3), dice.roll(1, 10));
  return text +
         "plan: {partition: pipedream}\nschedule: {name: pipedream, micro_batches: 1200}\n"
         "training: {optimizer_state: 2}\n";
}

TEST_CASE("no simulated plan beats the formula, needs more memory than it says, or the winner") {
  std::uint64_t replicated = 0;
  for (std::uint64_t seed = 1; seed <= trials(100); ++seed) {
    const std::string text = random_scenario(seed);
    CAPTURE(text);
    const auto scenario = parse_scenario(text_source("random.yaml", text), {});
    REQUIRE(scenario);
    const auto planning = plan_scenario(*scenario, {});
    REQUIRE_MESSAGE(planning, (planning ? "" : to_text(planning.problems())));
    for (const SimulatedPlan& plan : planning->ranked) {
      CHECK(plan.time_s >= planning->winner().time_s);
      CHECK(plan.time_s >= plan.candidate.period_s * 0.995);
      const auto prediction = predict(with_plan(*scenario, plan.candidate));
      REQUIRE(prediction);
      for (std::size_t s = 0; s < plan.candidate.stages.size(); ++s) {
        replicated += plan.candidate.stages[s].replicas > 1 ? 1 : 0;
        CHECK(prediction->pipeline.weights[s].kept <= plan.candidate.stages[s].weight_versions);
        for (const std::uint32_t slot : prediction->graph.stage_slots[s])
          CHECK(prediction->memory[slot].peak.sum() <= plan.candidate.stages[s].peak_memory);
      }
    }
  }
  CHECK(replicated > trials(100));
}

TEST_CASE("a settled scenario runs the winner, and a written plan is read as the same one") {
  auto scenario = read_scenario("examples/planned.yaml", {});
  REQUIRE(scenario);
  const auto planning = plan_scenario(*scenario, {});
  REQUIRE(planning);
  const auto settled = settle_plan(*scenario);
  REQUIRE(settled);
  CHECK(!settled->plan.is_planned());
  const auto prediction = predict(*settled);
  REQUIRE(prediction);
  CHECK(prediction->metrics.steady->period_s == doctest::Approx(planning->winner().time_s));
  CHECK(plan_yaml(*scenario, *planning) ==
        "# A plan for 'a planned partition on two servers', written by plumbline plan.\n"
        "stages: 2\npartition: [3, 2]\nreplicas: [7, 1]\n"
        "devices: [[0, 1, 2, 3, 4, 5, 6], [7]]\nwarm_up: [2, 0]\n");
}

TEST_CASE("given options narrow the plans down") {
  const auto scenario = read_scenario("examples/planned.yaml", {});
  REQUIRE(scenario);
  const auto straight =
      plan_scenario(*scenario, {.straight = true, .devices_at_most = {}, .progress = {}});
  REQUIRE(straight);
  for (const PlannedStage& stage : straight->winner().candidate.stages) CHECK(stage.replicas == 1);
  const auto few =
      plan_scenario(*scenario, {.straight = false, .devices_at_most = 3, .progress = {}});
  REQUIRE(few);
  CHECK(few->winner().candidate.devices_used() <= 3);
  const auto stopped = plan_scenario(
      *scenario,
      {.straight = false, .devices_at_most = {}, .progress = [](double) { return false; }});
  REQUIRE(!stopped);
  CHECK(stopped.problems().front().message == "planning was interrupted");
}

}  // namespace
}  // namespace plumbline::test
