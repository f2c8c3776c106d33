// What a real run takes from its scenario, and what its backend has by itself.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/real_run.h"

#include <doctest/doctest.h>

#include "calibrate/runtime/synthetic.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

/// The synthetic backend, which may say that its devices have overheads of their own.
class OwnOverheads : public Backend {
 public:
  explicit OwnOverheads(bool has_own) : inner_(synthetic_backend({})), has_own_(has_own) {}
  std::string_view name() const override { return inner_->name(); }
  std::string device_text() const override { return inner_->device_text(); }
  bool has_own_overheads() const override { return has_own_; }
  std::vector<std::unique_ptr<Worker>> workers(const RunPlan& plan) override {
    return inner_->workers(plan);
  }

 private:
  std::unique_ptr<Backend> inner_;
  bool has_own_;
};

Scenario with_overheads() {
  auto scenario = parse_scenario(
      text_source("s.yaml",
                  "version: 1\nmodel: {uniform: {layers: 2, forward: 100 us, backward: 200 us}, "
                  "batch: 1}\ncluster: {devices: 2}\nschedule: {name: gpipe, micro_batches: 2}\n"
                  "overhead: {per_op: 50 us}\n"),
      {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  return *std::move(scenario);
}

TEST_CASE("a scenario's overheads are added where a backend has none of its own") {
  const Scenario scenario = with_overheads();
  RunOptions options;
  options.warm_up = 0;
  options.iterations = options.max_iterations = 1;
  for (const bool has_own : {false, true}) {
    CAPTURE(has_own);
    OwnOverheads backend(has_own);
    const auto run = run_scenario(scenario, backend, options);
    REQUIRE_MESSAGE(run, (run ? "" : to_text(run.problems())));
    const Duration per_op = run->outcome.setup.rules.overheads.per_op;
    CHECK(per_op == (has_own ? Duration{} : scenario.overheads.per_op));
  }
}

TEST_CASE("a setup is run with the overheads that its rules have") {
  auto setup = resolve_setup(with_overheads());
  REQUIRE(setup);
  OwnOverheads backend(false);
  RunOptions options;
  options.warm_up = 0;
  options.iterations = options.max_iterations = 1;
  const auto run = run_setup(*setup, backend, options);
  REQUIRE(run);
  CHECK(run->outcome.setup.rules.overheads.per_op == std::chrono::microseconds(50));
  CHECK(run->iterations.size() == 1);
}

/// A backend that gives up at once.
class GivesUp : public OwnOverheads {
 public:
  GivesUp() : OwnOverheads(false) {}
  RunResult run(const RunPlan&, const DeviceOrders&, const RunOptions&) override {
    RunFailure failure;
    failure.message = "it gave up";
    return failure;
  }
};

TEST_CASE("a run that was given up is told at the schedule; of a setup, without a place") {
  const Scenario scenario = with_overheads();
  GivesUp backend;
  const auto by_scenario = run_scenario(scenario, backend, {});
  REQUIRE_FALSE(by_scenario);
  const Diagnostic& told = by_scenario.problems().front();
  CHECK(told.message == "it gave up");
  CHECK(told.fault == Fault::infeasible);
  CHECK(told.mark.line == scenario.schedule.name_mark.line);
  CHECK(told.mark.source == scenario.source);
  const auto by_setup = run_setup(*resolve_setup(scenario), backend, {});
  REQUIRE_FALSE(by_setup);
  CHECK(by_setup.problems().front().mark.source == nullptr);
}

/// A backend that says of its first iteration that other work disturbed it.
class Disturbed : public OwnOverheads {
 public:
  Disturbed() : OwnOverheads(false) {}
  RunResult run(const RunPlan& plan, const DeviceOrders& orders,
                const RunOptions& options) override {
    RunResult result = OwnOverheads::run(plan, orders, options);
    std::get<RunRecord>(result).iterations.front().clean = false;
    for (std::size_t i = 1; i < std::get<RunRecord>(result).iterations.size(); ++i)
      std::get<RunRecord>(result).iterations[i].clean = true;
    return result;
  }
};

TEST_CASE("only clean iterations count, and all of them where none is") {
  const Scenario scenario = with_overheads();
  Disturbed backend;
  for (const std::uint32_t iterations : {1U, 3U}) {
    CAPTURE(iterations);
    RunOptions options;
    options.warm_up = 0;
    options.iterations = options.max_iterations = iterations;
    const auto run = run_scenario(scenario, backend, options);
    REQUIRE(run);
    REQUIRE(run->iterations.size() == iterations);
    CHECK(run->clean == iterations - 1);
    CHECK((run->shown == 0) == (iterations == 1));
  }
}

}  // namespace
}  // namespace plumbline::test
