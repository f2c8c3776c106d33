// Gradients that are wider or narrower than the parameters.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "tests/support/builders.h"
#include "tests/support/close_to.h"

namespace plumbline::test {
namespace {

Outcome predicted(const std::string& training, const std::string& rest) {
  const auto scenario = parse_scenario(
      text_source("gradients.yaml",
                  "version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms, "
                  "parameters: 500 MB}}\n" +
                      rest + "training: {" + training + "}\n"),
      {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  auto outcome = predict(*scenario);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

const std::string kTwoCopies =
    "cluster: {devices: 2, link: {bandwidth: 10 GB/s}}\nplan: {stages: 1, data_parallel: 2}\n"
    "schedule: {name: gpipe, micro_batches: 1}\n";

TEST_CASE(
    "gradients of another width are held and all-reduced so, weights are gathered as they are") {
  // Each of two copies sends half of 1 GB twice: 100 ms behind 6 ms of F and B.
  const Outcome alike = predicted("gradients: 1", kTwoCopies);
  CHECK(alike.metrics.makespan == std::chrono::milliseconds(106));
  CHECK(alike.memory[0].peak.gradients == Bytes{1'000'000'000});
  const Outcome wide = predicted("gradients: 2", kTwoCopies);
  CHECK(wide.metrics.makespan == std::chrono::milliseconds(206));
  CHECK(wide.memory[0].peak.gradients == Bytes{2'000'000'000});
  CHECK(wide.memory[0].peak.weights == Bytes{1'000'000'000});
  // Scattered: half of 2 GB; gathered: half of 1 GB.
  CHECK(predicted("gradients: 2, zero_stage: 1", kTwoCopies).metrics.makespan ==
        std::chrono::milliseconds(156));
  const Outcome narrow = predicted("gradients: 0.5", kTwoCopies);
  CHECK(narrow.metrics.makespan == std::chrono::milliseconds(56));
  CHECK(narrow.memory[0].peak.gradients == Bytes{500'000'000});
}

TEST_CASE("buckets of gradients add up to all of them, whatever the rounding") {
  const Outcome outcome =
      predicted("gradients: 1.3",
                "cluster: {devices: 2, link: {bandwidth: 10 GB/s}}\n"
                "schedule: {name: data-parallel, micro_batches: 1, bucket: 1 MB}\n");
  const StageCost& stage = outcome.setup.costs.stages.front();
  REQUIRE(stage.buckets.size() == 2);
  CHECK(stage.buckets[0].reduced + stage.buckets[1].reduced == stage.gradients);
  CHECK(stage.gradients == Bytes{1'300'000'000});
  for (std::int64_t bytes = 0; bytes < 50; ++bytes) {
    CHECK(gradient_bytes({bytes}, 1) == Bytes{bytes});
    CHECK(gradient_bytes({bytes}, 0.5) == Bytes{(bytes + 1) / 2});
    CHECK(gradient_bytes({bytes}, 4) == Bytes{4 * bytes});
  }
}

TEST_CASE("a bucket leaves as soon as its own layers were computed again and backward") {
  // F until 2; layer b until 5 and its 500 MB until 55, a until 8 and its 500 MB until 105. Full
  // recomputation computes both again first, the ring of b begins 1 ms later.
  const auto with = [](const std::string& recompute) {
    return predicted("gradients: 1",
                     "cluster: {devices: 2, link: {bandwidth: 10 GB/s}}\n"
                     "schedule: {name: data-parallel, micro_batches: 1, bucket: 1 MB, recompute: " +
                         recompute + "}\n")
        .metrics.makespan;
  };
  CHECK(with("none") == std::chrono::milliseconds(104));
  CHECK(with("layers") == std::chrono::milliseconds(105));
  CHECK(with("full") == std::chrono::milliseconds(106));
}

TEST_CASE("the planner's memory and rings know how wide gradients are") {
  // One device holds 1 GB of weights and twice as much of gradients: two stages need half of that.
  const auto planned = [](const std::string& memory, const std::string& link) {
    const auto scenario = parse_scenario(
        text_source("gradients.yaml",
                    "version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms, "
                    "parameters: 500 MB}}\ncluster: {devices: 2, memory: " +
                        memory + ", link: {bandwidth: " + link +
                        "}}\nschedule: {name: 1f1b, micro_batches: 400}\n"
                        "plan: {partition: pipedream}\ntraining: {gradients: 2}\n"),
        {});
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
    const auto planning = plan_scenario(*scenario, {});
    REQUIRE_MESSAGE(planning, (planning ? "" : to_text(planning.problems())));
    return *planning;
  };
  const Planning fits = planned("3 GB", "10 GB/s");
  CHECK(fits.plans.data_parallel.fits);
  CHECK(fits.plans.data_parallel.peak_memory == Bytes{3'000'000'000});
  // 200 micro-batches of 6 ms each on either device; beside the last backward 2 GB begin to go
  // around the ring of two.
  CHECK(fits.plans.data_parallel.period_s == close_to((199 * 6 + 2 + 200) / 400.0 * 1e-3));
  const Planning tight = planned("2.9 GB", "10 GB/s");
  CHECK_FALSE(tight.plans.data_parallel.fits);
  CHECK(tight.winner().candidate.config() == "1-1");
  CHECK(tight.winner().candidate.stages[0].peak_memory == Bytes{1'500'000'000});
}

TEST_CASE("sizes beyond what is simulated are refused with the gradients counted") {
  const auto scenario = parse_scenario(
      text_source("gradients.yaml",
                  "version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms, "
                  "parameters: 900 TB}}\ncluster: {devices: 2}\nschedule: {name: gpipe, "
                  "micro_batches: 2}\ntraining: {gradients: 999}\n"),
      {});
  REQUIRE(scenario);
  const auto outcome = predict(*scenario);
  REQUIRE_FALSE(outcome);
  CHECK(outcome.problems()[0].message ==
        "the model's sizes add up to more than the 10^18 B that are simulated");
}

}  // namespace
}  // namespace plumbline::test
