// Explanations add up: the path to the time, the waits to the idle time.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/explain.h"

#include <doctest/doctest.h>

#include "sim/engine/critical.h"
#include "sim/report/explain_report.h"
#include "tests/support/examples.h"
#include "tests/support/random_pipeline.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

TEST_CASE("the stretches of the critical path follow each other through all of the time") {
  for (const std::string& name : example_names()) {
    CAPTURE(name);
    const Outcome outcome = predict_example(name, {});
    const Explanation e = explain(outcome);
    REQUIRE(!e.path.empty());
    const auto& steady = outcome.metrics.steady;
    CHECK(e.path_length() == (steady ? steady->length : outcome.metrics.makespan));
    CHECK(e.path_begin().time_since_epoch() == (steady ? steady->fill : Duration{}));
    for (std::size_t i = 1; i < e.path.size(); ++i) CHECK(e.path[i].begin == e.path[i - 1].end);
    for (const PathSegment& segment : e.path) {
      CHECK(segment.length().count() > 0);
      CHECK(!segment.nodes.empty());
    }
  }
}

TEST_CASE("the waits of a device are its idle time, cause by cause, and somebody is to blame") {
  std::vector<std::pair<std::string, std::vector<std::string>>> cases;
  for (const std::string& name : example_names()) cases.push_back({name, {}});
  // Updates that differ, several mini-batches, and time that belongs to no device.
  const std::vector<std::string> uneven = {"schedule.mini_batches=3", "plan.replicas=[2,1,1]",
                                           "plan.stages=3", "plan.data_parallel=1",
                                           "schedule.micro_batches=6"};
  for (const char* const zero : {"training.zero_stage=0", "training.zero_stage=1"}) {
    for (const char* const more : {"overhead.per_iteration=0 ms", "overhead.per_iteration=1 ms"}) {
      std::vector<std::string> overrides = uneven;
      overrides.insert(overrides.end(), {zero, more});
      cases.emplace_back("sharded-optimizer", overrides);
    }
  }
  for (const auto& one : cases) {
    const std::string& name = one.first;
    CAPTURE(name);
    const Outcome outcome = predict_example(name, one.second);
    std::vector<IdleByCause> idle(outcome.graph.slots());
    for (const Wait& wait : waits(outcome.graph, outcome.trace)) {
      SimTime cursor = wait.begin;
      for (const IdleGap& part : wait.parts) {
        CHECK(part.begin == cursor);
        cursor = part.end;
        idle[wait.slot].of(part.cause) += part.end - part.begin;
      }
      CHECK(cursor == wait.end);
      if (wait.culprit == kNobody) {  // of weights that are gathered
        CHECK(wait.parts.back().cause == IdleCause::all_reduce);
        CHECK(wait.next != kNobody);
        continue;
      }
      CHECK(outcome.trace.spans[wait.culprit].begin < wait.end);
      if (wait.next == kNobody) continue;
      CHECK(outcome.trace.spans[wait.next].begin == wait.end);
      CHECK((outcome.graph.nodes[wait.next].resource == wait.slot ||
             outcome.graph.nodes[wait.next].peer_resource == wait.slot));
    }
    for (std::size_t slot = 0; slot < idle.size(); ++slot) {
      for (const IdleCause cause : kIdleCauses)
        CHECK(idle[slot].of(cause) == outcome.metrics.devices[slot].idle_by_cause.of(cause));
    }
  }
}

TEST_CASE("slack is how much longer an activity may take: a little more makes the run longer") {
  for (std::uint64_t seed = 1; seed <= trials(60); ++seed) {
    CAPTURE(seed);
    OpGraph graph = graph_of(random_pipeline(seed));
    const Trace trace = longest_path(graph);
    const Duration end = makespan(graph, trace);
    const std::vector<Duration> slacks = slack(graph, trace);
    for (const std::uint32_t node : critical_path(trace)) CHECK(slacks[node].count() == 0);
    graph.costs.resize(graph.costs.size() + 1);
    const auto own = static_cast<std::uint32_t>(graph.costs.size() - 1);
    for (std::uint32_t node = 0; node < graph.size(); node += 7) {
      const std::uint32_t before = graph.nodes[node].cost;
      graph.costs[own] = graph.costs[before];
      graph.costs[own].hold += slacks[node];
      graph.nodes[node].cost = own;
      CHECK(longest_path_end(graph).time_since_epoch() == end);
      graph.costs[own].hold += Duration(1);
      CHECK(longest_path_end(graph).time_since_epoch() == end + Duration(1));
      graph.nodes[node].cost = before;
    }
  }
}

TEST_CASE("a wait names the link, the op that was late and the device of another") {
  const Outcome outcome = predict_example("worked-example", {});
  const std::vector<Wait> found = waits(outcome.graph, outcome.trace);
  REQUIRE(found.size() == 5);
  CHECK(to_text(outcome.graph, found[0]) == "0B0 waited for 1B0 over link 1-0");
  CHECK(to_text(outcome.graph, found[3]) == "1F0 waited for 0F0 over link 0-1");
  CHECK(to_text(outcome.graph, found[4]) == "the mini-batch was not over before 0B2");
  const auto op = find_op(outcome.graph, "1B2");
  REQUIRE(op);
  CHECK(to_text(outcome.graph.activities[*op]) == "1B2");
  CHECK(!find_op(outcome.graph, "1B3"));
  CHECK(!find_op(outcome.graph, "recv 1F0"));
}

TEST_CASE("a wait of all copies is told once") {
  const Outcome outcome = predict_example(
      "worked-example", {"cluster.devices=6", "plan.stages=2", "plan.data_parallel=3"});
  const std::string text = to_table(outcome, explain(outcome), {}).print();
  const std::string one = "0B0 waited for 1B0 over link 3-0 (";
  const auto at = text.find(one);
  REQUIRE(at != std::string::npos);
  CHECK(text.find("; 2 more devices likewise)\n", at) < text.find('\n', at));
  CHECK(text.find("0B0 waited for 1B0 over link 4-1") == std::string::npos);
  const std::string of_device = to_table(outcome, explain(outcome), DeviceId{1}).print();
  CHECK(of_device.find("0B0 waited for 1B0 over link 4-1 (") != std::string::npos);
  CHECK(of_device.find("likewise") == std::string::npos);
}

}  // namespace
}  // namespace plumbline::test
