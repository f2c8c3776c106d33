// Sampled runs against direct simulation of each, and against what is known of them.
//
// SPDX-License-Identifier: MIT
#include "sim/prediction/uncertainty.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "sim/engine/simulate.h"
#include "sim/prediction/predict_resolved.h"
#include "tests/support/close_to.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

Result<Outcome> predicted(const std::string& text) {
  const auto scenario = parse_scenario(text_source("noisy.yaml", text), {});
  if (!scenario) return scenario.problems();
  return predict_resolved(*scenario);
}

const std::string kPipeline =
    "version: 1\n"
    "model: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms, update: 100 us, output: 1 MB}}\n";
const std::string kFlat = "cluster: {devices: 4, link: {bandwidth: 10 GB/s, latency: 3 us}}\n";
const std::string kServers =
    "cluster: {levels: [{name: server, size: 2, bandwidth: 10 GB/s},\n"
    "                   {name: rack, size: 2, bandwidth: 1 GB/s, latency: 9 us}]}\n";
const std::string kNoise =
    "noise: {spread: 0.2, stragglers: {probability: 0.05, factor: 4}, device_spread: 0.1, "
    "slow_devices: {probability: 0.1, factor: 1.5}, seed: 5, samples: 40}\n";

/// Every sampled run once more: its own costs put into the graph, simulated by events, measured as
/// any other run.
std::vector<double> directly(const Outcome& outcome, const Noise& noise, std::uint32_t samples) {
  std::vector<double> times;
  for (std::uint32_t run = 0; run < samples; ++run) {
    OpGraph graph = outcome.graph;
    graph.costs.clear();
    for (std::uint32_t node = 0; node < graph.size(); ++node) {
      Cost cost = outcome.graph.cost(node);
      if (is_compute(graph.activities[node].kind)) {
        cost.hold = Duration(
            std::llround(static_cast<double>(cost.hold.count()) * noise_factor(noise, run, node) *
                         device_factor(noise, run, graph.nodes[node].resource)));
      }
      graph.costs.push_back(cost);
      graph.nodes[node].cost = node;
    }
    const Trace trace = simulate(graph);
    times.push_back(
        outcome.setup.iteration_time_of(measure(graph, trace, outcome.setup.steady_window)));
  }
  std::sort(times.begin(), times.end());
  return times;
}

TEST_CASE("sampled runs are the runs that a direct simulation of each gives") {
  const std::string schedules[] = {
      "schedule: {name: 1f1b, micro_batches: 6, mini_batches: 2}\n",
      "schedule: {name: gpipe, micro_batches: 5, transfers: blocking, recompute: full}\n",
      "schedule: {name: 1f1b, micro_batches: 4, recompute: layers}\n",
      "schedule: {name: pipedream, micro_batches: 20}\n",
      "schedule: {name: data-parallel, micro_batches: 2}\n"};
  for (const std::string& cluster : {kFlat, kServers}) {
    for (const std::string& schedule : schedules) {
      CAPTURE(schedule);
      const auto outcome = predicted(kPipeline + cluster + schedule + kNoise);
      REQUIRE(outcome);
      const Noise noise{.spread = 0.2,
                        .stragglers = {.probability = 0.05, .factor = 4},
                        .device_spread = 0.1,
                        .slow_devices = {.probability = 0.1, .factor = 1.5},
                        .seed = 5};
      const std::vector<double> direct = directly(*outcome, noise, 40);
      REQUIRE(outcome->uncertainty);
      CHECK(outcome->uncertainty->iteration_times_s == direct);
      CHECK(outcome->uncertainty->iteration_time_s(0.05) == direct[1]);
      CHECK(outcome->uncertainty->iteration_time_s(0.5) == direct[19]);
      CHECK(outcome->uncertainty->iteration_time_s(0.95) == direct[37]);
    }
  }
}

TEST_CASE("without spread every sampled run is the prediction") {
  const auto outcome = predicted(kPipeline + kFlat + "schedule: {name: 1f1b, micro_batches: 8}\n" +
                                 "noise: {samples: 20}\n");
  REQUIRE(outcome);
  for (const double time : outcome->uncertainty->iteration_times_s)
    CHECK(time == outcome->iteration_time_s);
}

/// The share of sampled runs that take another time than the prediction.
double changed_share(const Outcome& outcome) {
  const std::vector<double>& times = outcome.uncertainty->iteration_times_s;
  const auto changed = std::count_if(times.begin(), times.end(),
                                     [&](double time) { return time != outcome.iteration_time_s; });
  return static_cast<double>(changed) / static_cast<double>(times.size());
}

TEST_CASE("all devices slow, or all links slow, is a scenario with such devices or links") {
  const std::string schedules[] = {
      "schedule: {name: 1f1b, micro_batches: 6}\n",
      "schedule: {name: gpipe, micro_batches: 5, transfers: blocking}\n",
      "schedule: {name: pipedream, micro_batches: 20}\n",
      "schedule: {name: data-parallel, micro_batches: 2}\n"};
  const auto replaced = [](std::string text, const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos;
         at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
    return text;
  };
  const std::string slow_devices =
      "noise: {slow_devices: {probability: 1, factor: 3}, samples: 1}\n";
  const std::string slow_links = "noise: {slow_links: {probability: 1, factor: 5}, samples: 1}\n";
  const std::string parameters = replaced(kPipeline, "output:", "parameters: 1 MB, output:");
  for (const std::string& cluster : {kFlat, kServers}) {
    for (const std::string& schedule : schedules) {
      CAPTURE(schedule);
      const auto with_devices = predicted(parameters + cluster + schedule + slow_devices);
      const auto devices = predicted(
          "version: 1\nmodel: {uniform: {layers: 4, forward: 3 ms, backward: 6 ms, update: 300 us, "
          "parameters: 1 MB, output: 1 MB}}\n" +
          cluster + schedule);
      REQUIRE(with_devices);
      REQUIRE(devices);
      CHECK(with_devices->uncertainty->iteration_times_s == std::vector{devices->iteration_time_s});
      const auto with_links = predicted(parameters + cluster + schedule + slow_links);
      const auto links = predicted(
          parameters + replaced(replaced(cluster, "10 GB/s", "2 GB/s"), " 1 GB/s", " 0.2 GB/s") +
          schedule);
      REQUIRE(with_links);
      REQUIRE(links);
      CHECK(with_links->iteration_time_s < links->iteration_time_s);
      CHECK(with_links->uncertainty->iteration_times_s.front() ==
            doctest::Approx(links->iteration_time_s).epsilon(1e-6));
    }
  }
}

TEST_CASE("a slow device slows the whole run, and a group is as slow as its slowest device") {
  const auto share = [](const std::string& group, const std::string& noise) {
    const auto outcome = predicted(
        "version: 1\nmodel: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms, output: 1 MB}" +
        group + "}\n" + kFlat + "schedule: {name: 1f1b, micro_batches: 4}\nnoise: {" + noise +
        ", samples: 4000}\n");
    REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
    return changed_share(*outcome);
  };
  const std::string devices = "slow_devices: {probability: 0.02}";
  CHECK(share("", devices) == close_to(1 - std::pow(0.98, 4), 0.15));
  CHECK(share(", group: {devices: 8}", devices) == close_to(1 - std::pow(0.98, 32), 0.05));
  // Three links between neighbours, both ways; each device of a group has its own.
  const std::string links = "slow_links: {probability: 0.05, factor: 9}";
  CHECK(share("", links) == close_to(1 - std::pow(0.95, 3), 0.15));
  CHECK(share(", group: {devices: 8}", links) == close_to(1 - std::pow(0.95, 24), 0.05));
}

TEST_CASE("both links of a server are slow where its card is") {
  const auto outcome = predicted(kPipeline + kServers +
                                 "schedule: {name: 1f1b, micro_batches: 4}\n"
                                 "noise: {slow_links: {probability: 0.05, factor: 9}, samples: "
                                 "4000}\n");
  REQUIRE(outcome);
  // A link in each of two servers, and a card of each.
  CHECK(changed_share(*outcome) == close_to(1 - std::pow(0.95, 4), 0.15));
}

TEST_CASE("one device: time is a sum, whose spread shrinks with the root of the ops") {
  // 50 F of 1 ms and 50 B of 2 ms: deviation 0.1 x sqrt(50 x 1 + 50 x 4) ms = 1.58 ms of 150 ms.
  const auto outcome = predicted(
      "version: 1\nmodel: {uniform: {layers: 1, forward: 1 ms, backward: 2 ms}}\n"
      "schedule: {name: gpipe, micro_batches: 50}\nnoise: {spread: 0.1, samples: 20000}\n");
  REQUIRE(outcome);
  const Uncertainty& u = *outcome->uncertainty;
  double sum = 0;
  for (const double time : u.iteration_times_s) sum += time;
  CHECK(sum / 20000 == close_to(0.150, 0.001));
  const double deviation = (u.iteration_time_s(0.95) - u.iteration_time_s(0.05)) / (2 * 1.645);
  CHECK(deviation == close_to(0.1e-3 * std::sqrt(250.0), 0.03));
}

TEST_CASE("a measured spread is that of the layers' sum, by their quartiles") {
  // Quartiles 1.349 x 30 us and 1.349 x 40 us apart: 50 us of 3 ms in all.
  const std::string layers =
      "model:\n  layers:\n"
      "    - {name: a, forward: {mean: 1 ms, q1: 979765 ns, q3: 1020235 ns}, backward: 0 ms}\n"
      "    - {name: b, forward: {mean: 2 ms, q1: 1973020 ns, q3: 2026980 ns}, backward: 0 ms}\n";
  const auto outcome = predicted("version: 1\n" + layers +
                                 "plan: {stages: 1}\nschedule: {name: gpipe, micro_batches: 1}\n"
                                 "noise: {spread: measured, samples: 20000}\n");
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  const Uncertainty& u = *outcome->uncertainty;
  const double deviation = (u.iteration_time_s(0.95) - u.iteration_time_s(0.05)) / (2 * 1.645);
  CHECK(deviation == close_to(50e-6, 0.03));
}

TEST_CASE("copies that meet on a card at every step are told to be in lockstep") {
  const auto note = [](const std::string& more) {
    const auto scenario = parse_scenario(
        text_source("lockstep.yaml",
                    "version: 1\nmodel: {uniform: {layers: 4, forward: 10 ms, backward: 20 ms, "
                    "output: 10 MB}}\ncluster: {levels: [{size: 4, bandwidth: 450 GB/s}, {size: 4, "
                    "bandwidth: 4 GB/s}]}\nschedule: {name: 1f1b, micro_batches: 32}\n" +
                        more),
        {});
    REQUIRE(scenario);
    const auto prediction = predict_resolved(*scenario);
    REQUIRE(prediction);
    return lockstep_note(*prediction).value_or("");
  };
  const std::string copies = "plan: {stages: 4, data_parallel: 4}\n";
  CHECK(note(copies).find("with ops that differ by a millionth an iteration takes some 1.4") !=
        std::string::npos);
  CHECK(note(copies + "noise: {spread: 0.01, samples: 2}\n").empty());
  CHECK(note("plan: {stages: 4}\n").empty());
}

TEST_CASE("the probability to be faster is that over all pairs, by the time of a sample") {
  const auto a =
      predicted(kPipeline + kFlat + "schedule: {name: 1f1b, micro_batches: 4}\n" + kNoise);
  const auto b = predicted(kPipeline + kFlat + "schedule: {name: gpipe, micro_batches: 5}\n" +
                           "noise: {spread: 0.3, seed: 9, samples: 50}\n");
  REQUIRE(a);
  REQUIRE(b);
  double won = 0;
  for (const double x : a->uncertainty->iteration_times_s) {
    for (const double y : b->uncertainty->iteration_times_s)
      won += x / 4 < y / 5 ? 1 : x / 4 == y / 5 ? 0.5 : 0;
  }
  CHECK(won > 0);
  CHECK(probability_faster(*a, *b) == close_to(won / (40 * 50)));
  CHECK(probability_faster(*b, *a) == close_to(1 - won / (40 * 50)));
  CHECK(probability_faster(*a, *a) == close_to(0.5));
}

}  // namespace
}  // namespace plumbline::test
