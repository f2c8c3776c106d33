// Errors of the facade: values with their places, for each function.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <plumbline/plumbline.h>

#include <string>

namespace plumbline::test {
namespace {

const char* const kSmall =
    "version: 1\nname: small\n"
    "model: {uniform: {layers: 8, forward: 1 ms, backward: 2 ms, output: 1 MiB, activation: 8 MiB, "
    "parameters: 16 MiB}, batch: 1}\n"
    "cluster: {devices: 4, memory: 1 GiB}\n"
    "schedule: {name: 1f1b, micro_batches: 8}\n";

TEST_CASE("a wrong value is told with its file, line, column and what to do") {
  const auto scenario = v1::load(
      v1::Input::of_text(std::string(kSmall) + "training: {optimizer_state: -1}\n", "mine.yaml"));
  REQUIRE_FALSE(scenario);
  REQUIRE(scenario.error().problems.size() == 1);
  const v1::Problem& problem = scenario.error().problems.front();
  CHECK(problem.fault == v1::Fault::input);
  CHECK(problem.file == "mine.yaml");
  CHECK(problem.line == 6);
  CHECK(problem.column > 0);
  CHECK(problem.message.find("optimizer_state") != std::string::npos);
  CHECK(scenario.error().text.find("mine.yaml:6:") == 0);
}

TEST_CASE("all faults are told at once") {
  const auto scenario =
      v1::load(v1::Input::of_text(kSmall), {"schedule.nam=gpipe", "plan.stage=4"});
  REQUIRE_FALSE(scenario);
  CHECK(scenario.error().problems.size() == 2);
  CHECK(scenario.error().text.find("did you mean 'name'?") != std::string::npos);
}

TEST_CASE("a file that is missing is a fault of the file") {
  const auto scenario = v1::load("nowhere/s.yaml");
  REQUIRE_FALSE(scenario);
  CHECK(scenario.error().problems.front().fault == v1::Fault::file);
  const auto rows = v1::sweep("nowhere/s.yaml", {"schedule.name=gpipe,1f1b"});
  REQUIRE_FALSE(rows);
  CHECK(rows.error().problems.front().fault == v1::Fault::file);
  CHECK_FALSE(v1::search("nowhere/s.yaml"));
  CHECK_FALSE(v1::order("nowhere/s.yaml"));
}

TEST_CASE("too little memory for any order is infeasible") {
  const auto order = v1::order(v1::Input::of_text(kSmall), {"cluster.memory=20 MiB"});
  REQUIRE_FALSE(order);
  CHECK(order.error().problems.front().fault == v1::Fault::infeasible);
}

TEST_CASE("a run that does not fit is a run, which says what is missing") {
  const auto scenario = v1::load("examples/out-of-memory.yaml");
  REQUIRE(scenario);
  const auto run = v1::predict(*scenario);
  REQUIRE(run);
  CHECK(run->fits() == false);
  CHECK(run->shortage().find("device 1 needs") != std::string::npos);
}

TEST_CASE("selections and names that do not exist") {
  const v1::Input small = v1::Input::of_text(kSmall);
  v1::Selection selection;
  selection.objective = "speed";
  CHECK_FALSE(v1::sweep(small, {"schedule.name=gpipe,1f1b"}, selection));
  CHECK_FALSE(v1::search(small, {"training.mini_batch_size=16"}, selection));
  selection.objective = "memory";
  selection.where = {"peak < 3"};
  CHECK_FALSE(v1::sweep(small, {"schedule.name=gpipe,1f1b"}, selection));
  const auto run = v1::predict(*v1::load(small));
  REQUIRE(run);
  CHECK_FALSE(run->why("4F0"));
  CHECK_FALSE(run->memory(4));
  CHECK(run->memory(4).error().text.find("0 to 3") != std::string::npos);
}

}  // namespace
}  // namespace plumbline::test
