// A program that reads and predicts gets what the command gets.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/predict.h"

#include <doctest/doctest.h>

#include "sim/planning/planning.h"

namespace plumbline::test {
namespace {

Scenario example(const std::string& name, const std::vector<std::string>& overrides = {}) {
  auto scenario = read_scenario("examples/" + name + ".yaml", overrides);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  return *std::move(scenario);
}

TEST_CASE("what a scenario leaves open is decided before it is predicted") {
  for (const char* name : {"planned", "fewest-recomputed"}) {
    CAPTURE(name);
    const Scenario open = example(name);
    REQUIRE_FALSE(is_resolved(open));
    const auto resolved = resolve_plan(open);
    REQUIRE(resolved);
    CHECK(is_resolved(*resolved));
    const auto in_one = predict(open);
    const auto in_two = predict_resolved(*resolved);
    REQUIRE(in_one);
    REQUIRE(in_two);
    CHECK(in_one->iteration_time_s == in_two->iteration_time_s);
    CHECK(in_one->setup.partition == in_two->setup.partition);
    CHECK(in_one->setup.notes == in_two->setup.notes);
    CHECK(in_one->fits() == in_two->fits());
  }
}

TEST_CASE("what cannot be decided is an error, and not the end of the program") {
  const auto outcome =
      predict(example("planned", {"cluster.devices=null", "cluster.memory=1 KiB"}));
  REQUIRE_FALSE(outcome);
  CHECK_FALSE(outcome.problems().front().message.empty());
}

TEST_CASE("a scenario that leaves nothing open is predicted as it is") {
  const Scenario scenario = example("four-stages");
  CHECK(is_resolved(scenario));
  CHECK(predict(scenario)->iteration_time_s == predict_resolved(scenario)->iteration_time_s);
}

}  // namespace
}  // namespace plumbline::test
