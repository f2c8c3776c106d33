// A trial of some numbers of recomputed layers, against the whole prediction with them.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/recomputation_trial.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "sim/planning/predict.h"
#include "sim/planning/recomputation_fit.h"
#include "tests/support/scenario_of.h"
#include "tests/support/text_source.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

/// Twelve layers of all sizes on four or eight devices: schedules of every kind, some with copies,
/// replicas, buckets, slices, blocking transfers, several mini-batches, no flush.
class RandomCase {
 public:
  explicit RandomCase(std::uint64_t seed) : dice_(seed) {
    const bool some_unsplit = roll(0, 2) == 0;  // only some layers give their I and W
    for (int i = 0; i < 12; ++i) {
      const std::int64_t input = roll(0, 90);
      const std::int64_t weight = roll(1, 90);
      const std::string backward =
          some_unsplit && roll(0, 1) == 0
              ? fmt::format("backward: {} us", input + weight)
              : fmt::format("backward_input: {} us, backward_weight: {} us", input, weight);
      layers_ += fmt::format(
          "    - {{name: l{}, forward: {} us, {}, output: {} KiB, activation: {} KiB, parameters: "
          "{} KiB, selective: {{activation: {} KiB, forward: {} us}}}}\n",
          i, roll(0, 90), backward, roll(0, 32), 32 + roll(1, 64), roll(0, 9), roll(0, 32),
          roll(0, 40));
    }
    struct Shape {
      const char* schedule;
      int stages;
    };
    static const Shape shapes[] = {
        {"gpipe", 4},   {"1f1b", 4},     {"eager-1f1b", 4}, {"pipedream", 4},
        {"zb-h1", 4},   {"zb-v", 8},     {"naive", 4},      {"interleaved-1f1b", 8},
        {"chimera", 4}, {"dualpipe", 4}, {"1f1b", 4},       {"1f1b", 4}};
    const Shape& shape = shapes[seed % std::size(shapes)];
    const std::string name = shape.schedule;
    const bool updates_always = name == "pipedream";
    const bool is_plain = name == "1f1b";
    std::string more, training, plan;
    if (name == "dualpipe") more = ", pairs: overlapped";
    if (!updates_always && more.empty() && roll(0, 2) == 0) more += ", transfers: blocking";
    if (is_plain && roll(0, 2) == 0) more = ", slices: 2";
    if (!updates_always && name != "dualpipe" && roll(0, 1) == 0) {
      plan = ", data_parallel: 2";
      training = fmt::format("training: {{zero_stage: {}}}\n", is_plain ? roll(0, 3) : roll(0, 1));
      if (is_plain && more.empty()) more += fmt::format(", bucket: {} KiB", roll(1, 20));
    }
    if (!updates_always && roll(0, 2) == 0) more += ", mini_batches: 2";
    if (updates_always && roll(0, 1) == 0) plan = ", replicas: [2, 1, 1, 1]";
    if (name == "gpipe" && training.empty() && more.empty()) training = "training: {flush: none}\n";
    const int copies = plan.empty() ? 1 : 2;
    devices_ = fmt::format("{}cluster: {{devices: {}, ", training, 4 * copies);
    rest_ = fmt::format(
        "link: {{bandwidth: {} GB/s, latency: {} us}}}}\nplan: {{stages: {}, partition: {}{}}}\n"
        "overhead: {{per_op: {} us}}\n",
        roll(1, 20), roll(0, 9), shape.stages, roll(0, 1) == 0 ? "even" : "balanced", plan,
        roll(0, 5));
    schedule_ = fmt::format("name: {}, micro_batches: {}{}", name, 8 * roll(1, 2), more);
    kind_ = roll(0, 1) == 0 ? "layers" : "selective";
  }

  std::string text(const std::string& numbers, const std::string& memory = "1 GiB") const {
    return fmt::format(
        "version: 1\nmodel:\n  layers:\n{}{}memory: {}, {}schedule: {{{}, recompute: {}, "
        "recompute_layers: {}}}\n",
        layers_, devices_, memory, rest_, schedule_, kind_, numbers);
  }
  std::vector<std::int64_t> numbers(const Partition& partition) {
    std::vector<std::int64_t> chosen;
    for (const Stage& stage : partition.stages)
      chosen.push_back(roll(0, static_cast<std::int64_t>(stage.layers.size())));
    return chosen;
  }

 private:
  std::int64_t roll(std::int64_t from, std::int64_t to) { return dice_.roll(from, to); }

  Dice dice_;
  std::string layers_, devices_, rest_, schedule_, kind_;
};

/// Some runs of one trial, each against the whole prediction: none leaves anything to the next.
template <class Numbers>
void check_trials(const Scenario& none, Numbers&& numbers) {
  const auto outcome = predict_resolved(none, Evaluation::fastest);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  auto trial = RecomputationTrial::of(none, *outcome);
  REQUIRE(trial);
  for (int i = 0; i < 4; ++i) {
    CAPTURE(i);
    Scenario some = none;
    const std::vector<std::int64_t> chosen = numbers(outcome->setup.partition);
    some.schedule.recompute.layers = chosen;
    const auto run = trial->run(chosen);
    REQUIRE(run);
    const auto whole = predict_resolved(some, Evaluation::fastest);
    REQUIRE_MESSAGE(whole, (whole ? "" : to_text(whole.problems())));
    CHECK(run->iteration_time_s == whole->iteration_time_s);
    REQUIRE(run->peaks.size() == whole->memory.size());
    Bytes max;
    for (std::size_t slot = 0; slot < run->peaks.size(); ++slot) {
      CHECK(run->peaks[slot] == whole->memory[slot].peak.sum());
      max = std::max(max, run->peaks[slot]);
    }
    CHECK(run->fits(std::vector<Bytes>(run->peaks.size(), max)));
    CHECK_FALSE(run->fits(std::vector<Bytes>(run->peaks.size(), max - Bytes{1})));
  }
}

TEST_CASE("a trial has the time and the memory of the whole prediction") {
  for (std::uint64_t seed = 1; seed <= trials(240); ++seed) {
    CAPTURE(seed);
    RandomCase random(seed);
    check_trials(scenario_of(random.text("0")),
                 [&](const Partition& partition) { return random.numbers(partition); });
  }
}

TEST_CASE("a trial counts neighbours that slow each other down") {
  const auto scenario = read_scenario("examples/neighbours.yaml",
                                      {"schedule.recompute=layers", "schedule.recompute_layers=0"});
  REQUIRE(scenario);
  RandomCase random(1);
  check_trials(*scenario, [&](const Partition& partition) { return random.numbers(partition); });
}

TEST_CASE("what the whole prediction refuses, a trial refuses") {
  const auto check = [](const std::string& text, const std::string& part) {
    CAPTURE(part);
    const Scenario none = scenario_of(text);
    const auto outcome = predict_resolved(none, Evaluation::fastest);
    REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
    auto trial = RecomputationTrial::of(none, *outcome);
    REQUIRE(trial);
    const std::vector<std::int64_t> all(outcome->setup.partition.stages.size(), 1000);
    const auto run = trial->run(all);
    Scenario some = none;
    some.schedule.recompute.layers = all;
    const auto whole = predict_resolved(some, Evaluation::fastest);
    REQUIRE_FALSE(run);
    REQUIRE_FALSE(whole);
    CHECK(to_text(run.problems()) == to_text(whole.problems()));
    CHECK(to_text(run.problems()).find(part) != std::string::npos);
  };
  const auto text = [](const std::string& again, const std::string& output, int copies,
                       int micro_batches) {
    return fmt::format(
        "version: 1\nmodel: {{uniform: {{layers: 1000, forward: 1 us, backward: 1 us, activation: "
        "0 B, output: {}, "
        "parameters: 1 MB, selective: {{activation: 0 B, forward: {}}}}}}}\n"
        "cluster: {{devices: {}}}\nplan: {{stages: 1, data_parallel: {}}}\nschedule: {{name: "
        "gpipe, "
        "micro_batches: {}, recompute: selective, recompute_layers: 0}}\n",
        output, again, copies, copies, micro_batches);
  };
  check(text("270 h", "0 B", 1, 16), "the run could last longer than 120 years");
  check(text("1 h", "0 B", 2048, 2), "the devices' times add up to more than 120 years");
}

TEST_CASE("what a choice has run is the prediction of what was chosen") {
  std::uint64_t known = 0;
  for (std::uint64_t seed = 1; seed <= trials(120); ++seed) {
    CAPTURE(seed);
    const RandomCase random(seed);
    const std::string memory = seed % 2 == 0 ? "1 GiB" : "1 MiB";
    const Scenario scenario = scenario_of(random.text("fit", memory));
    const auto fitted = fit_and_predict(scenario);
    const auto both = settle_and_predict(scenario);
    const auto whole = predict(scenario, Evaluation::fastest);
    REQUIRE(static_cast<bool>(both) == static_cast<bool>(whole));
    if (!whole) continue;
    known += fitted->outcome ? 1 : 0;
    CHECK(both->outcome.iteration_time_s == whole->iteration_time_s);
    CHECK(both->outcome.setup.recomputed == whole->setup.recomputed);
    CHECK(both->outcome.setup.notes == whole->setup.notes);
    CHECK(both->outcome.setup.estimated == whole->setup.estimated);
    CHECK(both->outcome.fits() == whole->fits());
    CHECK(both->scenario.notes == fitted->scenario.notes);
    CHECK(both->outcome.metrics.makespan == whole->metrics.makespan);
    CHECK(both->outcome.throughput_samples_per_s == whole->throughput_samples_per_s);
    CHECK(both->outcome.formula.has_value() == whole->formula.has_value());
    for (std::size_t slot = 0; slot < whole->memory.size(); ++slot) {
      CHECK(both->outcome.memory[slot].peak.sum() == whole->memory[slot].peak.sum());
      CHECK(both->outcome.memory[slot].peak_op == whole->memory[slot].peak_op);
    }
  }
  CHECK(known > trials(30));
}

TEST_CASE("settled and predicted at once is settled, then predicted, whatever was open") {
  for (const std::string change :
       {"schedule.name=auto", "plan.partition=pipedream", "schedule.micro_batches=4",
        "noise={seed: 3, samples: 5, spread: 0.1}"}) {
    CAPTURE(change);
    const auto scenario = read_scenario(
        "examples/four-stages.yaml", {change, "cluster.memory=1 GiB", "schedule.recompute=layers",
                                      "schedule.recompute_layers=fit"});
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
    const auto both = settle_and_predict(*scenario);
    const auto whole = predict(*scenario, Evaluation::fastest);
    REQUIRE(static_cast<bool>(both) == static_cast<bool>(whole));
    if (!whole) {
      CHECK(to_text(both.problems()) == to_text(whole.problems()));
      continue;
    }
    CHECK(both->outcome.iteration_time_s == whole->iteration_time_s);
    CHECK(both->outcome.setup.notes == whole->setup.notes);
    REQUIRE(both->outcome.uncertainty.has_value() == whole->uncertainty.has_value());
    if (whole->uncertainty)
      CHECK(both->outcome.uncertainty->iteration_times_s == whole->uncertainty->iteration_times_s);
  }
}

}  // namespace
}  // namespace plumbline::test
