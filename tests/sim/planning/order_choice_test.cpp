// What is chosen together with an order: the placement, the partition, the order for noise.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "sim/planning/found_order.h"
#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

Result<OrderAnswer> found(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto scenario = parse_scenario(text_source("case.yaml", text), overrides);
  if (!scenario) return scenario.problems();
  return answer_order(*std::move(scenario));
}

OrderAnswer answer_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto answer = found(text, overrides);
  REQUIRE_MESSAGE(answer, (answer ? "" : to_text(answer.problems().front())));
  return *std::move(answer);
}

const char* const kCase = R"(version: 1
name: case
model: {uniform: {layers: 8, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms, activation: 1 MiB}}
cluster: {devices: 4, link: {latency: 2 ms}}
schedule: {name: auto, placement: auto, effort: 0.05, micro_batches: 8}
)";

TEST_CASE("the open placement is the best of the three, and all are told") {
  const OrderAnswer open = answer_of(kCase);
  double least = 1e9;
  for (const std::string placement : {"straight", "looped", "v"}) {
    const OrderAnswer one = answer_of(kCase, {"schedule.placement=" + placement});
    CHECK(one.placements.empty());
    least = std::min(least, one.time_s);
    const auto told = std::find_if(open.placements.begin(), open.placements.end(),
                                   [&](const TriedPlacement& t) { return t.name == placement; });
    REQUIRE(told != open.placements.end());
    CHECK(told->time_s == one.time_s);
    CHECK(open.bound.time <= one.bound.time);
  }
  CHECK(open.time_s == least);
  CHECK(open.placements.size() == 3);
  CHECK(open.placements.front().time_s == least);
  const auto outcome = predict(open.scenario);
  REQUIRE(outcome);
  CHECK(outcome->iteration_time_s == doctest::Approx(least));
  for (std::size_t i = 1; i < open.named.size(); ++i) {
    CHECK(open.named[i - 1].time_s <= open.named[i].time_s);
    CHECK(std::none_of(open.named.begin(), open.named.begin() + static_cast<std::ptrdiff_t>(i),
                       [&](const NamedOrder& one) { return one.name == open.named[i].name; }));
  }
}

TEST_CASE("a placement that the scenario cannot have is told with its reason") {
  const OrderAnswer five = answer_of(kCase, {"model.uniform.layers=5"});
  REQUIRE(five.placements.size() == 3);
  CHECK(five.placements[0].name == "straight");
  CHECK_FALSE(five.placements[1].time_s);
  CHECK(five.placements[1].why_not.find("layers") != std::string::npos);
  const OrderAnswer three = answer_of(kCase, {"schedule.chunks=3", "model.uniform.layers=12"});
  CHECK(three.placements.front().name == "looped");
  CHECK(three.problem.stage_count() == 12);
  const OrderAnswer alone = answer_of(kCase, {"cluster.devices=1"});
  REQUIRE(alone.placements.size() == 3);
  CHECK(alone.placements[0].name == "straight");
  CHECK(alone.placements[1].why_not == "there is one device");
  CHECK(alone.placements[2].why_not == "there is one device");
  // Without any, the error is that of the first.
  const auto none = found(kCase, {"plan.stages=7"});
  REQUIRE_FALSE(none);
}

TEST_CASE("all placements hold as many activations of a whole device") {
  for (const int limit : {2, 3, 4}) {
    const OrderAnswer answer = answer_of(kCase, {fmt::format("schedule.in_flight={}", limit)});
    const std::uint32_t chunks = answer.problem.stage_count() / answer.problem.devices;
    for (const std::int64_t room : answer.problem.limits.front().room)
      CHECK(room == limit * static_cast<int>(chunks));
  }
  const auto read = parse_scenario(text_source("case.yaml", kCase), {"schedule.in_flight=3"});
  REQUIRE(read);
  CHECK(read->schedule.wish->in_flight->value == 3);
  REQUIRE(read->schedule.wish->others->size() == 2);
  for (const Scenario& other : *read->schedule.wish->others)
    CHECK(other.schedule.wish->in_flight->value == 6);
}

TEST_CASE("a placement is found for all commands, and noted") {
  auto scenario = parse_scenario(text_source("case.yaml", kCase), {});
  REQUIRE(scenario);
  const auto resolved = resolve_plan(*std::move(scenario));
  REQUIRE(resolved);
  CHECK(std::any_of(resolved->notes.begin(), resolved->notes.end(),
                    [](const std::string& note) { return note.starts_with("placement: "); }));
}

/// A chain of layers with unlike times.
std::string chain(std::mt19937& random, int layers) {
  const auto upto = [&](unsigned n) { return 1 + static_cast<int>(random() % n); };
  std::string text = "version: 1\nname: case\nmodel:\n  layers:";
  for (int i = 0; i < layers; ++i) {
    text += fmt::format(
        "\n    - {{name: l{}, forward: {} ms, backward_input: {} ms, backward_weight: {} ms, "
        "activation: 1 MiB}}",
        i, upto(20), upto(20), upto(20));
  }
  return text +
         "\ncluster: {devices: 3, link: {latency: 1 ms}}\nplan: {partition: auto}\n"
         "schedule: {name: auto, effort: 0.05, micro_batches: 6}\n";
}

TEST_CASE("the partition that goes with the order is nearly always the best of all") {
  std::mt19937 random(5);
  int best = 0;
  constexpr int cases = 12;
  for (int i = 0; i < cases; ++i) {
    const std::string text = chain(random, 7);
    CAPTURE(text);
    const OrderAnswer chosen = answer_of(text);
    REQUIRE(chosen.partition);
    CHECK(chosen.time_s <= chosen.partition->balanced_s.value_or(0));
    const OrderAnswer balanced = answer_of(text, {"plan.partition=balanced"});
    CHECK(chosen.partition->balanced_s == balanced.time_s);
    double least = chosen.time_s;
    for (int a = 1; a <= 5; ++a) {
      for (int b = 1; a + b <= 6; ++b) {
        const auto written = fmt::format("plan.partition=[{}, {}, {}]", a, b, 7 - a - b);
        least = std::min(least, answer_of(text, {written}).time_s);
      }
    }
    best += chosen.time_s <= least * (1 + 1e-9) ? 1 : 0;
    CHECK(chosen.time_s <= 1.03 * least);
    // The scenario of the answer has the partition written out.
    const auto again = answer_order(chosen.scenario);
    REQUIRE(again);
    CHECK(again->time_s == chosen.time_s);
  }
  CHECK(best >= 10);
}

/// Layers of so many ms, with backwards twice as long.
std::string loop_of(const std::vector<int>& forward) {
  std::string text = "version: 1\nname: case\nmodel:\n  layers:";
  for (std::size_t i = 0; i < forward.size(); ++i) {
    text += fmt::format("\n    - {{name: l{}, forward: {} ms, backward: {} ms, activation: 1 MiB}}",
                        i, forward[i], 2 * forward[i]);
  }
  return text +
         "\ncluster: {devices: 2}\nplan: {partition: auto}\n"
         "schedule: {name: auto, placement: looped, micro_batches: 3}\n";
}

TEST_CASE("where a device has several stages, two layers may have to move at once") {
  CHECK(answer_of(loop_of({1, 2, 2, 1, 3, 5})).time_s <= 0.072 + 1e-9);
  CHECK(answer_of(loop_of({5, 5, 3, 5, 1, 1})).time_s <= 0.100 + 1e-9);
}

TEST_CASE("what no order beats is said of the partition alone") {
  const OrderAnswer open = answer_of(loop_of({1, 2, 2, 1, 3, 5}));
  CHECK(gap_text(open).find("of this partition") != std::string::npos);
  const OrderAnswer given = answer_of(loop_of({1, 2, 2, 1, 3, 5}), {"plan.partition=balanced"});
  CHECK(gap_text(given).find("partition") == std::string::npos);
}

TEST_CASE("where the balanced partition has too little memory, another one is found") {
  const std::string text = R"(version: 1
name: case
model:
  layers:
    - {name: a, forward: 1 ms, backward: 2 ms, parameters: 100 MiB, activation: 1 MiB}
    - {name: b, forward: 1 ms, backward: 2 ms, parameters: 100 MiB, activation: 1 MiB}
    - {name: c, forward: 1 ms, backward: 2 ms, parameters: 100 MiB, activation: 1 MiB}
    - {name: d, forward: 3 ms, backward: 6 ms, parameters: 1 MiB, activation: 1 MiB}
cluster: {devices: 2, memory: 500 MiB}
plan: {partition: auto}
schedule: {name: auto, micro_batches: 4}
)";
  const auto balanced = found(text, {"plan.partition=balanced"});
  REQUIRE_FALSE(balanced);
  CHECK(balanced.problems().front().fault == Fault::infeasible);
  const OrderAnswer open = answer_of(text);
  CHECK(open.fits);
  CHECK(open.partition->layers == std::vector<std::int64_t>{2, 2});
  CHECK_FALSE(open.partition->balanced_s);
  CHECK_FALSE(found(text, {"cluster.memory=100 MiB"}));
}

TEST_CASE("notes of what was read stay, whichever placement wins") {
  const auto scenario = parse_scenario(
      text_source("case.yaml", kCase),
      {"model.layers=[{name: a, forward: 1 ms, backward: 1 ms}, {name: b, forward: 1 ms, "
       "backward: 1 ms}, {name: c, forward: 1 ms, backward: 1 ms}, {name: d, forward: 1 ms, "
       "backward: 1 ms}]",
       "cluster.devices=2", "plan.stages=4"});
  REQUIRE(scenario);
  REQUIRE(scenario->schedule.wish->others);
  for (const Scenario& other : *scenario->schedule.wish->others)
    CHECK(other.notes.front() == scenario->notes.front());
  CHECK(scenario->notes.front().find("model.uniform") == 0);
}

TEST_CASE("for `order` a wish is enough: it leaves the order open") {
  using Texts = std::vector<std::string>;
  CHECK(for_open_order({"schedule.placement=auto"}) ==
        Texts{"schedule.placement=auto", "schedule.name=auto"});
  CHECK(for_open_order({"plan.partition=auto"}).size() == 2);
  CHECK(for_open_order({"schedule.name=auto", "schedule.effort=2"}).size() == 2);
  CHECK(for_open_order({"plan.partition=balanced"}).size() == 1);
}

TEST_CASE("a partition that is open needs an order that is open") {
  const auto refused = parse_scenario(text_source("case.yaml", kCase),
                                      {"schedule.name=gpipe", "schedule.placement=null",
                                       "schedule.effort=null", "plan.partition=auto"});
  REQUIRE_FALSE(refused);
  CHECK(refused.problems().front().message.find("plan.partition: auto") == 0);
  auto scenario = parse_scenario(text_source("case.yaml", kCase), {"plan.partition=auto"});
  REQUIRE(scenario);
  const auto planned = plan_scenario(*scenario, {});
  REQUIRE_FALSE(planned);
  CHECK(planned.problems().front().help.find("plan.partition: auto") == 0);
}

TEST_CASE("with noise the order is the one whose slow runs are the fastest") {
  std::mt19937 random(8);
  for (int i = 0; i < 6; ++i) {
    const std::string text = chain(random, 6);
    CAPTURE(text);
    const std::vector<std::string> noisy = {"plan.partition=balanced",
                                            "noise={spread: 0.2, samples: 200}"};
    const OrderAnswer answer = answer_of(text, noisy);
    REQUIRE(answer.noisy);
    CHECK(answer.noisy->time_s <= answer.noisy->calm_time_s);
    const OrderAnswer calm = answer_of(text, {"plan.partition=balanced"});
    CHECK_FALSE(calm.noisy);
    CHECK(answer.time_s >= calm.time_s - 1e-12);
    // The same runs as the scenario's own, as it asks for no more than are sampled.
    const auto outcome = predict(answer.scenario);
    REQUIRE(outcome);
    REQUIRE(outcome->uncertainty);
    CHECK(outcome->uncertainty->iteration_time_s(kNoisyShare) ==
          doctest::Approx(answer.noisy->time_s));
    CHECK(answer_of(text, noisy).noisy->time_s == answer.noisy->time_s);
    CHECK(answer_of(text, {"noise={spread: 0.2}"}).partition);
  }
}

}  // namespace
}  // namespace plumbline::test
