// As few recomputed layers as fit, against all numbers that there are, and the bound that excludes
// most of them.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/recomputation_fit.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "sim/planning/predict.h"
#include "tests/support/text_source.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

using Counts = std::vector<std::int64_t>;

/// A small pipeline, but for its memory and its numbers.
struct SmallCase {
  std::string schedule;
  std::int64_t stages = 1;
  std::int64_t layers = 1;  ///< Layers of each stage.
  std::string model, cluster, more, training;

  std::string text(const std::string& counts, const std::string& memory = "") const {
    return fmt::format(
        "version: 1\nmodel: {{layers: [{}]}}\ncluster: {{{}{}}}\nplan: {{stages: {}}}\n"
        "schedule: {{name: {}, {}, recompute: layers, recompute_layers: {}}}\n{}",
        model, cluster, memory, stages, schedule, more, counts, training);
  }
};

SmallCase random_case(std::uint64_t seed) {
  struct Shape {
    const char* schedule;
    std::int64_t devices, stages;
  };
  static const Shape shapes[] = {
      {"chimera", 2, 2},    {"zb-v", 2, 4},       {"interleaved-1f1b", 2, 4},
      {"dualpipe", 2, 2},   {"dualpipev", 2, 4},  {"looped-bfs", 1, 3},
      {"1f1b", 3, 3},       {"gpipe", 2, 2},      {"zb-h1", 2, 2},
      {"looped-bfs", 2, 4}, {"eager-1f1b", 2, 2}, {"interleaved-zb", 2, 4},
      {"v-half", 2, 4},     {"pipedream", 2, 2}};
  Dice dice(seed);
  const Shape& shape = shapes[seed % std::size(shapes)];
  SmallCase c;
  c.schedule = shape.schedule;
  c.stages = shape.stages;
  c.layers = shape.stages == 4 ? dice.roll(1, 2) : dice.roll(2, 3);
  for (std::int64_t i = 0; i < c.stages * c.layers; ++i) {
    c.model += fmt::format(
        "{}{{name: l{}, forward: {} us, backward_input: {} us, backward_weight: {} us, output: {} "
        "kB, activation: {} kB}}",
        i == 0 ? "" : ", ", i, dice.roll(1, 40), dice.roll(0, 40), dice.roll(1, 40),
        100 * dice.roll(0, 5), 100 * dice.roll(3, 7));
  }
  c.cluster = fmt::format("devices: {}, link: {{bandwidth: {} MB/s, latency: {} us}}",
                          shape.devices, 500 * dice.roll(1, 40), 5 * dice.roll(0, 10));
  c.more = fmt::format("micro_batches: {}", shape.devices * dice.roll(2, 4));
  if (seed % 5 == 0)
    c.training = "training: {micro_batch_lengths: {mean: 1, spread: 0.5, multiple: 0.25}}\n";
  if (c.schedule.find("loop") != std::string::npos)
    c.more += fmt::format(", chunks: {}", shape.stages / shape.devices);
  return c;
}

Outcome outcome_of(const std::string& text) {
  CAPTURE(text);
  const auto scenario = parse_scenario(text_source("fit.yaml", text), {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  auto outcome = predict(*scenario, Evaluation::fastest);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

/// The compared results of one choice of numbers.
struct Tried {
  std::int64_t sum = 0;
  double time_s = 0;
  std::int64_t peak = 0;
};

std::vector<Tried> all_of(const SmallCase& c) {
  std::vector<Tried> all;
  Counts counts(static_cast<std::size_t>(c.stages), 0);
  while (true) {
    const Outcome outcome = outcome_of(c.text(fmt::format("[{}]", fmt::join(counts, ", "))));
    Tried& tried = all.emplace_back();
    tried.sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    tried.time_s = outcome.iteration_time_s;
    for (const DeviceMemory& device : outcome.memory)
      tried.peak = std::max(tried.peak, device.peak.sum().count);
    std::size_t at = 0;
    while (at < counts.size() && counts[at] == c.layers) counts[at++] = 0;
    if (at == counts.size()) return all;
    ++counts[at];
  }
}

TEST_CASE("the numbers that fit have the least sum of all, and of those the least time") {
  std::uint64_t tight = 0;
  for (std::uint64_t seed = 1; seed <= trials(140); ++seed) {
    CAPTURE(seed);
    const SmallCase c = random_case(seed);
    const std::vector<Tried> all = all_of(c);
    std::int64_t min = all.front().peak;
    for (const Tried& tried : all) min = std::min(min, tried.peak);
    for (const int part : {0, 30, 70}) {
      const std::int64_t memory = min + (all.front().peak - min) * part / 100;
      if (memory >= all.front().peak) continue;
      CAPTURE(memory);
      const Tried* best = nullptr;
      for (const Tried& tried : all) {
        if (tried.peak > memory) continue;
        if (!best || tried.sum < best->sum ||
            (tried.sum == best->sum && tried.time_s < best->time_s))
          best = &tried;
      }
      const auto scenario = parse_scenario(
          text_source("fit.yaml", c.text("fit", fmt::format(", memory: {} B", memory))), {});
      REQUIRE(scenario);
      const auto settled = fit_recomputation(*scenario);
      REQUIRE(settled);
      const auto& chosen = std::get<Counts>(settled->schedule.recompute.layers);
      CHECK(std::accumulate(chosen.begin(), chosen.end(), std::int64_t{0}) == best->sum);
      CHECK(settled->notes.back() ==
            fmt::format("{} of {} layers are recomputed (recompute: layers), the fewest with which "
                        "each device fits: schedule.recompute_layers=[{}]",
                        best->sum, scenario->model->graph.size(), fmt::join(chosen, ",")));
      const auto outcome = predict(*settled);
      REQUIRE(outcome);
      CHECK(*outcome->fits());
      CHECK(outcome->iteration_time_s == best->time_s);
      ++tight;
    }
  }
  CHECK(tight > trials(300));
}

TEST_CASE("of stages that share devices those that hold most are recomputed, not equal shares") {
  // Chimera: each device holds one micro-batch of stage 0, three layers of 10 kB, and one of stage
  // 1, three of 4 kB. With two layers of stage 0 recomputed they are 10 + 12 kB, and 10 + 10 in the
  // last backward. One of each stage leaves 20 + 8.
  SmallCase c;
  c.schedule = "chimera";
  c.stages = 2;
  for (int i = 0; i < 6; ++i) {
    c.model += fmt::format("{}{{name: l{}, forward: 1 ms, backward: 2 ms, activation: {} kB}}",
                           i == 0 ? "" : ", ", i, i < 3 ? 10 : 4);
  }
  c.cluster = "devices: 2, memory: 24 kB";
  c.more = "micro_batches: 2";
  const auto scenario = parse_scenario(text_source("fit.yaml", c.text("fit")), {});
  REQUIRE(scenario);
  const auto settled = fit_recomputation(*scenario);
  REQUIRE(settled);
  CHECK(std::get<Counts>(settled->schedule.recompute.layers) == Counts{2, 0});
}

TEST_CASE("where no numbers fit all layers are taken, and a note says so") {
  SmallCase c = random_case(14);  // chimera
  const auto scenario =
      parse_scenario(text_source("fit.yaml", c.text("fit", ", memory: 1 kB")), {});
  REQUIRE(scenario);
  const auto settled = fit_recomputation(*scenario);
  REQUIRE(settled);
  CHECK(std::get<Counts>(settled->schedule.recompute.layers) ==
        Counts(static_cast<std::size_t>(c.stages), c.layers));
  CHECK(settled->notes.back().find("all that there are, which do not suffice") !=
        std::string::npos);
}

}  // namespace
}  // namespace plumbline::test
