// The whole path from YAML to a prediction, in memory.
//
// SPDX-License-Identifier: MIT
#include "sim/planning/predict.h"

#include <doctest/doctest.h>

#include "sim/report/report.h"
#include "tests/support/close_to.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"

namespace plumbline {
namespace {

Outcome predict_example(const std::vector<std::string>& overrides) {
  const auto scenario = read_scenario("examples/four-stages.yaml", overrides);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  auto prediction = predict(*scenario);
  REQUIRE_MESSAGE(prediction, (prediction ? "" : to_text(prediction.problems())));
  return *std::move(prediction);
}

TEST_CASE("the example of the contract: 33 ms, 7757.6 samples a second, 3/11 of bubble") {
  const Outcome p = predict_example({});
  CHECK(p.metrics.makespan == std::chrono::milliseconds(33));
  CHECK(*p.throughput_samples_per_s == test::close_to(7757.6, 1e-5));
  REQUIRE(p.formula);
  CHECK(p.formula->text == "(p-1)/(m+p-1)");
  const std::string json = to_json(p, "0");
  for (const char* part :
       {"\"makespan_s\": 0.033", "\"period_s\": null", "\"operations\": 64", "\"fits\": true"}) {
    CAPTURE(part);
    CHECK(json.find(part) != std::string::npos);
  }
  CHECK(json == to_json(predict_example({}), "0"));
}

TEST_CASE("a smaller micro-batch is scaled and says so; throughput of GPipe and 1F1B stays equal") {
  const Outcome p = predict_example({"training.micro_batch_size=8"});
  CHECK(p.metrics.makespan == std::chrono::microseconds(8250));
  REQUIRE(p.setup.estimated.size() == 1);
  CHECK(predict_example({"training.micro_batch_size=8", "schedule.name=gpipe"}).metrics.makespan ==
        p.metrics.makespan);
}

TEST_CASE("no formula is shown where it does not hold") {
  CHECK(!predict_example({"cluster.link.bandwidth=1 GB/s"}).formula);
  CHECK(!predict_example({"schedule.transfers=blocking"}).formula);
  CHECK(!predict_example({"overhead.per_iteration=1 ms"}).formula);
  CHECK(predict_example({"cluster.link.latency=1 ms"}).formula);
  CHECK(predict_example({"plan.warm_up=[3, 2, 1, 0]"}).formula);
  CHECK(!predict_example({"plan.warm_up=[0, 0, 0, 0]"}).formula);
  CHECK(!predict_example({"cluster.link.latency=1 ms", "schedule.micro_batches=7"}).formula);
}

TEST_CASE("memory beyond the limit does not fit, and asynchronous runs report a period") {
  CHECK(predict_example({"cluster.memory=228 MiB"}).fits() == true);
  CHECK(predict_example({"cluster.memory=227 MiB"}).fits() == false);
  CHECK(!predict_example({"cluster.memory=null"}).fits());
  const Outcome p = predict_example({"schedule.name=pipedream"});
  CHECK(p.iteration_time_s == test::close_to(8 * 0.003));
  for (std::uint32_t s = 0; s < 4; ++s) CHECK(p.setup.weights[s].kept == 4 - s);
}

TEST_CASE("updates take longer where they leave the old weights: with several versions kept") {
  // Two stages of 4 MiB, 1 ms + 2 ms + 0.5 ms; written elsewhere, another 1 ms.
  const std::string two =
      "model={uniform: {layers: 2, forward: 1 ms, backward: 2 ms, update: 0.5 ms, "
      "parameters: 4 MiB}}";
  const auto run = [&](const std::string& weights, const std::string& stash) {
    return predict_example({two, "cluster.devices=2", "plan.stages=2", "schedule.name=pipedream",
                            "schedule.weights=" + weights, "overhead.stash=" + stash});
  };
  const auto update_of = [](const Outcome& p, std::uint32_t stage) {
    for (std::uint32_t node = 0; node < p.graph.size(); ++node) {
      const Activity& activity = p.graph.activities[node];
      if (activity.kind == ActivityKind::update && activity.stage.value == stage)
        return p.graph.cost(node).hold;
    }
    return Duration{-1};
  };
  const Duration more = std::chrono::milliseconds(1);
  const Duration update = std::chrono::microseconds(500);
  const Outcome stashed = run("stash", "4194304000 B/s");
  CHECK(stashed.setup.weights[0].kept == 2);
  CHECK(update_of(stashed, 0) == update + more);
  CHECK(update_of(stashed, 1) == update);  // the last stage keeps one
  CHECK(stashed.iteration_time_s == test::close_to(8 * 0.0045));
  CHECK(update_of(run("none", "4194304000 B/s"), 0) == update);
  CHECK(update_of(run("vertical-sync", "4194304000 B/s"), 1) == update + more);
  CHECK(update_of(run("two", "4194304000 B/s"), 1) == update + more);
  CHECK(update_of(run("stash", "null"), 0) == update);
  const Outcome flushed =
      predict_example({two, "cluster.devices=2", "plan.stages=2", "overhead.stash=4194304000 B/s"});
  CHECK(update_of(flushed, 0) == update);
}

TEST_CASE("transfers that block take the link that was measured so, collectives the other one") {
  const test::TemporaryFolder folder;
  folder.file("links.profile.yaml",
              "version: 1\nkind: profile\nlayers:\n"
              "  - {name: a, forward: 1 ms, backward: 2 ms, output: 1 MB, parameters: 2 MB}\n"
              "  - {name: b, forward: 1 ms, backward: 2 ms, parameters: 2 MB}\n"
              "links:\n  - {kind: copy, latency: 10 us, bandwidth: 10 GB/s}\n"
              "  - {kind: blocking copy, latency: 30 us, bandwidth: 5 GB/s}\n"
              "  - {kind: host, latency: 50 us, bandwidth: 2 GB/s}\n");
  for (const bool blocking : {false, true}) {
    CAPTURE(blocking);
    const auto scenario = parse_scenario(
        test::text_source("links.yaml",
                          "version: 1\nmodel: {profile: " + folder["links.profile.yaml"] +
                              "}\ncluster: {devices: 4, link: measured}\nplan: {stages: 2, "
                              "data_parallel: 2}\nschedule: {name: gpipe, micro_batches: 2, "
                              "transfers: " +
                              (blocking ? "blocking" : "overlapped") + "}\n"),
        {});
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
    REQUIRE_FALSE(scenario->notes.empty());
    CHECK(scenario->notes.back() ==
          (blocking ? "the profile holds 3 links; 'blocking copy' is taken, and 'copy' for "
                      "all-reduces"
                    : "the profile holds 3 links; 'copy' is taken"));
    const auto outcome = predict(*scenario);
    REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
    for (std::uint32_t node = 0; node < outcome->graph.size(); ++node) {
      const ActivityKind kind = outcome->graph.activities[node].kind;
      const Cost& cost = outcome->graph.cost(node);
      using std::chrono::microseconds;
      if (is_transfer(kind))
        CHECK(cost.hold + cost.latency == microseconds(blocking ? 30 + 200 : 10 + 100));
      // Two members: half of 2 MB twice.
      if (is_collective(kind)) CHECK(cost.hold + cost.latency == microseconds(2 * 10 + 200));
    }
  }
}

TEST_CASE("a measured link's table is looked up, by transfers and by each step of a ring") {
  const test::TemporaryFolder folder;
  folder.file("table.profile.yaml",
              "version: 1\nkind: profile\nlayers:\n"
              "  - {name: a, forward: 1 ms, backward: 2 ms, output: 1 MB, parameters: 4 MB}\n"
              "  - {name: b, forward: 1 ms, backward: 2 ms, parameters: 4 MB}\n"
              "links:\n  - {kind: copy, latency: 10 us, bandwidth: 10 GB/s, table: [[4 MB, 500 us],"
              " [500 kB, 120 us], [1.5 MB, 320 us]]}\n"
              "  - {kind: blocking copy, latency: 30 us, bandwidth: 5 GB/s, table: [[1 MB, 7 us], "
              "[2 MB, 9 us]]}\n");
  for (const bool blocking : {false, true}) {
    CAPTURE(blocking);
    const auto scenario = parse_scenario(
        test::text_source("table.yaml",
                          "version: 1\nmodel: {profile: " + folder["table.profile.yaml"] +
                              "}\ncluster: {devices: 4, link: measured}\nplan: {stages: 2, "
                              "data_parallel: 2}\noverhead: {hand_over: 3 us}\n"
                              "schedule: {name: gpipe, micro_batches: 2, transfers: " +
                              (blocking ? "blocking" : "overlapped") + "}\n"),
        {});
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
    const auto outcome = predict(*scenario);
    REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
    for (std::uint32_t node = 0; node < outcome->graph.size(); ++node) {
      const ActivityKind kind = outcome->graph.activities[node].kind;
      const Cost& cost = outcome->graph.cost(node);
      using std::chrono::microseconds;
      // 1 MB is half way from 500 kB to 1.5 MB; of the blocking link it was measured.
      if (is_transfer(kind))
        CHECK(cost.hold + cost.latency == microseconds(3 + (blocking ? 7 : 220)));
      // Two members: half of 4 MB twice, each 320 + 180 / 5 us.
      if (is_collective(kind)) CHECK(cost.hold + cost.latency == microseconds(2 * (3 + 356)));
    }
  }
}

}  // namespace
}  // namespace plumbline
