// Micro-batches cut along their sequence: by hand, against closed forms, and against whole ones.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "base/random.h"
#include "schedules/generators/generators.h"
#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "sim/whatif/compare.h"
#include "tests/support/builders.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

using std::chrono::microseconds;

Outcome predicted(const std::string& text) {
  CAPTURE(text);
  const auto scenario = parse_scenario(text_source("slices.yaml", text), {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  auto outcome = predict(*scenario);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

std::string problem_of(const std::string& text) {
  const auto scenario = parse_scenario(text_source("slices.yaml", text), {});
  if (!scenario) return scenario.problems().front().message;
  const auto settled = resolve_plan(*scenario);
  if (!settled) return settled.problems().front().message;
  const auto outcome = predict(*settled);
  return outcome ? "none" : outcome.problems().front().message;
}

/// One layer on each of so many stages.
std::string uniform(std::uint32_t stages, const std::string& schedule,
                    const std::string& more = "") {
  return fmt::format(
      "version: 1\nmodel: {{uniform: {{layers: {}, forward: 60 us, backward: 120 us, output: 60 B, "
      "activation: 600 B, parameters: 10 B}}}}\ncluster: {{devices: {}}}\nplan: {{stages: {}}}\n"
      "schedule: {{{}}}\n{}",
      stages, stages, stages, schedule, more);
}

std::string ops(const Outcome& outcome, std::uint32_t slot) {
  std::string text;
  const OpLists lists = outcome.setup.schedule.lists();
  for (const Op& op : lists[slot])
    text += fmt::format("{}{} ", letter(op.kind), op.micro_batch.value);
  return text;
}

TEST_CASE("slices go forward in order and backward last first, micro-batch by micro-batch") {
  const Outcome run = predicted(uniform(2, "name: 1f1b, micro_batches: 2, slices: 3"));
  // Sun et al. 2024: as many more in the window as a micro-batch has slices behind its first.
  CHECK(ops(run, 0) == "F0 F1 F2 F3 B2 F4 B1 F5 B0 B5 B4 B3 ");
  CHECK(ops(run, 1) == "F0 F1 F2 B2 F3 B1 F4 B0 F5 B5 B4 B3 ");
  const Outcome all = predicted(uniform(2, "name: gpipe, micro_batches: 2, slices: 2"));
  for (const std::uint32_t slot : {0U, 1U}) CHECK(ops(all, slot) == "F0 F1 F2 F3 B1 B0 B3 B2 ");
  CHECK(run.setup.slices == 3);
  CHECK(run.setup.micro_batches == 2);
  CHECK(run.samples_per_iteration() == 2);
}

TEST_CASE("k slices of m micro-batches take what k m micro-batches of their size do") {
  for (const char* const schedule : {"gpipe", "1f1b", "eager-1f1b"}) {
    for (std::uint32_t p = 1; p <= 6; ++p) {
      for (std::uint32_t m = 1; m <= 5; ++m) {
        for (const std::uint32_t k : {2U, 3U, 4U, 6U}) {
          CAPTURE(std::string(schedule));
          CAPTURE(p);
          CAPTURE(m);
          CAPTURE(k);
          const Outcome run = predicted(
              uniform(p, fmt::format("name: {}, micro_batches: {}, slices: {}", schedule, m, k)));
          CHECK(run.metrics.makespan == microseconds((k * m + p - 1) * 180 / k));
          REQUIRE(run.formula);
          CHECK(run.formula->makespan == run.metrics.makespan);
          CHECK(run.formula->text == "(p-1)/(km+p-1)");
          CHECK(longest_path(run.graph).spans == run.trace.spans);
          for (std::uint32_t s = 0; s < p && std::string(schedule) == "1f1b"; ++s)
            CHECK(run.memory[s].peak_in_flight == std::min(k * m, p - s - 1 + k));
        }
      }
    }
  }
}

TEST_CASE("what slices keep is a part of what whole micro-batches do") {
  const auto activations = [](const std::string& slices) {
    return predicted(uniform(4, "name: 1f1b, micro_batches: 8" + slices))
        .memory[0]
        .peak.activations;
  };
  CHECK(activations("") == Bytes{4 * 600});
  // (p - s - 1 + k) / k micro-batches.
  CHECK(activations(", slices: 2") == Bytes{5 * 300});
  CHECK(activations(", slices: 6") == Bytes{9 * 100});
  // A stage that is run again keeps its slices' inputs, 10 B each, and makes one slice again.
  const Outcome again =
      predicted(uniform(2, "name: 1f1b, micro_batches: 2, slices: 6, recompute: full"));
  CHECK(again.metrics.makespan == microseconds((2 * 6 + 1) * (10 + 20 + 10)));
  CHECK(again.memory[1].peak_in_flight == 6);
  CHECK(again.memory[1].peak.activations == Bytes{100});
  CHECK(again.memory[1].peak.buffers >= Bytes{6 * 10});
  CHECK(again.setup.notes.back() ==
        "keys and values that later slices read are not counted in what recomputation keeps");
}

TEST_CASE("slices go with several mini-batches, copies, blocking transfers and shared devices") {
  const auto time = [](const std::string& schedule, const std::string& more = "",
                       const std::string& plan = "stages: 2") {
    const std::string text = fmt::format(
        "version: 1\nmodel: {{uniform: {{layers: 4, forward: 60 us, backward: 120 us, output: 60 "
        "B, "
        "activation: 600 B, parameters: 10 B}}}}\nplan: {{{}}}\nschedule: {{{}}}\n{}",
        plan, schedule, more);
    return predicted(text);
  };
  const std::string sliced = "name: 1f1b, micro_batches: 3, slices: 4";
  const Duration once = time(sliced).metrics.makespan;
  CHECK(once == microseconds((3 * 4 + 1) * 2 * 180 / 4));
  CHECK(time(sliced + ", mini_batches: 2").metrics.makespan == 2 * once);
  CHECK(time(sliced + ", transfers: blocking").metrics.makespan == once);  // free links
  const Outcome copies = time(sliced, "cluster: {devices: 4}\n", "stages: 2, data_parallel: 2");
  CHECK(copies.metrics.makespan == once);
  CHECK(copies.samples_per_iteration() == 6);
  CHECK(time(sliced, "", "devices: [[0], [0], [1], [1]]").metrics.makespan == once);
}

TEST_CASE("closed forms of gpipe hold for slices of unequal stages and over links") {
  const std::string model =
      "version: 1\nmodel: {layers: [{name: a, forward: 20 us, backward: 60 us}, {name: b, forward: "
      "60 us, backward: 80 us}, {name: c, forward: 40 us, backward: 20 us}]}\ncluster: {devices: "
      "3, "
      "link: {latency: LATENCY}}\nplan: {stages: 3}\nschedule: {name: gpipe, micro_batches: 3, "
      "slices: 4}\n";
  const auto with = [&](const std::string& latency) {
    std::string own = model;
    return predicted(own.replace(own.find("LATENCY"), 7, latency));
  };
  const Outcome unequal = with("0 us");
  REQUIRE(unequal.formula);
  CHECK(unequal.formula->text == "makespan = sum f + sum b + (km-1)(max f + max b)");
  CHECK(unequal.formula->makespan == unequal.metrics.makespan);
  CHECK(unequal.metrics.makespan == microseconds((120 + 160 + 11 * (60 + 80)) / 4));
  const Outcome far = predicted(
      "version: 1\nmodel: {uniform: {layers: 3, forward: 40 us, backward: 80 us}}\ncluster: "
      "{devices: 3, link: {latency: 5 us}}\nplan: {stages: 3}\nschedule: {name: gpipe, "
      "micro_batches: 3, slices: 4}\n");
  REQUIRE(far.formula);
  CHECK(far.formula->text == "makespan = (km+p-1)(f+b) + 2 sum c");
  CHECK(far.formula->makespan == far.metrics.makespan);
}

TEST_CASE("slices may differ in what they take, and take as much together") {
  const std::string layers = "name: 1f1b, micro_batches: 2, slices: ";
  const Outcome even = predicted(uniform(1, layers + "4"));
  const Outcome uneven = predicted(uniform(1, layers + "[1, 2, 3, 6]"));
  CHECK(uneven.metrics.makespan == even.metrics.makespan);
  std::vector<Duration> forwards;
  for (std::uint32_t node = 0; node < uneven.graph.size(); ++node) {
    if (uneven.graph.activities[node].kind != ActivityKind::forward) continue;
    forwards.push_back(uneven.trace.spans[node].end - uneven.trace.spans[node].begin);
  }
  std::sort(forwards.begin(), forwards.end());
  CHECK(forwards == std::vector<Duration>{microseconds(5), microseconds(5), microseconds(10),
                                          microseconds(10), microseconds(15), microseconds(15),
                                          microseconds(30), microseconds(30)});
  CHECK_FALSE(uneven.formula);
  // On several devices the longest holds up the others.
  const Outcome apart = predicted(uniform(3, layers + "[1, 2, 3, 6]"));
  CHECK(apart.metrics.makespan > predicted(uniform(3, layers + "4")).metrics.makespan);
  CHECK(apart.metrics.makespan == longest_path(apart.graph).spans.back().end.time_since_epoch());
  // The additional time per op is the same for all ops.
  CHECK(predicted(uniform(1, layers + "[1, 2, 3, 6]", "overhead: {per_op: 7 us}\n"))
            .metrics.makespan == uneven.metrics.makespan + microseconds(17 * 7));  // and the update
  // A list of what all take alike is a number of slices, and one slice none.
  CHECK(predicted(uniform(3, layers + "[7, 7, 7, 7]")).trace.spans ==
        predicted(uniform(3, layers + "4")).trace.spans);
  CHECK(predicted(uniform(3, layers + "1")).trace.spans ==
        predicted(uniform(3, "name: 1f1b, micro_batches: 2")).trace.spans);
}

TEST_CASE("no slice runs before those that it needs, whatever they take") {
  for (std::uint64_t seed = 0; seed < trials(200); ++seed) {
    CAPTURE(seed);
    std::uint64_t place = 0;
    const auto below = [&](std::uint64_t max) { return random_bits(seed, place++) % max; };
    const auto k = static_cast<std::uint32_t>(2 + below(4));
    std::string work;
    for (std::uint32_t i = 0; i < k; ++i)
      work += fmt::format("{}{}", i == 0 ? "" : ", ", 1 + below(9));
    const char* const names[] = {"gpipe", "1f1b", "eager-1f1b"};
    const Outcome run = predicted(uniform(
        static_cast<std::uint32_t>(1 + below(4)),
        fmt::format("name: {}, micro_batches: {}, slices: [{}], transfers: {}", names[below(3)],
                    1 + below(4), work, below(2) == 0 ? "overlapped" : "blocking"),
        below(2) == 0 ? "" : "overhead: {per_op: 3 us}\n"));
    CHECK(longest_path(run.graph).spans == run.trace.spans);
    // By stage, kind and number, when it ran.
    std::map<std::tuple<std::uint32_t, ActivityKind, std::uint32_t>, Span> ran;
    for (std::uint32_t node = 0; node < run.graph.size(); ++node) {
      const Activity& activity = run.graph.activities[node];
      if (is_op(activity.kind))
        ran[{activity.stage.value, activity.kind, activity.micro_batch.value}] =
            run.trace.spans[node];
    }
    for (const auto& [op, span] : ran) {
      const auto& [stage, kind, number] = op;
      if (number % k == 0) continue;
      const Span& before = ran.at({stage, kind, number - 1});
      if (kind == ActivityKind::forward) CHECK(before.end <= span.begin);
      if (kind == ActivityKind::backward) CHECK(span.end <= before.begin);
    }
  }
}

TEST_CASE("an order of slices that was written is read again, where no slice stands too early") {
  const TemporaryFolder folder;
  const auto scenario = [&](const std::string& order, const std::string& more) {
    return "version: 1\nmodel: {uniform: {layers: 2, forward: 60 us, backward: 120 us}}\ncluster: "
           "{devices: 2}\nplan: {stages: 2}\nschedule: {file: " +
           folder.file("order.csv", order) + more + "}\n";
  };
  const Outcome run = predicted(uniform(2, "name: 1f1b, micro_batches: 2, slices: 3"));
  const std::string order = torch_csv(run.setup.schedule);
  const Outcome read = predicted(scenario(order, ", slices: 3"));
  CHECK(read.metrics.makespan == run.metrics.makespan);
  CHECK(read.setup.micro_batches == 2);
  CHECK(problem_of(scenario(order, ", slices: 4")) ==
        "schedule.slices is 4, which does not divide the 6 numbers of schedule.file");
  CHECK(problem_of(scenario(order, ", slices: 3, micro_batches: 6")) ==
        "schedule.micro_batches is 6, but schedule.file has 2");
  CHECK(problem_of(scenario(order, ", slices: 2")) ==
        "0B2 stands before 0B3, a slice of the same sequence that it needs");
  CHECK(problem_of(scenario("0F1,0F0,0B1,0B0\n1F1,1F0,1B1,1B0\n", ", slices: 2")) ==
        "0F1 stands before 0F0, a slice of the same sequence that it needs");
}

TEST_CASE("a comparison counts whole micro-batches in flight") {
  const auto run = [](const std::string& schedule) {
    return std::make_shared<const Outcome>(predicted(uniform(4, schedule)));
  };
  const std::string text =
      verdict({compared(run("name: 1f1b, micro_batches: 8"), "whole"),
               compared(run("name: 1f1b, micro_batches: 8, slices: 4"), "cut")});
  CAPTURE(text);
  CHECK(text.find("where at most 1.75 micro-batches are in flight instead of 4") !=
        std::string::npos);
}

TEST_CASE("slices that no schedule, stage or planner has are refused") {
  CHECK(problem_of(uniform(2, "name: naive, micro_batches: 2, slices: 2")) ==
        "schedule.slices does not apply to the schedule 'naive'");
  CHECK(problem_of(uniform(2, "name: 1f1b, micro_batches: 2, slices: []")) ==
        "schedule.slices is an empty list");
  CHECK(problem_of(uniform(2, "name: 1f1b, micro_batches: 2, slices: [0, 0]")) ==
        "schedule.slices add up to 0");
  std::string many = "1";
  for (int i = 0; i < 1000; ++i) many += ", 1";
  CHECK(problem_of(uniform(2, "name: 1f1b, micro_batches: 2, slices: [" + many + "]")) ==
        "schedule.slices are 1001, more than 1000");
  CHECK(problem_of("version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms}}\n"
                   "cluster: {devices: 2}\nplan: {stages: 2, warm_up: [3, 2]}\nschedule: {name: "
                   "1f1b, micro_batches: 2, slices: 4}\n") ==
        "plan.warm_up is 2 for stage 1, too few for 4 slices: the first backward is that of a "
        "micro-batch's last one");
  CHECK(problem_of(uniform(2, "name: 1f1b, micro_batches: 2, slices: 0")) ==
        "schedule.slices is 0, which is not between 1 and 1000");
  CHECK(problem_of("version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms}}\n"
                   "cluster: {devices: 3}\nplan: {stages: 2, replicas: [2, 1]}\nschedule: {name: "
                   "1f1b, micro_batches: 2, slices: 2}\n") ==
        "schedule.slices is 2, but stage 0 has 2 replicas");
  CHECK(problem_of("version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms}}\n"
                   "cluster: {devices: 2}\nplan: {partition: pipedream}\nschedule: {name: 1f1b, "
                   "micro_batches: 2, slices: 2}\n") ==
        "a planned partition does not go with schedule.slices");
  CHECK(problem_of(uniform(2, "name: 1f1b, micro_batches: 10000000, slices: 1000"))
            .starts_with("the run has 40000000000 ops, more than"));
}

}  // namespace
}  // namespace plumbline::test
