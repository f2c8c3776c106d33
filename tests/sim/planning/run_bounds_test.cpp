// Bounds of runs, against the runs.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/run_bounds.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>

#include "sim/planning/predict.h"
#include "tests/support/scenario_of.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

RunBounds bounds_of(const std::string& text) {
  const auto bounds = run_bounds(scenario_of(text));
  REQUIRE_MESSAGE(bounds, (bounds ? "" : to_text(bounds.problems())));
  return *bounds;
}

Outcome outcome_of(const std::string& text) {
  auto settled = settle_and_predict(scenario_of(text));
  REQUIRE_MESSAGE(settled, (settled ? "" : to_text(settled.problems())));
  return std::move(settled->outcome);
}

/// A small training of any kind.
std::string random_training(std::uint64_t seed) {
  struct Shape {
    const char* schedule;
    std::int64_t devices, chunks;
  };
  static const Shape shapes[] = {{"1f1b", 4, 1},
                                 {"gpipe", 3, 1},
                                 {"naive", 3, 1},
                                 {"eager-1f1b", 2, 1},
                                 {"zb-h1", 3, 1},
                                 {"zb-h2", 4, 1},
                                 {"interleaved-1f1b", 2, 2},
                                 {"looped-bfs", 2, 2},
                                 {"chimera", 2, 1},
                                 {"zb-v", 2, 2},
                                 {"dualpipev", 2, 2},
                                 {"v-half", 3, 2},
                                 {"dualpipe", 2, 1},
                                 {"pipedream", 3, 1},
                                 {"interleaved-zb", 2, 2},
                                 {"1f1b", 1, 1},
                                 {"pipedream-2bw", 2, 1},
                                 {"interleaved-1f1b", 4, 3},
                                 {"data-parallel", 1, 1}};
  Dice dice(seed);
  const Shape& shape = shapes[seed % std::size(shapes)];
  const std::int64_t stages = shape.devices * shape.chunks;
  const std::int64_t copies = dice.roll(0, 2) == 0 ? 2 * dice.roll(1, 2) : 1;
  const bool many = dice.roll(0, 2) == 0;
  const std::int64_t micro_batches = many ? shape.devices * dice.roll(5, 12) + dice.roll(0, 1)
                                          : shape.devices * 2 * dice.roll(1, 3);
  std::string layers;
  for (std::int64_t i = 0; i < stages + dice.roll(0, stages); ++i) {
    const std::int64_t input = dice.roll(1, 30), weight = dice.roll(0, 30);
    layers += fmt::format(
        "{}{{name: l{}, forward: {} us, backward_input: {} us, backward_weight: {} us, output: {} "
        "kB, activation: {} kB, parameters: {} kB, update: {} us}}",
        i == 0 ? "" : ", ", i, dice.roll(1, 30), input, weight, 100 * dice.roll(0, 5),
        100 * dice.roll(1, 7), 100 * dice.roll(0, 4), dice.roll(0, 9));
  }
  std::string text = fmt::format("version: 1\nmodel: {{layers: [{}]}}\n", layers);
  text += fmt::format(
      "cluster: {{devices: {}, link: {{latency: {} us, bandwidth: {} GB/s}}, memory: {} kB}}\n",
      shape.devices * copies, dice.roll(0, 3), dice.roll(5, 50), 100 * dice.roll(20, 90));
  const bool whole = shape.schedule == std::string("data-parallel");
  const bool has_replicas = !whole && shape.chunks == 1 && stages > 1 && dice.roll(0, 3) == 0;
  if (has_replicas) {  // of all stages but the last, on fewer stages
    text += fmt::format("plan: {{stages: 2, replicas: [{}, 1]}}\n", stages * copies - 1);
  } else if (!whole) {
    text += fmt::format("plan: {{stages: {}, data_parallel: {}}}\n", stages, copies);
  }
  std::string schedule = fmt::format("name: {}, micro_batches: {}", shape.schedule, micro_batches);
  if (shape.chunks > 1) schedule += fmt::format(", chunks: {}", shape.chunks);
  const std::int64_t recompute = dice.roll(0, 4);
  if (recompute == 1) schedule += ", recompute: full";
  if (recompute == 1 && dice.roll(0, 1) == 0) schedule += ", recompute_early: true";
  if (recompute == 2) schedule += ", recompute: layers";
  if (recompute == 3) schedule += ", recompute: layers, recompute_layers: fit";
  if (recompute == 4) schedule += ", recompute: layers, recompute_layers: 1";
  if (dice.roll(0, 4) == 0) schedule += ", transfers: blocking";
  const bool sliced = dice.roll(0, 4) == 0;
  if (sliced) schedule += ", slices: 2";
  if (dice.roll(0, 2) == 0) schedule += fmt::format(", bucket: {} kB", 100 * dice.roll(1, 6));
  if (dice.roll(0, 4) == 0) schedule += ", mini_batches: 2";
  text += fmt::format("schedule: {{{}}}\n", schedule);
  const std::int64_t state = dice.roll(0, 3), zero = dice.roll(0, 3);
  const bool unlike = !sliced && dice.roll(0, 3) == 0;
  std::string sharing;
  if (zero == 3 && dice.roll(0, 1) == 0)
    sharing += dice.roll(0, 1) == 0 ? ", reshard: after-mini-batch" : ", reshard: after-backward";
  if (zero == 3 && dice.roll(0, 1) == 0) sharing += ", prefetch: 2";
  if (zero >= 2 && dice.roll(0, 1) == 0) sharing += ", reduce: behind-last-backward";
  if (zero >= 1 && copies > 1 && !has_replicas && dice.roll(0, 1) == 0)
    sharing += ", shard_degree: 2";
  text += fmt::format("training: {{optimizer_state: {}, zero_stage: {}{}{}}}\n", state, zero,
                      sharing, unlike ? ", micro_batch_lengths: {mean: 1, spread: 0.7}" : "");
  text += fmt::format("overhead: {{per_op: {} us, per_iteration: {} us, hand_over: {} us}}\n",
                      dice.roll(0, 2), dice.roll(0, 20), dice.roll(0, 2));
  return text;
}

}  // namespace

TEST_CASE("no run beats its bounds") {
  int told_misfits = 0, misfits = 0, runs = 0;
  struct Nearness {
    int runs = 0;
    double sum = 0;
    double mean() const { return sum / runs; }
  } like, unlike;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const std::string text = random_training(seed);
    CAPTURE(text);
    auto scenario = parse_scenario(text_source("s.yaml", text), {});
    if (!scenario) continue;
    const auto settled = settle_and_predict(*scenario);
    const auto bounds = run_bounds(*scenario);
    if (!settled) {
      CHECK_FALSE(bounds);
      continue;
    }
    REQUIRE_MESSAGE(bounds, (bounds ? "" : to_text(bounds.problems())));
    ++runs;
    const Outcome& outcome = settled->outcome;
    const bool alike = !scenario->lengths;  // else bounds take each as the shortest
    misfits += alike && outcome.fits() == false;
    if (!bounds->may_fit) {
      told_misfits += alike ? 1 : 0;
      CHECK(outcome.fits() == false);
      continue;
    }
    CHECK(bounds->samples_per_iteration == outcome.samples_per_iteration());
    CHECK(bounds->devices == outcome.devices_used());
    CHECK(bounds->iteration_time_s <= outcome.iteration_time_s);
    CHECK(bounds->throughput() >= *outcome.throughput_samples_per_s);
    if (bounds->iteration_time_s == 0) continue;
    Nearness& near = alike ? like : unlike;
    ++near.runs;
    near.sum += bounds->iteration_time_s / outcome.iteration_time_s;
  }
  // The bounds are of use: they tell of most of what there is to tell, and the times are near. The
  // rolls stand in another order with another compiler, so the limits leave room.
  CHECK(runs > 1000);
  CHECK(like.runs > runs / 4);
  CHECK(unlike.runs > runs / 20);
  CHECK(misfits > runs / 10);
  CHECK(told_misfits > misfits * 8 / 10);
  MESSAGE(like.runs << " alike near by " << like.mean() << ", " << unlike.runs << " unlike by "
                    << unlike.mean() << " of " << runs);
  CHECK(like.mean() > 0.8);
  CHECK(unlike.mean() > 0.5);
}

TEST_CASE("of equal stages without transfers the bound is the time: (m + p - 1) (F + B) + U") {
  const std::string text =
      "version: 1\n"
      "model: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms, update: 5 ms}}\n"
      "cluster: {devices: 4}\nplan: {stages: 4}\n"
      "schedule: {name: 1f1b, micro_batches: 6}\n";
  const RunBounds bounds = bounds_of(text);
  CHECK(bounds.iteration_time_s == doctest::Approx((6 + 3) * 3e-3 + 5e-3).epsilon(1e-12));
  CHECK(bounds.iteration_time_s == outcome_of(text).iteration_time_s);
  CHECK(bounds.throughput() == *outcome_of(text).throughput_samples_per_s);
  CHECK(bounds.may_fit);
}

TEST_CASE("recomputation that the memory asks for is in the bound") {
  const auto text = [](const char* memory) {
    return fmt::format(
        "version: 1\n"
        "model: {{uniform: {{layers: 8, forward: 1 ms, backward: 2 ms, activation: 10 MB, output: "
        "1 MB}}}}\n"
        "cluster: {{devices: 2, memory: {}}}\nplan: {{stages: 2}}\n"
        "schedule: {{name: gpipe, micro_batches: 4, recompute: layers, recompute_layers: fit}}\n",
        memory);
  };
  const RunBounds ample = bounds_of(text("1 GB"));
  CHECK(ample.iteration_time_s == doctest::Approx((4 + 1) * 12e-3));
  // Without recomputation a device holds 4 x 40 MB.
  const RunBounds scarce = bounds_of(text("100 MB"));
  CHECK(scarce.may_fit);
  CHECK(scarce.iteration_time_s > ample.iteration_time_s);
  CHECK(scarce.iteration_time_s <= outcome_of(text("100 MB")).iteration_time_s);
  CHECK_FALSE(bounds_of(text("12 MB")).may_fit);
  CHECK(outcome_of(text("12 MB")).fits() == false);
}

TEST_CASE("devices without neighbours that slow them recompute as fast as they compute") {
  const TemporaryFolder folder;
  std::string layers;
  for (int i = 0; i < 8; ++i) {
    layers += fmt::format(
        "  - {{name: l{}, kind: linear, forward: 10 ms, backward: 10 ms, output: 1 MiB, "
        "activation: "
        "20 MiB}}\n",
        i);
  }
  folder.file("p.yaml", "version: 1\nkind: profile\nmodel: alone\nbatch: 1\nlayers:\n" + layers +
                            "slowdown: {linear: [0.1, 1.0]}\n");
  const std::string path = folder.file(
      "s.yaml",
      "version: 1\nmodel: {profile: p.yaml}\n"
      "cluster: {devices: 2, memory: 100 MiB, slowdown: none}\nplan: {stages: 2}\n"
      "schedule: {name: 1f1b, micro_batches: 8, recompute: layers, recompute_layers: fit}\n");
  const auto scenario = read_scenario(path, {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  const auto bounds = run_bounds(*scenario);
  const auto settled = settle_and_predict(*scenario);
  REQUIRE(bounds);
  REQUIRE(settled);
  CHECK(settled->outcome.fits() == true);
  CHECK(bounds->iteration_time_s > 0);
  CHECK(bounds->iteration_time_s <= settled->outcome.iteration_time_s);
}

TEST_CASE("what has no bound says so") {
  // Without a flush the time is a period.
  const RunBounds bounds = bounds_of(
      "version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms}}\n"
      "cluster: {devices: 2}\nplan: {stages: 2}\n"
      "schedule: {name: pipedream, micro_batches: 4}\n");
  CHECK(bounds.iteration_time_s == 0);
  CHECK(bounds.throughput() == std::numeric_limits<double>::infinity());
  CHECK(bounds.may_fit);
  // A partition that is to be planned is not planned for a bound.
  CHECK(bounds_of("version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms}}\n"
                  "cluster: {devices: 2}\nplan: {partition: pipedream}\n"
                  "schedule: {name: 1f1b, micro_batches: 4}\n")
            .iteration_time_s == 0);
}

}  // namespace plumbline::test
