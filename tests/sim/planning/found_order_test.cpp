// `schedule.name: auto`: the order that is found is that of a simulation, within the memory.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/found_order.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <random>

#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

Scenario parsed(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto scenario = parse_scenario(text_source("case.yaml", text), overrides);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems().front())));
  return *std::move(scenario);
}

const char* const kCase = R"(version: 1
name: case
model: {uniform: {layers: 8, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms, activation: 1 MiB}}
cluster: {devices: 4, link: {latency: 2 ms}}
plan: {stages: 8}
schedule: {name: auto, placement: v, in_flight: 8, micro_batches: 8}
)";

TEST_CASE(
    "a found order is simulated as long as its search says, and is no faster than its bound") {
  const auto answer = answer_order(parsed(kCase));
  REQUIRE(answer);
  const auto outcome = predict(answer->scenario);
  REQUIRE(outcome);
  CHECK(outcome->iteration_time_s == doctest::Approx(answer->time_s).epsilon(1e-12));
  CHECK(answer->time_s >= static_cast<double>(answer->bound.time) * 1e-9 - 1e-12);
  CHECK(answer->gap() >= 0);
  for (const DeviceMemory& device : outcome->memory) CHECK(device.peak_in_flight <= 8);
  for (const NamedOrder& named : answer->named) {
    CAPTURE(named.name);
    if (named.fits) CHECK(named.time_s >= answer->time_s);
  }
  CHECK(answer->named.size() >= 3);  // zb-v, v-half, v-min
}

TEST_CASE("resolving finds the order once; a resolved scenario keeps it") {
  const auto resolved = resolve_plan(parsed(kCase));
  REQUIRE(resolved);
  CHECK(is_resolved(*resolved));
  const auto once = predict(*resolved);
  const auto again = predict(parsed(kCase));
  REQUIRE(once);
  REQUIRE(again);
  CHECK(once->setup.schedule.lists() == again->setup.schedule.lists());
}

TEST_CASE("the memory of the devices is a limit") {
  const std::string text = R"(version: 1
name: case
model: {uniform: {layers: 4, forward: 10 ms, backward: 20 ms, activation: 1 GiB, output: 64 MiB, parameters: 1 GiB}}
cluster: {devices: 4, memory: 5 GiB, link: {latency: 1 ms}}
schedule: {name: auto, micro_batches: 12}
)";
  const auto outcome = predict(parsed(text));
  REQUIRE(outcome);
  CHECK(outcome->fits() == true);
  const auto other = predict(parsed(text, {"cluster.memory=7 GiB"}));
  REQUIRE(other);
  CHECK(other->fits() == true);
  CHECK(other->iteration_time_s <= outcome->iteration_time_s);
}

TEST_CASE("no published schedule that fits is faster, whatever the costs") {
  std::mt19937 random(17);
  const auto upto = [&](unsigned n) { return 1 + static_cast<int>(random() % n); };
  for (int i = 0; i < 30; ++i) {
    const int devices = 1 + upto(3);
    const bool vee = random() % 2 == 0;
    const int stages = vee ? 2 * devices : devices;
    std::string layers;
    for (int s = 0; s < stages; ++s) {
      layers += fmt::format(
          "\n    - {{name: l{}, forward: {} ms, backward_input: {} ms, backward_weight: {} ms, "
          "activation: {} MiB, output: {} MiB, update: {} ms}}",
          s, upto(20), upto(20), upto(20), upto(8), upto(4), upto(9));
    }
    std::string text = fmt::format(
        "version: 1\nname: case\nmodel:\n  layers:{}\ncluster: {{devices: {}, memory: {} MiB, "
        "link: {{latency: {} ms, bandwidth: {} GB/s}}}}\nplan: {{stages: {}}}\n"
        "schedule: {{name: auto, placement: {}, effort: 0.02, micro_batches: {}}}\n",
        layers, devices, 30 + upto(60), upto(4), upto(3), stages, vee ? "v" : "straight", upto(8));
    const bool flushes = i % 2 == 0;
    if (!flushes) text += "training: {flush: none}\n";
    CAPTURE(text);
    const auto answer = answer_order(parsed(text));
    if (!answer) {
      CHECK(answer.problems().front().fault == Fault::infeasible);
      continue;
    }
    for (const NamedOrder& named : answer->named) {
      CAPTURE(named.name);
      if (named.fits) CHECK(named.time_s >= answer->time_s - 1e-12);
    }
    CHECK(answer->time_s * 1e9 >= static_cast<double>(answer->bound.time) - 0.5);
    if (flushes) continue;
    const auto outcome = predict(answer->scenario);
    REQUIRE(outcome);
    CHECK(outcome->iteration_time_s == answer->time_s);
    for (const DeviceMetrics& device : outcome->metrics.devices)
      CHECK(static_cast<double>(device.span.count()) * 1e-9 <= answer->time_s + 1e-12);
  }
}

TEST_CASE("without a flush the updates of all copies count, each on its own device") {
  std::mt19937 random(29);
  const auto upto = [&](unsigned n) { return 1 + static_cast<int>(random() % n); };
  for (int i = 0; i < 20; ++i) {
    const int devices = 1 + upto(3);
    std::string layers;
    for (int s = 0; s < devices; ++s) {
      layers += fmt::format(
          "\n    - {{name: l{}, forward: {} ms, backward_input: {} ms, backward_weight: {} ms, "
          "update: {} ms, parameters: 1 MiB}}",
          s, upto(20), upto(20), upto(20), upto(90));
    }
    // Two servers, between which copies lie unlike, so that each is simulated.
    const std::string text = fmt::format(
        "version: 1\nname: case\nmodel:\n  layers:{}\ncluster: {{levels: [{{size: {}, bandwidth: "
        "100 GB/s}}, {{size: 2, bandwidth: 90 GB/s}}]}}\nplan: {{data_parallel: 2}}\n"
        "schedule: {{name: auto, effort: 0.02, micro_batches: {}}}\ntraining: {{flush: none}}\n",
        layers, devices, upto(8));
    CAPTURE(text);
    const auto answer = answer_order(parsed(text));
    REQUIRE(answer);
    CHECK(answer->gap() >= -1e-9);
    for (const NamedOrder& named : answer->named) CHECK(named.time_s >= answer->time_s - 1e-12);
  }
}

// Qi et al. 2023 (zero bubble), the 1.5B model: its profiled times and the bubbles told for them.
TEST_CASE("the published bubbles of 1F1B, ZB-H1, ZB-H2 and of the best order without a flush") {
  const std::string text = R"(version: 1
name: case
model: {uniform: {layers: 8, forward: 18.522 ms, backward_input: 18.086 ms, backward_weight: 9.337 ms}}
cluster: {devices: 8, link: {latency: 601 us}}
schedule: {name: 1f1b, micro_batches: 24}
)";
  const auto bubble = [&](const std::string& schedule, const std::string& flush) {
    const auto outcome =
        predict(parsed(text, {"schedule.name=" + schedule, "training.flush=" + flush}));
    REQUIRE(outcome);
    return outcome->metrics.bubble_fraction();
  };
  CHECK(bubble("1f1b", "all") == doctest::Approx(0.2431).epsilon(0.0002));
  CHECK(bubble("zb-h1", "all") == doctest::Approx(0.1585).epsilon(0.0003));
  CHECK(bubble("zb-h2", "all") == doctest::Approx(0.1083).epsilon(0.0005));
  CHECK(bubble("auto", "all") == doctest::Approx(0.1083).epsilon(0.0005));
  CHECK(bubble("auto", "none") == doctest::Approx(0.0433).epsilon(0.001));
  const auto answer = answer_order(parsed(text, {"schedule.name=auto", "training.flush=none"}));
  REQUIRE(answer);
  CHECK(answer->gap() < 1e-9);
  CHECK(answer->problem.goal == OrderGoal::span);
}

}  // namespace
}  // namespace plumbline::test
