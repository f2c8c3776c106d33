// A validation against runs whose truth is known: what differs is found, by cause and to the tick.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/validation.h"

#include <doctest/doctest.h>

#include <cmath>

#include "base/quantity.h"
#include "calibrate/runtime/run_report.h"
#include "sim/engine/release.h"
#include "sim/planning/predict.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

Scenario scenario_of(const std::string& schedule, const std::string& more = "") {
  const std::string text =
      "version: 1\nname: test\nmodel: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms, output: "
      "1 MiB, activation: 4 MiB, parameters: 8 MiB}, batch: 8}\ncluster: {devices: 4, link: "
      "{latency: 100 us, bandwidth: 10 GB/s}}\nschedule: {" +
      schedule + ", micro_batches: 4}\n" + more;
  auto scenario = parse_scenario(std::make_shared<const Source>(Source{"test.yaml", text, ""}), {});
  REQUIRE(scenario);
  return *std::move(scenario);
}

/// A run of the prediction's own graph in which nodes take other lengths and begin later.
template <class Length, class Gap>
RealRun run_with(const Outcome& predicted, Length length, Gap gap) {
  const OpGraph& graph = predicted.graph;
  Trace trace;
  trace.spans.resize(graph.size());
  std::vector<SimTime> free(graph.resources());
  auto join = graph.joins.begin();
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const Node& n = graph.nodes[node];
    SimTime begin = std::max(free[n.resource], free[n.peer_resource]);
    if (n.input != graph.size()) begin = std::max(begin, trace.spans[n.input].end);
    if (join != graph.joins.end() && join->node == node) {
      for (const std::uint32_t other : join->inputs)
        begin = std::max(begin, trace.spans[other].end);
      ++join;
    }
    begin += gap(node);
    const Duration hold = length(node);
    free[n.resource] = free[n.peer_resource] = begin + hold;
    trace.spans[node] = {begin, begin + hold + graph.cost(node).latency, kNobody};
  }
  attribute_releases(graph, trace);
  RealRun run;
  auto outcome = assess(predicted.setup, graph, trace);
  REQUIRE(outcome);
  run.outcome = *std::move(outcome);
  MeasuredIteration iteration;
  iteration.trace = trace;
  run.iterations.assign(10, iteration);
  run.times_s.assign(10, run.outcome.iteration_time_s);
  run.time_s = statistics_of(run.times_s);
  run.clean = 10;
  run.backend = "test";
  run.device = "none";
  return run;
}

Duration no_gap(std::uint32_t) { return Duration{}; }

double sum(const ErrorShares& shares) {
  return shares.profile_s + shares.compute_s + shares.transfer_s + shares.hand_over_s +
         shares.waiting_s + shares.telling_s;
}

TEST_CASE("a run exactly as predicted has no error of any kind") {
  for (const char* schedule : {"name: gpipe", "name: 1f1b", "name: pipedream", "name: naive",
                               "name: 1f1b, transfers: blocking"}) {
    CAPTURE(schedule);
    const Scenario scenario = scenario_of(schedule);
    const auto predicted = predict(scenario);
    REQUIRE(predicted);
    const auto hold = [&](std::uint32_t node) { return predicted->graph.cost(node).hold; };
    const Validation v = validate(*predicted, run_with(*predicted, hold, no_gap), 0.05);
    CHECK(v.error == 0);
    CHECK(v.verdict == Verdict::same);
    CHECK(sum(v.shares) == 0);
    CHECK(v.starts.max_s == 0);
    CHECK(v.critical_path_agreement == 1);
    CHECK(v.memory_verdict() == MemoryVerdict::exact);
  }
}

TEST_CASE("what it takes to tell a trace is a share of its own") {
  const Scenario scenario = scenario_of("name: gpipe");
  const auto predicted = predict(scenario);
  REQUIRE(predicted);
  const auto longer = [&](std::uint32_t node) {
    return predicted->graph.cost(node).hold * 11 / 10;
  };
  RealRun run = run_with(*predicted, longer, no_gap);
  const Validation plain = validate(*predicted, run, 0.05);
  CHECK(plain.shares.telling_s == 0);
  // Executed without telling, the same took what was predicted.
  run.traced_s = run.outcome.iteration_time_s;
  run.outcome.iteration_time_s = predicted->iteration_time_s;
  const Validation v = validate(*predicted, run, 0.05);
  CHECK(v.error == 0);
  CHECK(v.shares.compute_s == plain.shares.compute_s);
  CHECK(v.shares.waiting_s == doctest::Approx(plain.shares.waiting_s).epsilon(1e-12));
  CHECK(v.shares.telling_s == doctest::Approx(*run.traced_s - predicted->iteration_time_s));
  CHECK(v.shares.telling_s > 0);
  CHECK(sum(v.shares) == doctest::Approx(0).epsilon(1e-12));
}

TEST_CASE("the error is found under the cause that made it") {
  const Scenario scenario = scenario_of("name: gpipe");
  const auto predicted = predict(scenario);
  REQUIRE(predicted);
  const OpGraph& graph = predicted->graph;
  const auto compute = [&](std::uint32_t node) { return is_compute(graph.activities[node].kind); };
  const auto hold = [&](std::uint32_t node) { return graph.cost(node).hold; };

  SUBCASE("ops that take a tenth longer") {
    const auto longer = [&](std::uint32_t node) {
      return compute(node) ? hold(node) * 11 / 10 : hold(node);
    };
    const Validation v = validate(*predicted, run_with(*predicted, longer, no_gap), 0.05);
    // Seven forwards and seven backwards in a row on the longest path, 21 ms, become 23.1 ms.
    CHECK(v.shares.compute_s == doctest::Approx(-0.0021));
    CHECK(v.shares.transfer_s == 0);
    CHECK(v.shares.hand_over_s == 0);
    CHECK(v.shares.waiting_s == doctest::Approx(0).epsilon(1e-12));
    CHECK(v.error < -0.05);
    CHECK(v.verdict == Verdict::off);
    CHECK(sum(v.shares) == doctest::Approx(v.predicted_s() - v.measured_s()));
  }
  SUBCASE("transfers that take 50 us longer") {
    const auto longer = [&](std::uint32_t node) {
      return is_transfer(graph.activities[node].kind) ? hold(node) + Duration{50'000} : hold(node);
    };
    const Validation v = validate(*predicted, run_with(*predicted, longer, no_gap), 0.05);
    CHECK(v.shares.transfer_s == doctest::Approx(-6 * 50e-6));  // three on the way up, three down
    CHECK(v.shares.compute_s == 0);
    CHECK(v.shares.hand_over_s == 0);
    CHECK(v.verdict == Verdict::close);
  }
  SUBCASE("ops that begin 3 us late") {
    const auto late = [&](std::uint32_t node) {
      return compute(node) ? Duration{3'000} : Duration{};
    };
    const Validation v = validate(*predicted, run_with(*predicted, hold, late), 0.05);
    CHECK(v.shares.hand_over_s == doctest::Approx(v.predicted_s() - v.measured_s()));
    CHECK(v.shares.compute_s == 0);
    CHECK(v.shares.transfer_s == 0);
    CHECK(v.verdict == Verdict::same);
    // The last backward of device 0 is the last of 14 on the longest path.
    CHECK(v.starts.max_s == doctest::Approx(14 * 3e-6));
    CHECK(v.starts.worst == "0B3");
  }
}

TEST_CASE("a hand-over counts once, predicted in the transfer and measured before the op") {
  for (const char* const schedule : {"name: naive", "name: naive, transfers: blocking"}) {
    CAPTURE(std::string(schedule));
    const Scenario scenario = scenario_of(schedule, "overhead: {hand_over: 40 us}\n");
    const auto predicted = predict(scenario);
    Scenario bare = scenario;  // of a backend that has its own
    bare.overheads = {};
    const auto as_run = predict(bare);
    REQUIRE(predicted);
    REQUIRE(as_run);
    const OpGraph& graph = as_run->graph;
    const auto hold = [&](std::uint32_t node) { return graph.cost(node).hold; };
    const auto transfers = [&](std::uint32_t node) {
      return node < graph.size() && is_transfer(graph.activities[node].kind);
    };
    Duration late{};
    const auto gap = [&](std::uint32_t node) {
      if (transfers(node)) return late;
      return transfers(graph.nodes[node].input) ? Duration{40'000} : Duration{};
    };
    const Validation same = validate(*predicted, run_with(*as_run, hold, gap), 0.05);
    CHECK(same.error == doctest::Approx(0).epsilon(1e-12));
    for (const double share : {same.shares.compute_s, same.shares.transfer_s,
                               same.shares.hand_over_s, same.shares.waiting_s})
      CHECK(share == doctest::Approx(0).epsilon(1e-12));
    late = Duration{2'000};
    const Validation v = validate(*predicted, run_with(*as_run, hold, gap), 0.05);
    CHECK(v.shares.transfer_s == doctest::Approx(v.predicted_s() - v.measured_s()));
    CHECK(v.shares.transfer_s == doctest::Approx(-24 * 2e-6));  // six for each of 4 micro-batches
    CHECK(v.shares.hand_over_s == doctest::Approx(0).epsilon(1e-12));
  }
}

TEST_CASE("what the layers' times of now explain is the profile's share") {
  const Scenario scenario = scenario_of("name: 1f1b");
  const auto predicted = predict(scenario);
  REQUIRE(predicted);
  Scenario slower = scenario;
  for (LayerCosts& layer : slower.model.edit().profile.measurements.front().layers) {
    layer.forward.mean = layer.forward.mean * 5 / 4;
    layer.backward.mean = layer.backward.mean * 5 / 4;
  }
  const auto now = predict(slower);
  REQUIRE(now);
  // The run takes the times of now, and every op a fiftieth of that more.
  const auto hold = [&](std::uint32_t node) {
    const Duration own = now->graph.cost(node).hold;
    return is_compute(now->graph.activities[node].kind) ? own + own / 50 : own;
  };
  const RealRun run = run_with(*now, hold, no_gap);
  const Validation v = validate(*predicted, run, 0.05, &*now);
  CHECK(v.error == validate(*predicted, run, 0.05).error);
  CHECK(*v.again_s == now->iteration_time_s);
  CHECK(*v.again_error() == doctest::Approx(now->iteration_time_s / v.measured_s() - 1));
  CHECK(v.shares.profile_s == predicted->iteration_time_s - now->iteration_time_s);
  CHECK(v.shares.compute_s == doctest::Approx(now->iteration_time_s - v.measured_s()));
  CHECK(sum(v.shares) == doctest::Approx(v.predicted_s() - v.measured_s()));
  CHECK(v.own_error() == *v.again_error());
  CHECK(*v.machine_change() == doctest::Approx(now->iteration_time_s / v.predicted_s() - 1));
  CHECK(*v.machine_change() > 0.2);
  CHECK(v.verdict == Verdict::close);  // the machine has changed; the prediction is not off
  CHECK(validate(*predicted, run, 0.05).verdict == Verdict::off);
  CHECK(validate(*predicted, run, 0.005, &*now).verdict == Verdict::inconclusive);
  const std::string text = to_table({{{}, v}}).print();
  CAPTURE(text);
  CHECK(text.find("\n  profile ") != std::string::npos);
  CHECK(text.find("ops took another time than their layers now") != std::string::npos);
  CHECK(text.find("CLOSE: predicted ") != std::string::npos);
  CHECK(text.find("\nthis machine is 22.78 % slower than when it was calibrated\n") !=
        std::string::npos);
  // For several runs: the prediction's own errors first, then the machine's change.
  const std::string several = to_table({{{}, v}, {{}, v}}).print();
  CAPTURE(several);
  const auto own = several.find(
      "\nthe prediction's own error, from the layers' times beside the runs: 1.82 % in the median, "
      "1.82 % at worst; tolerance 5.00 %\n");
  const auto change = several.find(
      "\nthis machine since it was calibrated: +22.78 % to +22.78 % in the time of a run; with "
      "that "
      "the error is 20.04 % in the median, 20.04 % at worst\n");
  const auto header = several.find("  own error     error  ");
  REQUIRE(own != std::string::npos);
  CHECK(own < change);
  CHECK(change < header);
  CHECK(header != std::string::npos);
  const std::string alone = to_table({{{}, validate(*predicted, run, 0.05)}}).print();
  CHECK(alone.find("\n  profile ") == std::string::npos);
  CHECK(alone.find("times beside the run") == std::string::npos);
  CHECK(to_json({{{}, v}}, "0").find("\"timed_again\": {") != std::string::npos);
  CHECK(to_json({{{}, validate(*predicted, run, 0.05)}}, "0").find("\"timed_again\": null") !=
        std::string::npos);
}

TEST_CASE("rounds of a run add up to one, which the round in the middle stands for") {
  const Scenario scenario = scenario_of("name: 1f1b");
  const auto predicted = predict(scenario);
  REQUIRE(predicted);
  const auto round = [&](double factor, std::size_t clean) {
    const auto hold = [&](std::uint32_t node) {
      return Duration{
          std::llround(factor * static_cast<double>(predicted->graph.cost(node).hold.count()))};
    };
    RealRun run = run_with(*predicted, hold, no_gap);
    for (std::size_t i = clean; i < run.iterations.size(); ++i) run.iterations[i].clean = false;
    run.clean = clean;
    run.rounds_s = {run.outcome.iteration_time_s};
    run.shown = 3;
    run.remarks = {"loss " + std::to_string(factor), "the same in all"};
    if (factor == 1.0) run.remarks.emplace_back("a fault in one round");
    return run;
  };
  const double middle = round(1.1, 10).outcome.iteration_time_s;
  const RealRun all = together({round(1.2, 10), round(1.0, 10), round(1.1, 6)});
  CHECK(all.outcome.iteration_time_s == middle);
  CHECK(all.iterations.size() == 30);
  CHECK(all.clean == 26);
  CHECK(all.shown == 23);
  CHECK(all.times_s[all.shown] == middle);
  CHECK(all.time_s.samples == 26);
  CHECK(all.rounds_s.size() == 3);
  CHECK(all.remarks == std::vector<std::string>{"loss " + std::to_string(1.1), "the same in all",
                                                "a fault in one round"});
  // Rounds that differ by 20 % say that the tenth above is no more than what a run changes by.
  CHECK(all.spread_of_rounds() == doctest::Approx(0.0909).epsilon(0.02));
  const Validation v = validate(*predicted, all, 0.05);
  CHECK(v.noise() >= all.spread_of_rounds());
  CHECK(v.verdict == Verdict::inconclusive);
  // A round without a clean iteration has no say.
  const RealRun two = together({round(1.3, 0), round(1.0, 10), round(1.1, 10)});
  CHECK(two.outcome.iteration_time_s == round(1.0, 10).outcome.iteration_time_s);
  CHECK(two.rounds_s.size() == 2);
  CHECK(two.time_s.samples == 20);
  const RealRun none = together({round(1.3, 0), round(1.0, 0)});
  CHECK(none.clean == 0);
  CHECK(none.rounds_s.size() == 2);
  CHECK(none.time_s.samples == 20);
  CHECK(together({round(1.3, 7)}).rounds_s.size() == 1);
  CHECK(together({round(1.3, 7)}).spread_of_rounds() == 0);
  // More rounds know the middle better, however far the outermost are apart.
  const auto many = [&](std::size_t times) {
    std::vector<RealRun> rounds;
    for (std::size_t i = 0; i < times; ++i) {
      for (const double factor : {1.0, 1.09, 1.1, 1.11, 1.2}) rounds.push_back(round(factor, 10));
    }
    return together(std::move(rounds)).spread_of_rounds();
  };
  CHECK(many(4) < 0.6 * many(1));
  CHECK(many(1) < 0.02);
}

TEST_CASE("the verdict needs clean iterations and a spread below the tolerance") {
  const Scenario scenario = scenario_of("name: 1f1b");
  const auto predicted = predict(scenario);
  REQUIRE(predicted);
  const auto by = [&](double factor) {
    return [&, factor](std::uint32_t node) {
      const Duration hold = predicted->graph.cost(node).hold;
      return is_compute(predicted->graph.activities[node].kind)
                 ? Duration{std::llround(factor * static_cast<double>(hold.count()))}
                 : hold;
    };
  };
  RealRun run = run_with(*predicted, by(1.03), no_gap);
  CHECK(validate(*predicted, run, 0.05).verdict == Verdict::close);
  CHECK(validate(*predicted, run, 0.01).verdict == Verdict::off);
  run.time_s.q1 = run.time_s.median * 0.97;
  run.time_s.q3 = run.time_s.median * 1.03;  // they spread by 6 %
  CHECK(validate(*predicted, run, 0.05).noise() == doctest::Approx(0.0345).epsilon(0.01));
  CHECK(validate(*predicted, run, 0.05).verdict == Verdict::same);  // 3 % are within 3.45 %
  CHECK(validate(*predicted, run, 0.01).verdict == Verdict::inconclusive);
  run.time_s.q1 = run.time_s.median * 0.995;
  run.time_s.q3 = run.time_s.median * 1.005;  // the noise is 0.6 %
  CHECK(validate(*predicted, run, 0.05).verdict == Verdict::close);
  CHECK(validate(*predicted, run, 0.01).verdict == Verdict::off);
  CHECK(validate(*predicted, run, 0.025).verdict == Verdict::inconclusive);  // the error is 2.7 %
  run.clean = 4;
  CHECK(validate(*predicted, run, 0.05).verdict == Verdict::inconclusive);
  run.clean = 0;
  CHECK(validate(*predicted, run, 0.05).verdict == Verdict::inconclusive);
}

TEST_CASE("a ranking counts pairs beyond the noise and whether their order was predicted") {
  const Scenario scenario = scenario_of("name: 1f1b");
  const auto predicted = predict(scenario);
  REQUIRE(predicted);
  const auto point = [&](double predicted_s, double measured_s, double spread) {
    ValidationPoint p{{}, {}};
    p.validation.predicted = *predicted;
    p.validation.predicted.throughput_samples_per_s = 1 / predicted_s;
    p.validation.measured.outcome = *predicted;
    p.validation.measured.outcome.throughput_samples_per_s = 1 / measured_s;
    p.validation.measured.time_s.median = measured_s;
    p.validation.measured.time_s.samples = 1;
    p.validation.measured.time_s.q1 = measured_s;
    p.validation.measured.time_s.q3 = measured_s * (1 + spread);
    p.validation.measured.clean = 1;
    return p;
  };
  const std::vector<ValidationPoint> points = {point(1, 1.1, 0), point(2, 2.1, 0),
                                               point(3, 2.11, 0), point(4, 1.5, 0)};
  const Ranking ranking = rank(points);
  CHECK(ranking.pairs == 6);
  CHECK(ranking.ties == 1);   // 2.1 and 2.11
  CHECK(ranking.right == 3);  // the first against all others
  CHECK(ranking.wrong == 2);  // the last is faster than predicted
  CHECK(*ranking.tau() == doctest::Approx(0.2));
  CHECK(ranking.equal == 0);
  CHECK_FALSE(rank({points[0]}).tau());
  // Whatever was measured: the prediction chose neither of 4 and 4.003.
  const Ranking alike = rank({points[0], points[3], point(4.003, 3, 0), point(4.005, 1.5, 0)});
  CHECK(alike.pairs == 6);
  CHECK(alike.equal == 2);  // 4.005 is with 4.003, and not with 4
  CHECK(alike.ties == 1);   // 1.5 twice
  CHECK(alike.right == 3);
  CHECK(alike.wrong == 0);
}

TEST_CASE("a drift that all rounds share does not hide which of two runs is the faster") {
  const Scenario scenario = scenario_of("name: 1f1b");
  const auto predicted = predict(scenario);
  REQUIRE(predicted);
  const auto point = [&](std::vector<double> rounds_s) {
    ValidationPoint p{{}, {}};
    Validation& v = p.validation;
    v.predicted = *predicted;
    v.predicted.throughput_samples_per_s = 1 / rounds_s[1];  // not predicted as equal
    v.measured.outcome = *predicted;
    v.measured.outcome.iteration_time_s = rounds_s[1];
    v.measured.outcome.throughput_samples_per_s = 1 / rounds_s[1];
    v.measured.time_s = statistics_of(rounds_s);
    v.measured.time_s.q1 = v.measured.time_s.q3 = rounds_s[1];
    v.measured.rounds_s = std::move(rounds_s);
    v.measured.clean = 1;
    return p;
  };
  const ValidationPoint slow = point({1.05, 1.15, 1.25});
  CHECK(slow.validation.noise() > 0.08);
  CHECK(rank({slow, point({1.0, 1.1, 1.2})}).ties == 0);  // a twentieth faster in every round
  CHECK(rank({slow, point({1.2, 1.1, 1.0})}).ties == 1);  // now the one, now the other
  CHECK(rank({slow, point({1.0, 1.1})}).ties == 1);       // who knows in which rounds
}

TEST_CASE("what one instant of the prediction holds apart is a tie, more than that a difference") {
  const Scenario scenario = scenario_of("name: gpipe");
  const auto predicted = predict(scenario);
  REQUIRE(predicted);
  const auto hold = [&](std::uint32_t node) { return predicted->graph.cost(node).hold; };
  RealRun run = run_with(*predicted, hold, no_gap);
  run.outcome.memory[1].peak.buffers += Bytes{1 << 30};
  CHECK(validate(*predicted, run, 0.05).memory_verdict() == MemoryVerdict::differs);
  run.outcome.memory[1].peak.buffers = predicted->memory[1].peak.buffers - Bytes{1};
  CHECK(validate(*predicted, run, 0.05).memory_verdict() == MemoryVerdict::differs);
}

TEST_CASE("another order of events than predicted, with the memory of that order, is told so") {
  // Gradients come 3 ms sooner than predicted: before the backward ahead of them has ended.
  const Scenario scenario = scenario_of("name: gpipe");
  const auto predicted = predict(scenario);
  REQUIRE(predicted);
  const OpGraph& graph = predicted->graph;
  const auto hold = [&](std::uint32_t node) {
    const Activity& activity = graph.activities[node];
    const bool is_slow = activity.kind == ActivityKind::backward && activity.stage.value == 0;
    return graph.cost(node).hold * (is_slow ? 3 : 1);
  };
  RealRun run = run_with(*predicted, hold, no_gap);
  const auto steps =
      memory_steps(graph, run.outcome.trace, predicted->setup.costs,
                   predicted->setup.schedule.shape.positions, memory_rules(predicted->setup));
  run.outcome.memory =
      measure_memory(graph, predicted->setup.costs, memory_rules(predicted->setup), steps);
  REQUIRE(run.outcome.memory[0].peak.sum() > predicted->memory[0].peak.sum());
  const Validation v = validate(*predicted, run, 0.05);
  CHECK(v.memory[0] == MemoryVerdict::order);
  CHECK(v.memory[3] == MemoryVerdict::exact);
  CHECK(to_table({{{}, v}}).print().find("came in another order than predicted") !=
        std::string::npos);
  run.outcome.memory[0].peak.buffers += Bytes{1};
  CHECK(validate(*predicted, run, 0.05).memory[0] == MemoryVerdict::differs);
}

TEST_CASE("what the prediction notes is told beside the measurement, each sentence once") {
  Scenario scenario = scenario_of("name: gpipe");
  scenario.notes = {"something to know"};
  const auto predicted = predict(scenario);
  REQUIRE(predicted);
  const auto hold = [&](std::uint32_t node) { return predicted->graph.cost(node).hold; };
  const RealRun run = run_with(*predicted, hold, no_gap);
  const ValidationPoint point{{}, validate(*predicted, run, 0.05)};
  for (const std::size_t count : {1, 2}) {
    const std::vector<ValidationPoint> points(count, point);
    const std::string text = to_table(points).print();
    const std::string note = "\nnote: something to know\n";
    CAPTURE(text);
    REQUIRE(text.find(note) != std::string::npos);
    CHECK(text.find(note) == text.rfind(note));
    CHECK(to_json(points, "0").find("\"notes\": [\n") != std::string::npos);
  }
  // Estimates are reported with the rows that they concern.
  std::vector<ValidationPoint> points(3, point);
  for (const std::size_t estimated : {0, 2})
    points[estimated].validation.predicted.setup.estimated = {"layer costs: scaled"};
  CHECK(to_table(points).print().find(
            "\npredicted from estimates in 2 of 3 rows: layer costs: scaled\n") !=
        std::string::npos);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A run 20 % longer than predicted of which `clean` of 10 iterations were clean.
ValidationPoint point_with(std::size_t clean) {
  const Scenario scenario = scenario_of("name: gpipe");
  const auto predicted = predict(scenario);
  REQUIRE(predicted);
  const auto longer = [&](std::uint32_t node) {
    return Duration{predicted->graph.cost(node).hold.count() * 6 / 5};
  };
  RealRun run = run_with(*predicted, longer, no_gap);
  run.clean = clean;
  return {{}, validate(*predicted, run, 0.05)};
}

TEST_CASE("notes that differ in numbers only stand once") {
  ValidationPoint first = point_with(10);
  ValidationPoint second = first;
  first.validation.predicted.setup.notes = {"all ops take 1.5 % less", "a note"};
  second.validation.predicted.setup.notes = {"all ops take 12 % less", "a note", "another"};
  const std::string text = to_table({first, second}).print();
  CAPTURE(text);
  CHECK(has(text, "note: all ops take 1.5 % less (in the first row; other rows differ)\n"));
  CHECK(has(text, "note: a note\n"));
  CHECK(has(text, "note: another\n"));
  CHECK_FALSE(has(text, "12 % less"));
}

TEST_CASE("a run without a clean iteration is told as one, and nothing in it as measured") {
  const ValidationPoint none = point_with(0);
  CHECK(none.validation.verdict == Verdict::inconclusive);
  const std::string text = to_table({none}).print();
  const std::string why =
      "nothing clean was measured in 10 iterations: other work kept the devices from running";
  CAPTURE(text);
  CHECK(has(text, "\n" + why + "; nothing is compared\n"));
  CHECK(has(text, "\n0 of 10 iterations clean\n"));
  CHECK(has(text, "\nINCONCLUSIVE: " + why +
                      "; stop other programs, or run it again with more --iterations\n"));
  CHECK(has(text, "predicted  disturbed\n"));
  for (const char* gone : {"measured  ", "error", "where the error", "ops start", "too fast"})
    CHECK_MESSAGE(!has(text, gone), gone);
  const std::string measured = to_table({point_with(10)}).print();
  for (const char* there : {"measured  ", "error", "where the error", "ops start", "too fast"})
    CHECK_MESSAGE(has(measured, there), there);
  CHECK(!has(measured, "nothing clean"));
  const auto figures = report_figures(none.validation);
  REQUIRE(figures.size() == 2);
  CHECK(figures[1].label == "Disturbed");
  CHECK(figures[1].value == time_text(none.validation.measured_s()) + "*");
  CHECK(figures[1].remark == why);
}

TEST_CASE("among several runs one without a clean iteration counts in no number") {
  const std::vector<ValidationPoint> points = {point_with(10), point_with(0), point_with(0)};
  const std::string text = to_table(points).print();
  CAPTURE(text);
  CHECK(text.find("exact") == text.rfind("exact"));
  CHECK(has(text, "-16."));  // the error of the first
  CHECK(text.find("-16.") == text.rfind("-16."));
  CHECK(has(text, "\nnothing clean was measured in 2 of 3 runs: other work kept"));
  CHECK(
      has(text,
          "running\n* disturbed: the median of iterations in which it did, and no measurement\n"));
  CHECK(has(text, " core\nerror 16."));
  const std::string median = time_text(points[1].validation.measured_s());
  CHECK(has(text, " " + median + "*         -          -       -   0 of 10  INCONCLUSIVE\n"));
  CHECK(has(text, "\nOFF: beyond the tolerance of 5.00 %: 1 of 3 runs; inconclusive: 2\n"));
  CHECK(has(text, "\nranking: 0 pairs"));
  const std::string none = to_table({point_with(0), point_with(0)}).print();
  CAPTURE(none);
  CHECK(has(none, "\nnothing clean was measured in 2 of 2 runs"));
  CHECK(!has(none, "in the median"));
  ValidationPoint rounds = point_with(0);
  rounds.validation.measured.rounds_s = {1, 2};
  CHECK(!has(to_table({rounds, rounds}).print(), "rounds of one run"));
  rounds.validation.measured.clean = 10;
  CHECK(has(to_table({rounds, rounds}).print(), "\nrounds of one run differ by "));
}

TEST_CASE("the JSON of a run without a clean iteration has null for what was not measured") {
  const std::string none = to_json({point_with(0)}, "0");
  CAPTURE(none);
  for (const char* key :
       {"\"error\": ", "\"noise\": ", "\"error_by_cause_s\": ", "\"op_start_error_s\": ",
        "\"critical_path_agreement\": ", "\"memory\": "}) {
    CAPTURE(key);
    CHECK(has(none, std::string(key) + "null"));
    CHECK(!has(to_json({point_with(1)}, "0"), std::string(key) + "null"));
  }
  CHECK(has(none, "\"measured\": null"));
  CHECK(has(none, "\"disturbed_iteration_time_s\": 0."));
  CHECK(has(to_json({point_with(1)}, "0"), "\"disturbed_iteration_time_s\": null"));
  CHECK(has(none,
            "\"verdicts\": {\n  \"SAME\": 0,\n  \"CLOSE\": 0,\n  \"OFF\": 0,\n  "
            "\"INCONCLUSIVE\": 1\n }"));
  CHECK(has(none, "\"clean_iterations\": 0"));
}

TEST_CASE("the verdict on several points is the worst, and off is worse than inconclusive") {
  const auto with = [](std::initializer_list<Verdict> verdicts) {
    std::vector<ValidationPoint> points;
    points.reserve(verdicts.size());
    for (const Verdict verdict : verdicts) {
      points.emplace_back();
      points.back().validation.verdict = verdict;
    }
    return verdict_on(points);
  };
  CHECK(with({Verdict::same, Verdict::same}) == Verdict::same);
  CHECK(with({Verdict::same, Verdict::close}) == Verdict::close);
  CHECK(with({Verdict::inconclusive, Verdict::close}) == Verdict::inconclusive);
  CHECK(with({Verdict::inconclusive, Verdict::off, Verdict::same}) == Verdict::off);
}

/// One run as long as predicted but for a part of it, all clean.
ValidationPoint point_longer_by(std::int64_t percent) {
  const Scenario scenario = scenario_of("name: gpipe");
  const auto predicted = predict(scenario);
  REQUIRE(predicted);
  const auto longer = [&](std::uint32_t node) {
    return Duration{predicted->graph.cost(node).hold.count() * (100 + percent) / 100};
  };
  return {{}, validate(*predicted, run_with(*predicted, longer, no_gap), 0.05)};
}

TEST_CASE("the verdict on several runs is the worst of theirs") {
  const ValidationPoint same = point_longer_by(0);
  const ValidationPoint close = point_longer_by(3);
  const ValidationPoint off = point_longer_by(20);
  const ValidationPoint open = point_with(0);
  CHECK(verdict_on({same}) == Verdict::same);
  CHECK(verdict_on({same, close}) == Verdict::close);
  CHECK(verdict_on({same, open, close}) == Verdict::inconclusive);
  CHECK(verdict_on({open, open}) == Verdict::inconclusive);
  CHECK(verdict_on({open, off}) == Verdict::off);
}

TEST_CASE("several runs end with what their verdicts come to") {
  const ValidationPoint same = point_longer_by(0);
  const ValidationPoint close = point_longer_by(3);
  const ValidationPoint off = point_longer_by(20);
  const ValidationPoint open = point_with(0);
  CHECK(
      has(to_table({same, same}).print(), "\nSAME: within the tolerance of 5.00 %: all 2 runs\n"));
  CHECK(has(to_table({same, close}).print(),
            "\nCLOSE: within the tolerance of 5.00 %: all 2 runs\n"));
  CHECK(has(
      to_table({same, open, close}).print(),
      "\nINCONCLUSIVE: nothing can be said of 1 of 3 runs; within the tolerance of 5.00 %: 2\n"));
  CHECK(has(to_table({open, open}).print(), "\nINCONCLUSIVE: nothing can be said of all 2 runs\n"));
  CHECK(has(to_table({off, same}).print(), "\nOFF: beyond the tolerance of 5.00 %: 1 of 2 runs\n"));
  CHECK(has(to_table({off, open}).print(),
            "\nOFF: beyond the tolerance of 5.00 %: 1 of 2 runs; inconclusive: 1\n"));
}

}  // namespace
}  // namespace plumbline::test
