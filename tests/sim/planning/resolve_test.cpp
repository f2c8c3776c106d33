// A setup has every choice made: what follows from it needs no scenario.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/resolve.h"

#include <doctest/doctest.h>

#include "sim/planning/predict.h"

namespace plumbline::test {
namespace {

Scenario example(const std::string& name, const std::vector<std::string>& overrides = {}) {
  auto scenario = read_scenario("examples/" + name + ".yaml", overrides);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  return *std::move(scenario);
}

TrainingSetup setup_of(const Scenario& scenario) {
  auto setup = resolve(scenario);
  REQUIRE_MESSAGE(setup, (setup ? "" : to_text(setup.problems())));
  return *std::move(setup);
}

TEST_CASE("a setup predicts what its scenario does") {
  for (const char* name : {"four-stages", "planned", "fewest-recomputed", "sharded-weights",
                           "pipedream-async", "zero-bubble", "overlapped-copies", "noisy"}) {
    CAPTURE(name);
    const Scenario scenario = example(name);
    const auto whole = predict(scenario);
    REQUIRE(whole);
    const auto by_setup = predict(setup_of(scenario));
    REQUIRE(by_setup);
    CHECK(by_setup->iteration_time_s == whole->iteration_time_s);
    CHECK(by_setup->setup.notes == whole->setup.notes);
    CHECK(by_setup->fits() == whole->fits());
  }
}

TEST_CASE("a program changes a setup and predicts it, without a word of YAML") {
  TrainingSetup setup = setup_of(example("four-stages"));
  const auto before = predict(setup);
  REQUIRE(before);
  setup.rules.overheads.per_iteration = std::chrono::milliseconds(5);
  const auto after = predict(setup);
  REQUIRE(after);
  CHECK(after->iteration_time_s - before->iteration_time_s == doctest::Approx(0.005).epsilon(1e-9));
}

TEST_CASE("copies of a scenario share its model until one of them is changed") {
  const Scenario scenario = example("four-stages");
  const TrainingSetup setup = setup_of(scenario);
  CHECK(&*setup.model == &*scenario.model);
  Scenario other = scenario;
  other.model.edit().name = "another";
  CHECK(setup.model->name == scenario.model->name);
  CHECK(other.model->name == "another");
}

TEST_CASE("what a setup cannot be resolved to is told at the key that asks for it") {
  const auto refused = resolve(example("four-stages", {"plan.stages=4", "plan.warm_up=[1, 1]"}));
  REQUIRE_FALSE(refused);
  CHECK(refused.problems().front().mark.source != nullptr);
}

TEST_CASE("a run that 64 bits do not hold has no place in a setup, and one in a scenario") {
  const Scenario scenario =
      example("four-stages", {"model.uniform.forward=200 h", "schedule.micro_batches=100000"});
  const auto by_scenario = predict(scenario);
  REQUIRE_FALSE(by_scenario);
  CHECK(by_scenario.problems().front().mark.source != nullptr);
  const auto by_setup = predict(setup_of(scenario));
  REQUIRE_FALSE(by_setup);
  CHECK(by_setup.problems().front().mark.source == nullptr);
  CHECK(by_setup.problems().front().message == by_scenario.problems().front().message);
}

}  // namespace
}  // namespace plumbline::test
