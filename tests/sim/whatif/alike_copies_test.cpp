// Copies that are alike: the first one for all of them, beside all of them.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/planning/predict.h"
#include "sim/whatif/sweep.h"
#include "tests/support/scenario_of.h"
#include "tests/support/text_source.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

/// Layers that differ, on this cluster, in copies.
std::string text_of(Dice& dice, const std::string& cluster, std::int64_t stages,
                    std::int64_t copies, const std::string& schedule) {
  std::string layers;
  for (int i = 0; i < 12; ++i) {
    layers += fmt::format(
        "{}{{name: l{}, forward: {} us, backward: {} us, update: {} us, output: {} KiB, "
        "activation: {} KiB, parameters: {} KiB}}",
        i == 0 ? "" : ", ", i, dice.roll(1, 900), dice.roll(1, 900), dice.roll(0, 40),
        dice.roll(0, 900), dice.roll(1, 9000), dice.roll(0, 90'000));
  }
  return fmt::format(
      "version: 1\nmodel: {{layers: [{}]}}\ncluster: {}\n"
      "plan: {{stages: {}, data_parallel: {}}}\nschedule: {{{}, micro_batches: {}, transfers: "
      "{}{}}}\ntraining: {{optimizer_state: 2, zero_stage: {}, gather: {}}}\n"
      "overhead: {{hand_over: 3 us}}\n",
      layers, cluster, stages, copies, schedule, stages * dice.roll(1, 3),
      dice.roll(0, 1) == 0 ? "overlapped" : "blocking",
      dice.roll(0, 1) == 0 ? "" : fmt::format(", bucket: {} KiB", dice.roll(1, 90'000)),
      dice.roll(0, 1), dice.roll(0, 1) == 0 ? "behind-update" : "with-forward");
}

/// Evaluates both ways; returns whether one copy was written for all.
bool check_alike(const std::string& text) {
  CAPTURE(text);
  const Scenario scenario = scenario_of(text);
  const auto whole = predict(scenario, Evaluation::events);
  const auto fast = predict(scenario, Evaluation::fastest);
  REQUIRE(whole);
  REQUIRE(fast);
  CHECK(numbers_of(*whole) == numbers_of(*fast));
  CHECK(whole->metrics.makespan == fast->metrics.makespan);
  if (fast->graph.copies_represented == 1) return false;
  CHECK(fast->graph.slots() * fast->graph.copies_represented == whole->graph.slots());
  // The memory and the waits of the first copy's devices.
  for (std::uint32_t slot = 0; slot < fast->graph.slots(); ++slot) {
    const std::uint32_t same = slot * fast->graph.copies_represented;
    CHECK(fast->graph.devices[slot] == whole->graph.devices[same]);
    CHECK(fast->memory[slot].peak.sum() == whole->memory[same].peak.sum());
    CHECK(fast->metrics.devices[slot].busy == whole->metrics.devices[same].busy);
    CHECK(fast->metrics.devices[slot].idle_by_cause.all_reduce ==
          whole->metrics.devices[same].idle_by_cause.all_reduce);
  }
  return true;
}

TEST_CASE("the first of copies that are alike tells what all of them do") {
  Dice dice(5);
  std::uint64_t alike = 0;
  for (std::uint64_t trial = 0; trial < trials(60); ++trial) {
    const std::int64_t copies = dice.roll(1, 3) * 2;
    const std::int64_t devices = dice.roll(2, 4);
    const std::int64_t kind = dice.roll(0, 2);
    const bool chunks = dice.roll(0, 2) == 0;
    const std::string flat =
        fmt::format("{{devices: {}, memory: 1 GiB, link: {{latency: {} us, bandwidth: {} MB/s}}}}",
                    copies * devices, dice.roll(0, 50), dice.roll(50, 9000));
    const std::string levels = fmt::format(
        "{{levels: [{{size: {}, latency: {} us, bandwidth: 9 GB/s}}, {{size: {}, latency: 20 us, "
        "bandwidth: {} MB/s, cards: each}}]}}",
        kind == 1 ? copies : 2, dice.roll(0, 20), kind == 1 ? devices : copies / 2 * devices,
        dice.roll(50, 900));
    alike += check_alike(text_of(dice, kind == 0 ? flat : levels, devices * (chunks ? 2 : 1),
                                 copies, chunks ? "name: interleaved-1f1b" : "name: 1f1b"))
                 ? 1
                 : 0;
  }
  CHECK(alike == trials(60));
}

TEST_CASE(
    "copies that share cards, differ in links or in what neighbours do are written one by one") {
  Dice dice(6);
  const auto alone = [&](const std::string& cluster, std::int64_t copies,
                         const std::string& schedule = "name: 1f1b") {
    CHECK_FALSE(check_alike(text_of(dice, cluster, 2, copies, schedule)));
  };
  // One card a server, and the boundary lies between servers.
  alone("{levels: [{size: 2, bandwidth: 9 GB/s}, {size: 2, bandwidth: 1 GB/s}]}", 2);
  // The second of three copies has its stages in two servers of four, the others in one.
  alone("{levels: [{size: 4, bandwidth: 9 GB/s}, {size: 2, bandwidth: 1 GB/s, cards: each}]}", 3);
  // A hop of the ring has the longest latency, another one the least bandwidth.
  alone(
      "{levels: [{size: 2, latency: 900 us, bandwidth: 9 GB/s}, {size: 4, latency: 1 us, "
      "bandwidth: 1 GB/s, cards: each}]}",
      4);
  // One copy.
  alone("{devices: 2}", 1);
  // Copies that noise parts.
  const std::string noisy = text_of(dice, "{devices: 4}", 2, 2, "name: 1f1b");
  const auto fast =
      predict(scenario_of(noisy + "noise: {spread: 0.1, samples: 10}\n"), Evaluation::fastest);
  REQUIRE(fast);
  CHECK(fast->graph.copies_represented == 1);
}

}  // namespace
}  // namespace plumbline::test
