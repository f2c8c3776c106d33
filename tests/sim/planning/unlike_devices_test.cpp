// Devices and links that are not all alike, beside the same scenarios written out.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "sim/planning/device_choice.h"
#include "sim/planning/found_order.h"
#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

Scenario parsed(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto scenario = parse_scenario(text_source("case.yaml", text), overrides);
  REQUIRE_MESSAGE(scenario, text << (scenario ? "" : to_text(scenario.problems().front())));
  return *std::move(scenario);
}

Outcome outcome_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto outcome = predict(parsed(text, overrides));
  REQUIRE_MESSAGE(outcome, text << (outcome ? "" : to_text(outcome.problems().front())));
  return *std::move(outcome);
}

/// A pipeline of which each stage's devices have their own speed.
struct UnlikePipeline {
  std::vector<double> speeds;             ///< Of each device.
  std::vector<std::int64_t> layers;       ///< Of each stage.
  std::vector<std::array<int, 5>> times;  ///< Of each layer: F, I, W, update in us; MiB.

  /// With `written_out`, every layer has the times of its device.
  std::string text(const std::string& schedule, bool written_out) const {
    std::string text = "version: 1\nname: case\nmodel:\n  layers:";
    std::size_t stage = 0;
    std::int64_t left = layers[0];
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (left-- == 0) left = layers[++stage] - 1;
      const auto time = [&](int us) {
        const double ns = us * 1000.0;
        return written_out ? std::llround(ns / speeds[stage]) : std::llround(ns);
      };
      text += fmt::format(
          "\n    - {{name: l{}, forward: {} ns, backward_input: {} ns, backward_weight: {} ns, "
          "update: {} ns, activation: {} MiB, output: {} MiB, parameters: {} MiB}}",
          i, time(times[i][0]), time(times[i][1]), time(times[i][2]), time(times[i][3]),
          times[i][4], 1 + times[i][4] / 3, times[i][4]);
    }
    text += "\ncluster:\n  link: {bandwidth: 2 GB/s, latency: 30 us}\n  devices:";
    if (written_out) {
      text += fmt::format(" {}", speeds.size());
    } else {
      for (const double speed : speeds)
        text += fmt::format("\n    - {{count: 1, speed: {}}}", speed);
    }
    return text + fmt::format("\nplan: {{partition: [{}]}}\nschedule: {}\n",
                              fmt::join(layers, ", "), schedule);
  }
};

UnlikePipeline random_pipeline(std::mt19937& random) {
  const auto upto = [&](unsigned n) { return 1 + static_cast<int>(random() % n); };
  UnlikePipeline pipeline;
  const int devices = upto(5);
  for (int d = 0; d < devices; ++d) {
    constexpr std::array<double, 5> speeds = {1, 0.5, 0.75, 1.3, 3};
    pipeline.speeds.push_back(speeds[random() % speeds.size()]);
    pipeline.layers.push_back(upto(3));
  }
  for (auto left = std::accumulate(pipeline.layers.begin(), pipeline.layers.end(), std::int64_t{0});
       left > 0; --left)
    pipeline.times.push_back({upto(900), upto(900), upto(900), upto(50), upto(9)});
  return pipeline;
}

TEST_CASE("unlike devices are those of a model whose layers have their times") {
  std::mt19937 random(41);
  constexpr std::array schedules = {"naive", "gpipe",      "1f1b",     "zb-h1", "delayed-backward",
                                    "zb-h2", "eager-1f1b", "pipedream"};
  constexpr std::array more = {"", ", recompute: full", ", recompute: layers",
                               ", transfers: blocking"};
  for (int i = 0; i < 1000; ++i) {
    const UnlikePipeline pipeline = random_pipeline(random);
    const std::string_view name = schedules[random() % schedules.size()];
    const auto devices = static_cast<unsigned>(pipeline.speeds.size());
    const std::string schedule = fmt::format(
        "{{name: {}, micro_batches: {}{}}}", name, std::size_t{2} * devices + random() % 4,
        name == "pipedream" ? "" : more[random() % more.size()]);
    const std::string unlike_text = pipeline.text(schedule, false);
    const std::string written_text = pipeline.text(schedule, true);
    CAPTURE(unlike_text);
    const Outcome unlike = outcome_of(unlike_text);
    const Outcome written = outcome_of(written_text);
    CHECK(unlike.iteration_time_s == written.iteration_time_s);
    CHECK(unlike.metrics.makespan == written.metrics.makespan);
    REQUIRE(unlike.memory.size() == written.memory.size());
    for (std::size_t slot = 0; slot < unlike.memory.size(); ++slot) {
      CHECK(unlike.metrics.devices[slot].busy == written.metrics.devices[slot].busy);
      CHECK(unlike.metrics.devices[slot].idle == written.metrics.devices[slot].idle);
      CHECK(unlike.memory[slot].peak.sum() == written.memory[slot].peak.sum());
    }
    const auto fastest = predict(parsed(unlike_text), Evaluation::fastest);
    REQUIRE(fastest);
    CHECK(fastest->iteration_time_s == unlike.iteration_time_s);
  }
}

const char* const kFour = R"(version: 1
name: case
model:
  layers:
    - {name: a, forward: 3 ms, backward: 5 ms, activation: 40 MiB, output: 4 MiB, parameters: 10 MiB}
    - {name: b, forward: 1 ms, backward: 2 ms, activation: 10 MiB, output: 8 MiB, parameters: 10 MiB}
    - {name: c, forward: 2 ms, backward: 4 ms, activation: 10 MiB, output: 1 MiB, parameters: 90 MiB}
    - {name: d, forward: 4 ms, backward: 9 ms, activation: 20 MiB, output: 2 MiB, parameters: 10 MiB}
    - {name: e, forward: 2 ms, backward: 2 ms, activation: 10 MiB, output: 2 MiB, parameters: 10 MiB}
    - {name: f, forward: 1 ms, backward: 3 ms, activation: 5 MiB, parameters: 10 MiB}
cluster:
  devices:
    - {count: 2, speed: 1, memory: 300 MiB}
    - {count: 2, speed: 0.6, memory: 200 MiB}
  link: {bandwidth: 5 GB/s, latency: 20 us}
plan: {partition: balanced}
schedule: {name: 1f1b, micro_batches: 6}
)";

TEST_CASE("a balanced partition knows the speed of each stage's device") {
  const Outcome outcome = outcome_of(kFour);
  const auto longest = [](const Outcome& run) {
    Duration most{};
    for (const DeviceMetrics& device : run.metrics.devices) most = std::max(most, device.busy);
    return most;
  };
  const Duration balanced = longest(outcome);
  for (int a = 1; a <= 3; ++a) {
    for (int b = 1; a + b <= 4; ++b) {
      for (int c = 1; a + b + c <= 5; ++c) {
        const std::string counts = fmt::format("[{}, {}, {}, {}]", a, b, c, 6 - a - b - c);
        CHECK(longest(outcome_of(kFour, {"plan.partition=" + counts})) >= balanced);
      }
    }
  }
}

TEST_CASE("the memory of each device is its own") {
  const Outcome outcome = outcome_of(kFour, {"schedule.name=gpipe"});
  CHECK(outcome.memory_limit(0) == Bytes{300 << 20});
  CHECK(outcome.memory_limit(3) == Bytes{200 << 20});
  CHECK(outcome.device_kind(3) == "0.6x");
  for (std::size_t slot = 0; slot < 4; ++slot)
    CHECK(outcome.fits(slot) == (outcome.memory[slot].peak.sum() <= *outcome.memory_limit(slot)));
  CHECK(outcome.fits() == false);
  CHECK(shortage(outcome).find("more than its 300 MiB") != std::string::npos);
  // An order that is found, and recomputation that is to fit, keep to each device's memory.
  const auto order = answer_order(parsed(kFour, {"schedule.name=auto"}));
  REQUIRE(order);
  CHECK(order->fits);
  const auto found = predict(order->scenario);
  REQUIRE(found);
  CHECK(found->fits() == true);
  for (const char* const second : {"70 MiB", "100 MiB"}) {
    const Outcome fitted =
        outcome_of(kFour, {"schedule.name=gpipe", "schedule.recompute=layers",
                           "schedule.recompute_layers=fit", "cluster.devices[0].memory=420 MiB",
                           fmt::format("cluster.devices[1].memory={}", second)});
    CHECK(fitted.fits() == true);
    const bool is_tight = std::string_view(second) == "70 MiB";
    CHECK((fitted.metrics.devices[2].busy > outcome.metrics.devices[2].busy) == is_tight);
  }
}

/// All arrangements of the devices, and the least time among those that fit.
double best_by_trying_all(const std::string& text, const std::vector<std::string>& overrides) {
  std::vector<int> devices = {0, 1, 2, 3};
  double best = std::numeric_limits<double>::infinity();
  do {
    std::vector<std::string> all = overrides;
    all.push_back(fmt::format("plan.devices=[{}]", fmt::join(devices, ", ")));
    const Outcome outcome = outcome_of(text, all);
    if (outcome.fits().value_or(true)) best = std::min(best, outcome.iteration_time_s);
  } while (std::next_permutation(devices.begin(), devices.end()));
  return best;
}

TEST_CASE("plan.devices: auto is as fast as the best of all arrangements") {
  for (const char* const memory : {"300 MiB", "200 MiB"}) {
    for (const char* const name : {"gpipe", "1f1b", "zb-h1"}) {
      const std::vector<std::string> overrides = {
          fmt::format("cluster.devices[0].memory={}", memory),
          fmt::format("schedule.name={}", name)};
      std::vector<std::string> open = overrides;
      open.emplace_back("plan.devices=auto");
      const double best = best_by_trying_all(kFour, overrides);
      const Outcome outcome = outcome_of(kFour, open);
      CAPTURE(name);
      if (std::isinf(best)) {
        CHECK(outcome.fits() == false);
      } else {
        CHECK(outcome.iteration_time_s == best);
        CHECK(outcome.fits() == true);
      }
      const std::vector<std::string>& notes = outcome.setup.notes;
      CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
        return note.starts_with("devices: ") && note.find("6 arrangements") != std::string::npos;
      }));
    }
  }
}

TEST_CASE("with links of their own, devices change places one by one") {
  const std::vector<std::string> overrides = {
      "cluster.devices=4", "cluster.memory=1 GiB",
      "cluster.links=[{among: [0, 2], bandwidth: 100 MB/s}, {from: [1], to: [2, 3], bandwidth: "
      "50 MB/s, latency: 1 ms}]"};
  std::vector<std::string> open = overrides;
  open.emplace_back("plan.devices=auto");
  const Outcome outcome = outcome_of(kFour, open);
  CHECK(outcome.iteration_time_s <= outcome_of(kFour, overrides).iteration_time_s);
  CHECK(outcome.iteration_time_s == best_by_trying_all(kFour, overrides));
}

TEST_CASE("an order is found for unlike devices, on the best of them") {
  const std::vector<std::string> overrides = {
      "schedule.name=auto", "cluster.devices[0].memory=1 GiB", "cluster.devices[1].memory=1 GiB"};
  const auto numbered = answer_order(parsed(kFour, overrides));
  std::vector<std::string> open = overrides;
  open.emplace_back("plan.devices=auto");
  const auto chosen = answer_order(parsed(kFour, open));
  REQUIRE(numbered);
  REQUIRE(chosen);
  CHECK(chosen->time_s <= numbered->time_s);
  CHECK(numbered->devices.empty());
  CHECK(chosen->devices.find("6 arrangements") != std::string::npos);
  const auto outcome = predict(chosen->scenario);
  REQUIRE(outcome);
  CHECK(order_time_s(*outcome) == chosen->time_s);
  for (const NamedOrder& named : chosen->named) {
    if (named.fits) CHECK(named.time_s >= chosen->time_s);
  }
}

// Short searches alone take another arrangement for the best of these.
TEST_CASE("an order on the best devices is no longer than on any others") {
  const std::string text = R"(version: 1
name: case
model:
  layers:
    - {name: l0, forward: 2 ms, backward_input: 2 ms, backward_weight: 2 ms, output: 10 MB, activation: 100 MiB, parameters: 50 MiB}
    - {name: l1, forward: 4 ms, backward_input: 4 ms, backward_weight: 4 ms, output: 5 MB, activation: 100 MiB, parameters: 50 MiB}
    - {name: l2, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms, output: 1 MB, activation: 100 MiB, parameters: 50 MiB}
    - {name: l3, forward: 4 ms, backward_input: 4 ms, backward_weight: 4 ms, output: 10 MB, activation: 100 MiB, parameters: 50 MiB}
    - {name: l4, forward: 3 ms, backward_input: 3 ms, backward_weight: 3 ms, output: 5 MB, activation: 100 MiB, parameters: 50 MiB}
    - {name: l5, forward: 2 ms, backward_input: 2 ms, backward_weight: 2 ms, output: 5 MB, activation: 100 MiB, parameters: 50 MiB}
    - {name: l6, forward: 3 ms, backward_input: 3 ms, backward_weight: 3 ms, output: 1 MB, activation: 100 MiB, parameters: 50 MiB}
cluster:
  devices: [{count: 2, name: old, speed: 0.3, memory: 2 GiB}, {count: 2, name: new, memory: 3 GiB}]
  link: {bandwidth: 3 GB/s}
plan: {partition: balanced}
schedule: {name: auto, micro_batches: 7}
)";
  const auto open = answer_order(parsed(text, {"plan.devices=auto"}));
  REQUIRE(open);
  for (const char* const devices : {"[0, 1, 2, 3]", "[0, 2, 1, 3]", "[0, 2, 3, 1]", "[2, 0, 1, 3]",
                                    "[2, 0, 3, 1]", "[2, 3, 0, 1]"}) {
    CAPTURE(devices);
    const auto given = answer_order(parsed(text, {fmt::format("plan.devices={}", devices)}));
    REQUIRE(given);
    CHECK(open->time_s <= given->time_s + 1e-12);
  }
}

TEST_CASE("links of their own are those of levels that say the same") {
  std::mt19937 random(5);
  for (int i = 0; i < 100; ++i) {
    const auto rate = [&] { return 1 + random() % 9; };
    const auto inner = rate(), outer = rate(), latency = rate();
    const std::string base =
        "version: 1\nname: case\nmodel: {uniform: {layers: 8, forward: 1 ms, "
        "backward: 2 ms, output: 5 MiB, activation: 1 MiB}}\n";
    const std::string rest =
        fmt::format("schedule: {{name: 1f1b, micro_batches: {}}}\n", 4 + i % 9);
    const std::string in = fmt::format("bandwidth: {} GB/s, latency: 5 us", inner);
    const std::string out = fmt::format("bandwidth: {} GB/s, latency: {} us", outer, latency);
    const auto with = [&](const std::string& cluster) {
      return outcome_of(fmt::format("{}cluster: {}\n{}", base, cluster, rest));
    };
    const Outcome levels =
        with(fmt::format("{{levels: [{{size: 2, {}}}, {{size: 2, {}, cards: each}}]}}", in, out));
    const Outcome pairs = with(fmt::format(
        "{{devices: 4, link: {{{}}}, links: [{{from: [0, 1], to: [2, 3], {}}}]}}", in, out));
    const Outcome islands = with(fmt::format(
        "{{devices: [{{count: 2, link: {{{}}}}}, {{count: 2, link: {{{}}}}}], link: {{{}}}}}", in,
        in, out));
    CHECK(pairs.metrics.makespan == levels.metrics.makespan);
    CHECK(islands.metrics.makespan == levels.metrics.makespan);
  }
}

TEST_CASE("an override of levels, or of one key of a listed device, keeps the kinds") {
  const std::string text = R"(version: 1
name: case
model: {uniform: {layers: 4, flops: 1 TFLOP, output: 1 MB}}
cluster:
  devices: [{count: 2, device: h100-sxm}, {count: 2, device: a100-sxm-80gb}]
  levels: [{size: 2, bandwidth: 100 GB/s}, {size: 2, bandwidth: 5 GB/s}]
schedule: {name: 1f1b, micro_batches: 4}
)";
  const Outcome plain = outcome_of(text);
  const Outcome same = outcome_of(text, {"cluster.levels[1].bandwidth=5 GB/s"});
  CHECK(same.device_kind(3) == "a100-sxm-80gb");
  CHECK(same.iteration_time_s == plain.iteration_time_s);
  const Outcome slower = outcome_of(text, {"cluster.devices[1].device.efficiency=0.25"});
  CHECK(slower.device_kind(3) == "a100-sxm-80gb");
  CHECK(slower.metrics.devices[0].busy == plain.metrics.devices[0].busy);
  CHECK(slower.metrics.devices[3].busy > plain.metrics.devices[3].busy);
}

TEST_CASE("kinds that are named are timed by their own kernels") {
  const std::string text = R"(version: 1
name: case
model:
  layers:
    - {name: a, flops: 4 TFLOP, memory_traffic: 1 GB, parameters: 100 MB}
    - {name: b, flops: 4 TFLOP, memory_traffic: 1 GB, parameters: 100 MB}
cluster:
  devices: [{device: h100-sxm, count: 1}, {device: a100-sxm-80gb, count: 1, memory: 40 GiB}]
schedule: {name: 1f1b, micro_batches: 4}
)";
  const Outcome mixed = outcome_of(text);
  const Outcome fast = outcome_of(text, {"cluster.devices=2", "cluster.device=h100-sxm"});
  const Outcome slow = outcome_of(text, {"cluster.devices=2", "cluster.device=a100-sxm-80gb"});
  CHECK(mixed.metrics.devices[0].busy == fast.metrics.devices[0].busy);
  CHECK(mixed.metrics.devices[1].busy == slow.metrics.devices[1].busy);
  CHECK(mixed.setup.peak->count == (fast.setup.peak->count + slow.setup.peak->count) / 2);
  CHECK(mixed.memory_limit(1) == Bytes{std::int64_t{40} << 30});
  CHECK(mixed.device_kind(1) == "a100-sxm-80gb");
}

TEST_CASE("runs of one kind may hold the copies of a stage, whatever their names and links") {
  const std::string text = R"(version: 1
name: case
model: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms, output: 1 MiB, parameters: 1 MiB}}
cluster:
  devices:
    - {count: 1, name: a, speed: 0.5, link: {bandwidth: 1 GB/s}}
    - {count: 3, name: b, speed: 0.5}
  link: {bandwidth: 2 GB/s}
plan: {data_parallel: 2}
schedule: {name: 1f1b, micro_batches: 4}
)";
  const Outcome runs = outcome_of(text);
  const Outcome alike = outcome_of(
      text, {"cluster.devices=4", "model.uniform.forward=2 ms", "model.uniform.backward=4 ms"});
  CHECK(runs.metrics.makespan == alike.metrics.makespan);
}

TEST_CASE("an arrangement is found where that of the numbers cannot run") {
  const std::string text = R"(version: 1
name: case
model: {uniform: {layers: 6, forward: 1 ms, backward: 2 ms}}
cluster: {devices: [{count: 3, name: old, speed: 0.5}, {count: 5, name: new}]}
plan: {data_parallel: 2, stages: 3, partition: balanced, devices: auto}
schedule: {name: 1f1b, micro_batches: 4}
)";
  CHECK_FALSE(predict(parsed(text, {"plan.devices=null"})));
  const Outcome outcome = outcome_of(text);
  CHECK(outcome.iteration_time_s <=
        outcome_of(text, {"plan.devices=[[2], [3], [0]]"}).iteration_time_s);
  // Both directions of a pipeline stand on devices of one kind.
  const std::string two_ways = R"(version: 1
name: case
model: {uniform: {layers: 8, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}}
cluster: {devices: [{count: 4, speed: 0.5}, {count: 4}]}
plan: {stages: 8, devices: auto}
schedule: {name: dualpipe, micro_batches: 16}
)";
  CHECK(outcome_of(two_ways).iteration_time_s > 0);
}

TEST_CASE("of many arrangements, those in which kinds stay together are tried") {
  for (const int kinds : {3, 14}) {
    std::string text =
        "version: 1\nname: case\nmodel: {uniform: {layers: 24, forward: 1 ms, "
        "backward: 2 ms}}\ncluster:\n  devices:\n";
    for (int k = 0; k < kinds; ++k)
      text += fmt::format("    - {{count: 8, speed: {}}}\n", 1 + 0.1 * k);
    text +=
        "plan: {stages: 12, partition: balanced, devices: auto}\n"
        "schedule: {name: gpipe, micro_batches: 4}\n";
    const auto open = parsed(text);
    std::size_t tried = 0;
    bool all_blocks = true;
    const auto chosen = choose_devices(open, [&](const Scenario& one) -> Result<TriedDevices> {
      const auto& order = one.plan.device_order;
      REQUIRE(order.size() == 12);
      std::vector<std::uint32_t> runs;
      for (const std::uint32_t device : order) {
        if (runs.empty() || runs.back() != device / 8) runs.push_back(device / 8);
      }
      all_blocks = all_blocks && runs.size() <= 4;
      ++tried;
      return TriedDevices{true, 1.0 / static_cast<double>(tried), {}};
    });
    REQUIRE(chosen);
    CHECK(all_blocks);
    CHECK(tried <= kMaxArrangements);
    CHECK(tried >= 6);
    CHECK_FALSE(chosen->scenario.plan.devices_open);
  }
}

TEST_CASE("stages whose copies would be unlike are refused") {
  const auto refused = predict(parsed(kFour, {"schedule.name=data-parallel", "plan=null"}));
  REQUIRE_FALSE(refused);
  CHECK(refused.problems().front().message ==
        "stage 0 stands on device 0 (usual) and on device 2 (0.6x)");
  const auto planned = predict(parsed(kFour, {"plan.partition=pipedream"}));
  REQUIRE_FALSE(planned);
  CHECK(planned.problems().front().message.find("not alike") != std::string::npos);
}

}  // namespace
}  // namespace plumbline::test
