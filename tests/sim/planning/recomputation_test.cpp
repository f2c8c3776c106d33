// Some layers of a stage run again: by hand, against all and none, and as few as fit against
// trying fewer.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/engine/stage_memory.h"
#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "sim/planning/recomputation_fit.h"
#include "tests/support/builders.h"
#include "tests/support/scenario_of.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

using std::chrono::microseconds;

Outcome predicted(const Scenario& scenario) {
  auto outcome = predict(scenario);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

Outcome predicted(const std::string& text) { return predicted(scenario_of(text)); }

/// The first error of reading, planning or predicting the scenario.
std::string problem_of(const std::string& text) {
  const auto scenario = parse_scenario(text_source("recomputation.yaml", text), {});
  if (!scenario) return scenario.problems().front().message;
  const auto settled = resolve_plan(*scenario);
  if (!settled) return settled.problems().front().message;
  const auto outcome = predict(*settled);
  return outcome ? "none" : outcome.problems().front().message;
}

/// Eight layers on two stages under `schedule`.
std::string uniform(const std::string& schedule, const std::string& memory = "") {
  return "version: 1\nmodel: {uniform: {layers: 8, forward: 10 us, backward_input: 20 us, "
         "backward_weight: 10 us, output: 10 B, activation: 100 B}}\n" +
         (memory.empty() ? memory : "cluster: {memory: " + memory + "}\n") +
         "plan: {stages: 2}\nschedule: {" + schedule + "}\n";
}

TEST_CASE("the first layers of a stage are run again, the others keep what they have") {
  const auto run = [](const std::string& layers) {
    return predicted(uniform("name: gpipe, micro_batches: 3, recompute: layers, " + layers));
  };
  // The forwards and backwards of three micro-batches through four layers, with one layer
  // recomputed.
  const Outcome one = run("recompute_layers: 1");
  CHECK(one.metrics.makespan == microseconds(4 * (40 + 120 + 10)));
  CHECK(one.setup.recomputed == std::vector<std::uint32_t>{1, 1});
  // The first layer leaves its output to the second, and makes the other 90 B again.
  CHECK(one.memory[0].peak.activations == Bytes{3 * (10 + 3 * 100) + 90});
  CHECK(one.memory[0].peak_op == "0B0");
  // Stage 0 alone; its last layer's output is nobody's input there.
  const Outcome front = run("recompute_layers: [4, 0]");
  CHECK(front.memory[0].peak.activations == Bytes{3 * 3 * 10 + 100});
  CHECK(front.memory[1].peak.activations == Bytes{3 * 400});
  // The gradient of the last micro-batch of stage 1 is there at (4 - 1) x 40 + 3 x 120 us; then
  // stage 0 needs (120 + 40) us, and the two before it had to wait for it: 160 us each.
  CHECK(front.metrics.makespan == microseconds(160 + 120 + 3 * 160));
  // A stage with fewer layers runs all of them again.
  CHECK(run("recompute_layers: 7").metrics.makespan == microseconds(4 * 200));
  // Where a backward is split, W needs what I made again, of that layer alone.
  const Outcome split =
      predicted(uniform("name: zb-h1, micro_batches: 4, recompute: layers, recompute_layers: 1"));
  const auto stages =
      stage_memory(split.setup.costs, split.setup.schedule.shape.positions, Recompute::layers);
  CHECK(stages[0].kept == Bytes{310});
  CHECK(stages[0].recomputed_by_input == Bytes{90});
  CHECK(stages[0].done_by_weight == Bytes{400});
}

/// A chain of layers of all sizes, some with `selective`, on three devices.
std::string random_text(std::uint64_t seed, const std::string& recompute,
                        const std::string& memory = "", const std::string& partition = "even") {
  Dice dice(seed);
  std::string text = "version: 1\nmodel:\n  layers:\n";
  const std::int64_t layers = dice.roll(6, 12);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::int64_t output = dice.roll(0, 32);
    const std::int64_t activation = output + dice.roll(1, 64);
    text += fmt::format(
        "    - {{name: l{}, forward: {} us, backward_input: {} us, backward_weight: {} us, output: "
        "{} KiB, activation: {} KiB, parameters: {} KiB, selective: {{activation: {} KiB, forward: "
        "{} us}}}}\n",
        i, dice.roll(1, 90), dice.roll(1, 90), dice.roll(1, 90), output, activation,
        dice.roll(0, 9), dice.roll(0, activation), dice.roll(0, 40));
  }
  const char* const schedules[] = {"gpipe",     "1f1b",  "eager-1f1b", "naive",
                                   "pipedream", "zb-h1", "zb-v",       "interleaved-1f1b"};
  const std::int64_t schedule = dice.roll(0, 7);
  return text + fmt::format(
                    "cluster: {{devices: 3, link: {{bandwidth: {} GB/s}}{}}}\nplan: {{stages: {}, "
                    "partition: "
                    "{}}}\n"
                    "schedule: {{name: {}, micro_batches: {}, {}}}\n",
                    dice.roll(1, 20), memory.empty() ? memory : ", memory: " + memory,
                    schedule < 6 ? 3 : 6, partition, schedules[schedule], 3 * dice.roll(1, 3),
                    recompute);
}

bool same_memory(const Outcome& a, const Outcome& b) {
  for (std::size_t slot = 0; slot < a.memory.size(); ++slot) {
    if (a.memory[slot].peak.sum() != b.memory[slot].peak.sum()) return false;
    if (a.memory[slot].peak_op != b.memory[slot].peak_op) return false;
  }
  return true;
}

TEST_CASE("none of the layers is no recomputation, all are all, and more take no less time" *
          doctest::test_suite("slow")) {
  for (std::uint64_t seed = 1; seed <= trials(150); ++seed) {
    CAPTURE(seed);
    const Outcome none = predicted(random_text(seed, "recompute: none"));
    for (const std::string how : {"layers", "selective"}) {
      CAPTURE(how);
      const auto run = [&](const std::string& layers) {
        return predicted(random_text(seed, "recompute: " + how + ", recompute_layers: " + layers));
      };
      const Outcome all = predicted(random_text(seed, "recompute: " + how));
      const Outcome none_of_them = run("0");
      CHECK(none_of_them.metrics.makespan == none.metrics.makespan);
      CHECK(same_memory(none_of_them, none));
      for (const char* as : {"12", "all"}) {
        const Outcome all_of_them = run(as);
        CHECK(all_of_them.metrics.makespan == all.metrics.makespan);
        CHECK(same_memory(all_of_them, all));
      }
      Duration before = none.metrics.makespan;
      for (int layers = 1; layers <= 4; ++layers) {
        const Outcome some = run(std::to_string(layers));
        CHECK(some.metrics.makespan >= before);
        before = some.metrics.makespan;
        for (std::size_t slot = 0; slot < some.memory.size(); ++slot)
          CHECK(some.memory[slot].peak.activations <= none.memory[slot].peak.activations);
      }
      CHECK(all.metrics.makespan >= before);
      // Where stages are cut by time, a number of all is all, too.
      CHECK(predicted(
                random_text(seed, "recompute: " + how + ", recompute_layers: 12", "", "balanced"))
                .metrics.makespan ==
            predicted(random_text(seed, "recompute: " + how, "", "balanced")).metrics.makespan);
    }
  }
}

TEST_CASE("as few as fit: one layer fewer of any stage does not fit") {
  std::size_t some = 0;
  std::size_t beyond = 0;
  for (std::uint64_t seed = 1; seed <= trials(200); ++seed) {
    CAPTURE(seed);
    Dice dice(seed + 1000);
    const std::string how = dice.roll(0, 1) == 0 ? "layers" : "selective";
    const std::string cut = dice.roll(0, 1) == 0 ? "even" : "balanced";
    // Between what the most loaded device needs with all layers run again and with none.
    const auto max = [&](const std::string& recompute) {
      std::int64_t bytes = 0;
      for (const DeviceMemory& device : predicted(random_text(seed, recompute, "", cut)).memory)
        bytes = std::max(bytes, device.peak.sum().count);
      return bytes;
    };
    const std::int64_t min = max("recompute: " + how);
    const std::int64_t room =
        std::max<std::int64_t>(1, max("recompute: " + how + ", recompute_layers: 0") - min);
    const std::string memory = fmt::format("{} B", min + dice.roll(-room / 8 - 1, room));
    const std::string fit = "recompute: " + how + ", recompute_layers: fit";
    const auto settled = fit_recomputation(scenario_of(random_text(seed, fit, memory, cut)));
    REQUIRE(settled);
    const auto& chosen = std::get<std::vector<std::int64_t>>(settled->schedule.recompute.layers);
    const Outcome outcome = predicted(*settled);
    const auto stages_of_slot = outcome.graph.stages_by_slot();
    for (std::size_t slot = 0; slot < stages_of_slot.size(); ++slot) {
      CAPTURE(slot);
      const auto layers_of = [&](std::uint32_t stage) {
        return static_cast<std::int64_t>(outcome.setup.partition.stages[stage].layers.size());
      };
      const auto& stages = stages_of_slot[slot];
      if (!*outcome.fits()) {
        ++beyond;
        for (const std::uint32_t stage : stages) CHECK(chosen[stage] == layers_of(stage));
        continue;
      }
      for (const std::uint32_t stage : stages) {
        if (chosen[stage] == 0) continue;
        ++some;
        Scenario fewer = *settled;
        --std::get<std::vector<std::int64_t>>(fewer.schedule.recompute.layers)[stage];
        CHECK_FALSE(*predicted(fewer).fits());
      }
    }
    // It is faster than to run all again, or the same.
    const Outcome all = predicted(random_text(seed, "recompute: " + how, memory, cut));
    CHECK(outcome.metrics.makespan <= all.metrics.makespan);
    if (*all.fits()) CHECK(*outcome.fits());
  }
  CHECK(some > trials(200) / 2);
  CHECK(beyond > 0);
}

TEST_CASE("layers that hand on more than they keep fit best if none is run again") {
  const auto settled = fit_recomputation(scenario_of(
      "version: 1\nmodel: {uniform: {layers: 4, forward: 1 us, backward: 1 us, output: 100 B, "
      "activation: 10 B}}\ncluster: {devices: 2, memory: 240 B}\n"
      "schedule: {name: gpipe, micro_batches: 2, recompute: layers, recompute_layers: fit}\n"));
  REQUIRE(settled);
  CHECK(std::get<std::vector<std::int64_t>>(settled->schedule.recompute.layers) ==
        std::vector<std::int64_t>{0, 0});
}

TEST_CASE("a stage in front holds more micro-batches and runs more layers again") {
  const auto settled = fit_recomputation(scenario_of(
      "version: 1\nmodel: {uniform: {layers: 32, forward: 10 us, backward: 20 us, output: 1 B, "
      "activation: 1000 B}}\ncluster: {devices: 4, memory: 20 kB}\n"
      "schedule: {name: 1f1b, micro_batches: 8, recompute: layers, recompute_layers: fit}\n"));
  REQUIRE(settled);
  // Eight layers keep 32, 24, 16 and 8 kB for 4, 3, 2 and 1 micro-batches in flight.
  CHECK(std::get<std::vector<std::int64_t>>(settled->schedule.recompute.layers) ==
        std::vector<std::int64_t>{4, 2, 0, 0});
  CHECK(
      settled->notes.back() ==
      "6 of 32 layers are recomputed (recompute: layers), the fewest with which each device fits: "
      "schedule.recompute_layers=[4,2,0,0]");
}

TEST_CASE("the planner takes as few as fit, and no number") {
  const auto planned = [](const std::string& recompute) {
    const auto scenario = scenario_of(
        "version: 1\nmodel: {uniform: {layers: 16, forward: 10 ms, backward: 20 ms, output: 1 MB, "
        "activation: 1 GB, parameters: 1 MB}}\ncluster: {devices: 4, memory: 12 GB}\n"
        "plan: {stages: 4, partition: pipedream}\nschedule: {name: 1f1b, micro_batches: 16, " +
        recompute + "}\n");
    const auto planning = plan_scenario(scenario, {});
    REQUIRE(planning);
    CHECK(planning->winner().fits);
    return planning->winner().time_s;
  };
  // Four stages of four layers: 16 GB on stage 0, so that two layers of it are run again.
  const double fit = planned("recompute: layers, recompute_layers: fit");
  // The formula counts that: layers leave the stage in front.
  PlanningOptions straight;
  straight.straight = true;
  const auto seen = plan_scenario(
      scenario_of("version: 1\nmodel: {uniform: {layers: 64, forward: 2500 us, backward: 5 ms, "
                  "output: 1 MB, activation: 250 MB, parameters: 1 MB}}\n"
                  "cluster: {devices: 4, memory: 8 GB}\nplan: {stages: 4, partition: pipedream}\n"
                  "schedule: {name: 1f1b, micro_batches: 16, recompute: layers, recompute_layers: "
                  "fit}\n"),
      straight);
  REQUIRE(seen);
  const auto& stages = seen->plans.best.front().stages;
  CHECK(stages.front().layers.size() < stages.back().layers.size());
  CHECK(fit < planned("recompute: layers"));
  CHECK(problem_of("version: 1\nmodel: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms}}\n"
                   "cluster: {devices: 2}\nplan: {partition: pipedream}\nschedule: {name: 1f1b, "
                   "micro_batches: 4, recompute: layers, recompute_layers: 1}\n") ==
        "a planned partition does not go with a number in schedule.recompute_layers");
}

TEST_CASE("what does not fit the stages or the schedule is told") {
  const auto told = [](const std::string& recompute, const std::string& memory = "") {
    return problem_of(uniform("name: 1f1b, micro_batches: 2, " + recompute, memory));
  };
  CHECK(told("recompute: layers, recompute_layers: [1]") ==
        "schedule.recompute_layers has length 1, but the number of stages is 2");
  CHECK(told("recompute: layers, recompute_layers: [1, 5]") ==
        "schedule.recompute_layers[1] is 5, but stage 1 has 4 layers");
  CHECK(told("recompute: layers, recompute_layers: []") ==
        "schedule.recompute_layers is an empty list");
  CHECK(told("recompute: layers, recompute_layers: most") ==
        "schedule.recompute_layers is 'most', which is no number of layers");
  CHECK(told("recompute: layers, recompute_layers: -1") ==
        "schedule.recompute_layers is '-1', which is no number of layers");
  CHECK(told("recompute: layers, recompute_layers: fit") ==
        "schedule.recompute_layers is 'fit', but the devices' memory is not given");
  CHECK(told("recompute: layers, recompute_layers: fit", "1 GiB") == "none");
  CHECK(told("recompute_layers: all") == "none");
  for (const char* kind : {"recompute: full, ", ""}) {
    CHECK(told(std::string(kind) + "recompute_layers: 2") ==
          "schedule.recompute_layers goes with recompute: layers or selective, by which each layer "
          "recomputes its own activations");
  }
}

}  // namespace
}  // namespace plumbline::test
