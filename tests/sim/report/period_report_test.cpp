// Reports of a run without a flush: explanation, table, JSON, comparison, sweep.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "sim/engine/critical.h"
#include "sim/engine/period.h"
#include "sim/engine/simulate.h"
#include "sim/planning/predict.h"
#include "sim/report/report.h"
#include "sim/whatif/compare.h"
#include "sim/whatif/explain.h"
#include "sim/whatif/sweep.h"
#include "tests/support/close_to.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

const std::string kUneven =
    "version: 1\n"
    "model:\n"
    "  layers:\n"
    "    - {name: a, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms, output: 1 MB}\n"
    "    - {name: b, forward: 2 ms, backward_input: 1 ms, backward_weight: 1 ms, output: 1 MB}\n"
    "    - {name: c, forward: 1 ms, backward_input: 1 ms, backward_weight: 2 ms, output: 1 MB}\n"
    "    - {name: d, forward: 1 ms, backward_input: 2 ms, backward_weight: 1 ms, update: 1 ms}\n"
    "cluster: {devices: 4, link: {bandwidth: 10 GB/s, latency: 20 us}}\n"
    "schedule: {name: zb-h2, micro_batches: 8}\n";

Outcome outcome_of(const std::vector<std::string>& overrides = {"training.flush=none"},
                   const std::string& text = kUneven) {
  const auto scenario = parse_scenario(text_source("uneven.yaml", text), overrides);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  auto outcome = predict(*scenario);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

TEST_CASE("without a flush the critical path is that of the longest span") {
  const Outcome outcome = outcome_of();
  REQUIRE(*outcome.metrics.period < outcome.metrics.makespan);
  const Explanation e = explain(outcome);
  REQUIRE(!e.path.empty());
  const DeviceSpan span = longest(device_spans(outcome.graph, outcome.trace));
  CHECK(e.path_length() == span.length());
  CHECK(e.path_begin() == span.begin);
  for (std::size_t i = 1; i < e.path.size(); ++i) CHECK(e.path[i].begin == e.path[i - 1].end);
  for (const Wait& wait : e.waits) {
    CHECK(wait.next != kNobody);
    for (const IdleGap& part : wait.parts) CHECK(part.cause != IdleCause::fill);
  }
}

TEST_CASE("without a flush an op may take longer by its slack for nothing") {
  const Outcome outcome = outcome_of();
  const std::vector<Duration> slacks = slack(outcome.graph, outcome.trace);
  int tight = 0;
  for (std::uint32_t node = 0; node < outcome.graph.size(); ++node) {
    if (!is_compute(outcome.graph.activities[node].kind)) continue;
    CAPTURE(node);
    const auto period_with = [&](Duration more) {
      OpGraph graph = outcome.graph;
      graph.costs.push_back(graph.cost(node));
      graph.costs.back().hold += more;
      graph.nodes[node].cost = static_cast<std::uint32_t>(graph.costs.size()) - 1;
      return shortest_period(graph, longest_path(graph));
    };
    REQUIRE(slacks[node].count() >= 0);
    CHECK(period_with(slacks[node]) <= *outcome.metrics.period);
    tight += period_with(slacks[node] + Duration(1000)) > *outcome.metrics.period ? 1 : 0;
  }
  CHECK(tight > 30);
}

TEST_CASE("without a flush levers are tried on the period") {
  const std::string text =
      "version: 1\n"
      "model: {uniform: {layers: 4, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}}\n"
      "cluster: {devices: 4}\n"
      "schedule: {name: zb-h2, micro_batches: 8}\n";
  const Outcome outcome = outcome_of({"training.flush=none"}, text);
  const Sensitivities found = sensitivities(outcome);
  CHECK_FALSE(found.exact);
  int tried = 0;
  for (const Sensitivity& sensitivity : found.all) {
    if (!sensitivity.every) continue;
    const char* const keys[] = {"forward", "backward", "backward_input", "backward_weight"};
    const std::string key = keys[static_cast<std::size_t>(sensitivity.kind)];
    CAPTURE(key);
    const Outcome shorter =
        outcome_of({"training.flush=none", "model.uniform." + key + "=0.95 ms"}, text);
    CHECK(sensitivity.gain_s ==
          close_to((outcome.iteration_time_s - shorter.iteration_time_s) / 0.05, 1e-3));
    ++tried;
  }
  CHECK(tried == 3);
}

TEST_CASE("table and JSON tell of the period") {
  const Outcome outcome = outcome_of();
  const std::string table = to_table(outcome, std::nullopt).print();
  CHECK(table.find("each device begins the next iteration at once (training.flush: none)") !=
        std::string::npos);
  CHECK(table.find("of the device time is idle in a period\n") != std::string::npos);
  const auto json = nlohmann::json::parse(to_json(outcome, "0"));
  CHECK(json["flush"] == "none");
  CHECK(json["iteration_time_s"].get<double>() < json["makespan_s"].get<double>());
  double longest_s = 0;
  double idle_s = 0;
  for (const auto& device : json["devices"]) {
    longest_s = std::max(longest_s, device["span_s"].get<double>());
    idle_s += device["idle_s"].get<double>();
  }
  CHECK(json["iteration_time_s"].get<double>() == close_to(longest_s));
  CHECK(json["bubble_fraction"].get<double>() ==
        close_to(idle_s / 4 / json["iteration_time_s"].get<double>()));
  const Outcome flushed = outcome_of({});
  CHECK_FALSE(nlohmann::json::parse(to_json(flushed, "0")).contains("flush"));
  CHECK(to_table(flushed, std::nullopt).print().find("period") == std::string::npos);
}

TEST_CASE("a comparison says which run flushes, also when read from a file") {
  const auto none = std::make_shared<const Outcome>(outcome_of());
  const auto all = std::make_shared<const Outcome>(outcome_of({}));
  const ComparedRun run = compared(none, "none");
  double sum = run.busy_s;
  for (const double idle : run.idle_s) sum += idle;
  CHECK(sum == close_to(run.iteration_time_s));
  const auto read = read_result(text_source("none.json", to_json(*none, "0")), "none");
  REQUIRE(read);
  CHECK_FALSE(run.flushes);
  CHECK_FALSE(read->flushes);
  const std::string text = verdict({compared(all, "all"), run});
  CHECK(text.find("not alike in flush before each update (yes: all; no: none): none is ") == 0);
}

TEST_CASE("the terms of the bubble add up to that of the period") {
  const Outcome outcome = outcome_of();
  const BubbleTerms terms = bubble_terms(outcome);
  double sum = terms.base;
  Duration time = terms.base_time;
  for (const BubbleTerm& term : terms.terms) {
    sum += term.fraction;
    time += term.time;
  }
  CHECK(sum == close_to(outcome.metrics.bubble_fraction()));
  CHECK(time == *outcome.metrics.period);
  CHECK(terms.base == 0);  // equal stages on free links, and no flush
  CHECK_FALSE(terms.formula);
}

TEST_CASE("training.flush is swept like any key, and the period decides the order") {
  const auto sweep = Sweep::parse(text_source("s.yaml", kUneven), {"training.flush=all,none"});
  REQUIRE(sweep);
  const SweepRow all = sweep->evaluate(0);
  const SweepRow none = sweep->evaluate(1);
  REQUIRE(all.numbers);
  REQUIRE(none.numbers);
  CHECK(all.numbers->iteration_time_s == outcome_of({}).iteration_time_s);
  CHECK(none.numbers->iteration_time_s == outcome_of().iteration_time_s);
  CHECK(*none.numbers->throughput_samples_per_s > *all.numbers->throughput_samples_per_s);
}

}  // namespace
}  // namespace plumbline::test
