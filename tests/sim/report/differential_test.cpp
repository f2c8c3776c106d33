// Values that independent simulators found: rings, recomputation by chunks, memory of pairs,
// levers of a steady state, peaks of plans.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/quantity.h"
#include "sim/engine/simulate.h"
#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "sim/prediction/iteration_clock.h"
#include "sim/prediction/uncertainty.h"
#include "sim/report/report.h"
#include "sim/whatif/sensitivity.h"
#include "tests/support/builders.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

using std::chrono::microseconds;

Scenario scenario_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  CAPTURE(text);
  auto scenario = parse_scenario(text_source("differential.yaml", text), overrides);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  return *std::move(scenario);
}

Outcome outcome_of(const std::string& text, const std::vector<std::string>& overrides = {},
                   Evaluation evaluation = Evaluation::fastest) {
  auto outcome = predict(scenario_of(text, overrides), evaluation);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

TEST_CASE("each send of a ring is handed over") {
  const auto time = [](std::vector<std::string> overrides) {
    const std::string text =
        "version: 1\nmodel: {uniform: {layers: 1, forward: 1 ms, backward: 2 ms, parameters: 12 "
        "MB}}\ncluster: {devices: 4, link: {bandwidth: 12 GB/s, latency: 10 us}}\n"
        "plan: {stages: 1, data_parallel: 4}\nschedule: {name: gpipe, micro_batches: 1}\n";
    const Duration fast = outcome_of(text, overrides).metrics.makespan;
    CHECK(outcome_of(text, overrides, Evaluation::events).metrics.makespan == fast);
    return fast;
  };
  // 3 ms, 18 MB at 12 GB/s, 6 latencies; and 6 hand-overs, three in each half of ZeRO-1.
  const Duration base = microseconds(3000 + 1500 + 60);
  CHECK(time({}) == base);
  CHECK(time({"overhead.hand_over=1 ms"}) == base + microseconds(6000));
  CHECK(time({"overhead.hand_over=1 ms", "training.zero_stage=1"}) == base + microseconds(6000));
  CHECK(time({"overhead.hand_over=1 ms", "plan.data_parallel=2"}) ==
        microseconds(3000 + 1000 + 20 + 2000));
  CHECK(time({"overhead.hand_over=1 ms", "plan.data_parallel=1"}) == microseconds(3000));
  // Nothing is sent where there are no parameters.
  CHECK(time({"overhead.hand_over=1 ms", "model.uniform.parameters=0 B"}) == microseconds(3000));
  // Three sends to gather the weights of the only bucket, twice, and three to reduce it.
  CHECK(time({"overhead.hand_over=1 ms", "training.zero_stage=3"}) >=
        time({"training.zero_stage=3"}) + microseconds(6000));
}

TEST_CASE("a ring of rings hands over the sends of each level") {
  const Outcome outcome = outcome_of(
      "version: 1\nmodel: {uniform: {layers: 1, forward: 1 ms, backward: 2 ms, parameters: 12 "
      "MB}}\n"
      "cluster: {levels: [{size: 2, bandwidth: 12 GB/s}, {size: 2, bandwidth: 12 GB/s}]}\n"
      "schedule: {name: data-parallel, micro_batches: 1}\noverhead: {hand_over: 1 ms}\n");
  // 1 + 2 + 1 sends, in place of 6 around all; two rings share the cards between the servers.
  CHECK(outcome.metrics.makespan == microseconds(3000 + 500 + 1000 + 500 + 4000));
}

TEST_CASE("recompute full: each chunk of a device is a position of its own") {
  const std::string text =
      "version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms, output: 4 MB, "
      "activation: 240 MB}}\ncluster: {devices: 1}\nplan: {stages: 2}\n"
      "schedule: {name: looped-bfs, chunks: 2, micro_batches: 6, recompute: full}\n";
  // Six inputs of the second chunk, and one chunk's activations.
  CHECK(outcome_of(text).memory[0].peak.sum() == Bytes{6 * 4'000'000 + 240'000'000});
  // With one layer in each chunk `layers` keeps the same.
  CHECK(outcome_of(text, {"schedule.recompute=layers"}).memory[0].peak.sum() ==
        Bytes{6 * 4'000'000 + 240'000'000});
  // Neighbours that run as one keep nothing in between: both stages' activations in the backward.
  CHECK(outcome_of(text, {"schedule.name=gpipe", "schedule.chunks=null", "plan.devices=[[0], [0]]"})
            .memory[0]
            .peak.sum() == Bytes{480'000'000});
  // Three chunks: the inputs of two.
  CHECK(outcome_of(text, {"model.uniform.layers=3", "plan.stages=3", "schedule.chunks=3"})
            .memory[0]
            .peak.sum() == Bytes{2 * 6 * 4'000'000 + 240'000'000});
}

TEST_CASE("recompute full: an order from a file holds what the same order by name holds") {
  const TemporaryFolder folder;
  for (const std::string schedule :
       {"looped-bfs", "zb-v", "dualpipev", "interleaved-1f1b", "1f1b"}) {
    CAPTURE(schedule);
    const bool is_vee = schedule == "zb-v" || schedule == "dualpipev";
    const std::string devices = is_vee               ? "[[0], [1], [1], [0]]"
                                : schedule == "1f1b" ? "[[0], [0], [1], [1]]"
                                                     : "[[0], [1], [0], [1]]";
    const auto text = [&](const std::string& order) {
      return fmt::format(
          "version: 1\nmodel: {{uniform: {{layers: 4, forward: 1 ms, backward_input: 1 ms, "
          "backward_weight: 1 ms, output: 3 MB, activation: 50 MB}}}}\ncluster: {{devices: 2}}\n"
          "plan: {{stages: 4{}}}\nschedule: {{{}, micro_batches: 4, recompute: full}}\n",
          order[0] == 'f' || schedule == "1f1b" ? ", devices: " + devices : "", order);
    };
    const Outcome named = outcome_of(text("name: " + schedule));
    const std::string file = folder.file(schedule + ".csv", torch_csv(named.setup.schedule));
    const Outcome read = outcome_of(text("file: " + file));
    for (std::size_t slot = 0; slot < 2; ++slot) {
      CHECK(read.memory[slot].peak.sum() == named.memory[slot].peak.sum());
      CHECK(read.memory[slot].peak_in_flight == named.memory[slot].peak_in_flight);
    }
  }
}

TEST_CASE("a pair holds both of its ops from its begin, however long its forward is") {
  const std::string text =
      "version: 1\nmodel: {uniform: {layers: 2, forward: 0 ns, backward: 2 ms, activation: 10 "
      "MB}}\ncluster: {devices: 2}\nschedule: {name: 1f1b, micro_batches: 3, pairs: overlapped}\n";
  for (const std::string forward : {"0 ns", "1 ns", "1 ms"}) {
    CAPTURE(forward);
    const Outcome outcome = outcome_of(text, {"model.uniform.forward=" + forward});
    CHECK(outcome.memory[0].peak_in_flight == 3);
    CHECK(outcome.memory[0].peak.sum() == Bytes{30'000'000});
    CHECK(outcome.memory[1].peak_in_flight == 2);
  }
  for (const std::string schedule : {"eager-1f1b", "dualpipe", "chimera"}) {
    CAPTURE(schedule);
    const auto max = [&](const std::string& forward) {
      return outcome_of(text, {"model.uniform.forward=" + forward, "schedule.name=" + schedule,
                               "schedule.micro_batches=8"})
          .memory[0]
          .peak_in_flight;
    };
    CHECK(max("0 ns") == max("1 ns"));
  }
}

TEST_CASE("a backward whose parts are given as nothing is given") {
  const auto notes = [](const std::string& backward) {
    const Outcome outcome = outcome_of(
        fmt::format("version: 1\nmodel: {{uniform: {{layers: 2, forward: 1 ms, {}}}}}\n"
                    "cluster: {{devices: 2}}\nschedule: {{name: zb-h1, micro_batches: 4}}\n",
                    backward));
    return fmt::format("{}", fmt::join(outcome.setup.notes, "; "));
  };
  const std::string missing = "is taken as I (backward_input)";
  CHECK(notes("backward: 2 ms").find(missing) != std::string::npos);
  CHECK(notes("backward_input: 1 ms, backward_weight: 0 ms").find(missing) == std::string::npos);
  CHECK(notes("backward_input: 0 ms, backward_weight: 0 ms").find(missing) == std::string::npos);
}

/// A random pipeline of small numbers under this schedule.
std::string random_text(const ScheduleRule& rule, std::uint64_t seed) {
  Dice dice(seed);
  const std::int64_t devices = rule.whole_model ? 2 : 2 * dice.roll(1, 2);
  const std::int64_t chunks = rule.chunks ? rule.chunks->usual_chunks() : 1;
  const std::int64_t stages = rule.whole_model ? 1 : devices * chunks;
  std::string layers;
  for (std::int64_t i = 0; i < stages; ++i) {
    const auto time = [&] { return std::max<std::int64_t>(0, dice.roll(-2, 30)) * 20; };
    layers += fmt::format(
        "{}{{name: l{}, forward: {} us, backward_input: {} us, backward_weight: {} us, update: {} "
        "us, output: {} kB, parameters: 10 kB}}",
        i == 0 ? "" : ", ", i, time() + 20, time(), time(), time() / 4, dice.roll(0, 200));
  }
  std::string plan;
  std::int64_t used = devices;
  if (rule.asynchronous && dice.roll(0, 1) == 1) {
    used = devices + 1;
    plan = ", replicas: [2";
    for (std::int64_t i = 1; i < stages; ++i) plan += ", 1";
    plan += ']';
  }
  return fmt::format(
      "version: 1\nmodel: {{layers: [{}]}}\n"
      "cluster: {{devices: {}, link: {{bandwidth: {} GB/s, latency: {} us}}}}\n{}"
      "schedule: {{name: {}, micro_batches: {}}}\n",
      layers, used, dice.roll(1, 4), dice.roll(0, 14) * 10,
      rule.whole_model ? "" : fmt::format("plan: {{stages: {}{}}}\n", stages, plan), rule.name,
      2 * devices * dice.roll(1, 2));
}

TEST_CASE("what an exact lever says is what the run takes with it, under every schedule") {
  std::size_t ends = 0;
  for (const ScheduleRule& rule : schedule_rules()) {
    const std::uint64_t all = rule.asynchronous ? trials(80) : trials(10);
    for (std::uint64_t seed = 1; seed <= all; ++seed) {
      CAPTURE(rule.name);
      CAPTURE(seed);
      const Outcome outcome = outcome_of(random_text(rule, seed), {}, Evaluation::events);
      const Sensitivities found = sensitivities(outcome);
      REQUIRE(found.exact);
      const IterationClock clock(outcome);
      for (const Sensitivity& sensitivity : found.all) {
        if (sensitivity.every || sensitivity.kind > SensitivityKind::update || !sensitivity.until)
          continue;
        const std::size_t kinds[] = {0, 1, 2, 3, OpGraph::kUpdateClass};
        const std::uint32_t entry =
            OpGraph::class_of(sensitivity.stage, kinds[static_cast<std::size_t>(sensitivity.kind)]);
        const auto time_at = [&](double x) {
          OpGraph graph = outcome.graph;
          Duration& hold = graph.costs[entry].hold;
          hold -= Duration(std::llround(x * static_cast<double>(hold.count())));
          return clock.iteration_time_s(static_cast<double>(clock.length(graph, simulate(graph))));
        };
        CAPTURE(static_cast<int>(sensitivity.kind));
        CAPTURE(sensitivity.stage.value);
        for (const double share : {0.5, 1.0}) {
          const double x = share * *sensitivity.until;
          CHECK(std::abs(outcome.iteration_time_s - x * sensitivity.gain_s - time_at(x)) < 2e-7);
        }
        CHECK(std::abs(*sensitivity.min_s - time_at(1)) < 1e-12);
        ends += *sensitivity.until < 1 ? 1 : 0;
      }
    }
  }
  CHECK(ends > trials(100));
}

TEST_CASE("the peaks of a plan are those of its simulation") {
  const std::string text =
      "version: 1\nmodel: {layers: [{name: l0, forward: 500 us, backward: 11 ms, output: 9 MB, "
      "activation: 30 MB, parameters: 55 MB}, {name: l1, forward: 9 ms, backward: 3 ms, output: 15 "
      "MB, activation: 11 MB, parameters: 27 MB}]}\n"
      "cluster: {levels: [{size: 2, bandwidth: 10 GB/s}, {size: 2, bandwidth: 10 Gbit/s, latency: "
      "30 us}]}\nschedule: {name: pipedream, micro_batches: 8}\n";
  for (const std::string schedule : {"pipedream", "1f1b", "gpipe"}) {
    CAPTURE(schedule);
    const Scenario scenario = scenario_of(text, {"schedule.name=" + schedule});
    const auto planning = plan_scenario(scenario, {});
    REQUIRE(planning);
    const SimulatedPlan& winner = planning->winner();
    const auto outcome = predict(with_plan(scenario, winner.candidate));
    REQUIRE(outcome);
    const std::string json = to_json(scenario, *planning, 0);
    const std::string table = to_table(scenario, *planning).print();
    REQUIRE(winner.peak_memory.size() == winner.candidate.stages.size());
    for (std::size_t s = 0; s < winner.peak_memory.size(); ++s) {
      Bytes peak;
      for (const std::uint32_t slot : outcome->graph.stage_slots[s])
        peak = std::max(peak, outcome->memory[slot].peak.sum());
      CHECK(winner.peak_memory[s] == peak);
      CHECK(peak <= winner.candidate.stages[s].peak_memory);
      CHECK(json.find(fmt::format("\"peak_memory_bytes\": {}", peak.count)) != std::string::npos);
      CHECK(table.find(to_text(peak)) != std::string::npos);
    }
  }
}

TEST_CASE("a run that a nanosecond changes says that it is chaotic") {
  const auto note = [](const std::string& cluster) {
    const Scenario scenario = scenario_of(
        "version: 1\nmodel: {layers: [{name: a, forward: 20 us, backward: 59023 ns, output: 180 "
        "kB, parameters: 192 kB}, {name: b, forward: 20 us, backward: 36023 ns, output: 264 kB, "
        "parameters: 192 kB}, {name: c, forward: 8 us, backward: 43 us, output: 264 kB, "
        "parameters: 144 kB}, {name: d, forward: 0 us, backward: 50023 ns, output: 300 kB, "
        "parameters: 264 kB}]}\n"
        "cluster: {" +
        cluster +
        "}\nplan: {stages: 4, replicas: [3, 3, 1, 2], warm_up: [4, 4, 4, 0]}\n"
        "schedule: {name: pipedream, micro_batches: 2, weights: none}\n");
    const auto outcome = predict(scenario);
    REQUIRE(outcome);
    return lockstep_note(*outcome).value_or("");
  };
  const std::string servers = "levels: [{size: 4, bandwidth: 12 GB/s, latency: 500 ns}, {size: 3, ";
  CHECK(note(servers + "bandwidth: 1 GB/s, latency: 3 us}]")
            .find("the run is chaotic: transfers share a card, and with ops that differ by a "
                  "millionth, or a nanosecond, an iteration takes ") == 0);
  // Cards of their own, and links that are no bottleneck.
  CHECK(note("devices: 12, link: {bandwidth: 1 GB/s}").empty());
  CHECK(note(servers + "bandwidth: 1000 GB/s}]").empty());
}

}  // namespace
}  // namespace plumbline::test
