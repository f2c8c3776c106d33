// Derivatives against finite differences, and how far they hold against the longest path itself.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/sensitivity.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "sim/planning/predict.h"
#include "tests/support/close_to.h"
#include "tests/support/text_source.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

Outcome predicted(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const auto scenario = parse_scenario(text_source("levers.yaml", text), overrides);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  auto outcome = predict(*scenario);
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  return *std::move(outcome);
}

const Sensitivity& find(const Sensitivities& sensitivities, SensitivityKind kind, std::uint32_t a,
                        std::uint32_t b = 0) {
  for (const Sensitivity& sensitivity : sensitivities.all) {
    const bool is_link = kind == SensitivityKind::latency || kind == SensitivityKind::bandwidth;
    if (sensitivity.kind != kind || sensitivity.every) continue;
    if (is_link ? sensitivity.from.value == a && sensitivity.to.value == b
                : sensitivity.stage.value == a)
      return sensitivity;
  }
  FAIL("no such lever");
  return sensitivities.all.front();
}
const Sensitivity& find(Sensitivities&&, SensitivityKind, std::uint32_t,
                        std::uint32_t = 0) = delete;

/// Four stages of their own lengths, written out, so that each can be changed by itself.
struct Case {
  std::vector<std::int64_t> forward, backward;  // ns
  std::string rest;

  std::string text() const {
    std::string layers = "version: 1\nmodel:\n  layers:\n";
    for (std::size_t i = 0; i < forward.size(); ++i) {
      layers += fmt::format("    - {{name: l{}, forward: {} ns, backward: {} ns, output: 1 MB}}\n",
                            i, forward[i], backward[i]);
    }
    return layers + rest;
  }
};

Case random_case(std::uint64_t seed) {
  Dice dice(seed);
  Case c;
  const std::int64_t stages = dice.roll(1, 5);
  for (std::int64_t i = 0; i < stages; ++i) {
    c.forward.push_back(dice.roll(1, 5) * 200'000 + dice.roll(0, 1) * dice.roll(0, 99'999));
    c.backward.push_back(dice.roll(1, 5) * 400'000 + dice.roll(0, 1) * dice.roll(0, 99'999));
  }
  const std::string schedules[] = {"naive", "gpipe", "1f1b", "eager-1f1b", "delayed-backward"};
  c.rest = fmt::format(
      "cluster: {{devices: {}, link: {{bandwidth: {} GB/s, latency: {} us}}}}\n"
      "schedule: {{name: {}, micro_batches: {}, mini_batches: {}, transfers: {}}}\n",
      stages, dice.roll(1, 20), dice.roll(0, 1) * dice.roll(1, 50), schedules[dice.roll(0, 4)],
      dice.roll(1, 9), dice.roll(1, 2), dice.roll(0, 2) == 0 ? "blocking" : "overlapped");
  return c;
}

double time_of(const Case& c) { return predicted(c.text()).iteration_time_s; }

TEST_CASE("what a lever gains is the finite difference, up to where the next path takes over") {
  for (std::uint64_t seed = 1; seed <= trials(150); ++seed) {
    CAPTURE(seed);
    const Case c = random_case(seed);
    const Outcome outcome = predicted(c.text());
    const Sensitivities found = sensitivities(outcome);
    REQUIRE(found.exact);
    for (std::uint32_t s = 0; s < c.forward.size(); ++s) {
      CAPTURE(s);
      for (const bool forward : {true, false}) {
        CAPTURE(forward);
        const Sensitivity& sensitivity =
            find(found, forward ? SensitivityKind::forward : SensitivityKind::backward, s);
        const auto time_with = [&](std::int64_t less) {
          Case shorter = c;
          (forward ? shorter.forward : shorter.backward)[s] -= less;
          return time_of(shorter);
        };
        // One nanosecond less.
        CHECK(outcome.iteration_time_s - time_with(1) ==
              close_to(sensitivity.derivative * 1e-9, 1e-3));
        if (!sensitivity.until) continue;
        const auto limit = static_cast<std::int64_t>(*sensitivity.until *
                                                     static_cast<double>(sensitivity.now.count()));
        const double rounding = (sensitivity.derivative + 2) * 1e-9;
        CHECK(std::abs(outcome.iteration_time_s - sensitivity.gain_until_s() - time_with(limit)) <=
              rounding);
        CHECK(std::abs(*sensitivity.min_s - time_with(sensitivity.now.count())) <= 1e-12);
        if (*sensitivity.until == 1) continue;
        // A thousandth farther the gain is less.
        const std::int64_t farther = limit + sensitivity.now.count() / 1000;
        CHECK(time_with(farther) > outcome.iteration_time_s - sensitivity.derivative * 1e-9 *
                                                                  static_cast<double>(farther));
      }
    }
  }
}

TEST_CASE("the levers of a link are its latency and the time of its bytes") {
  for (const std::string transfers : {"overlapped", "blocking"}) {
    CAPTURE(transfers);
    const std::string text =
        "version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 1 ms, output: 1 MB}}\n"
        "cluster: {devices: 2, link: {bandwidth: 10 GB/s, latency: 50 us}}\n"
        "schedule: {name: naive, micro_batches: 3, transfers: " +
        transfers + "}\n";
    const Outcome outcome = predicted(text);
    const Sensitivities found = sensitivities(outcome);
    // Naive: each micro-batch goes up and down alone, so that all its transfers are in a row.
    const Sensitivity& latency = find(found, SensitivityKind::latency, 0, 1);
    CHECK(latency.now == std::chrono::microseconds(50));
    CHECK(latency.derivative == close_to(3));
    CHECK(latency.gain_s == close_to(150e-6));
    CHECK(*latency.until == 1);
    const Sensitivity& bandwidth = find(found, SensitivityKind::bandwidth, 1, 0);
    CHECK(bandwidth.now == std::chrono::microseconds(100));
    CHECK(bandwidth.gain_s == close_to(300e-6));
    const double doubled = predicted(text, {"cluster.link.bandwidth=20 GB/s"}).iteration_time_s;
    CHECK(outcome.iteration_time_s - doubled == close_to(0.5 * 2 * 300e-6));
  }
}

TEST_CASE("naive with equal stages: every op is on the one path, down to nothing") {
  const Outcome outcome = predicted(
      "version: 1\nmodel: {uniform: {layers: 3, forward: 1 ms, backward: 2 ms}}\n"
      "cluster: {devices: 3}\nschedule: {name: naive, micro_batches: 4}\n");
  const Sensitivities found = sensitivities(outcome);
  CHECK(found.all.size() == 8);
  for (const Sensitivity& sensitivity : found.all) {
    CHECK(sensitivity.derivative == close_to(sensitivity.every ? 12 : 4));
    CHECK(*sensitivity.until == 1);
    CHECK(*sensitivity.min_s == close_to(outcome.iteration_time_s - sensitivity.gain_s));
  }
}

TEST_CASE("the slowest stage of 1F1B holds the run with all its ops, the first with one") {
  const Outcome outcome = predicted(
      "version: 1\nmodel:\n  layers:\n"
      "    - {name: a, forward: 1 ms, backward: 2 ms}\n"
      "    - {name: b, forward: 3 ms, backward: 6 ms}\n"
      "    - {name: c, forward: 500 us, backward: 1 ms}\n"
      "cluster: {devices: 3}\nschedule: {name: 1f1b, micro_batches: 8}\n");
  CHECK(outcome.iteration_time_s == close_to(0.001 + 8 * 0.009 + 0.002));
  const Sensitivities found = sensitivities(outcome);
  CHECK(find(found, SensitivityKind::forward, 0).derivative == close_to(1));
  CHECK(find(found, SensitivityKind::backward, 0).derivative == close_to(1));
  CHECK(find(found, SensitivityKind::forward, 2).gain_s == 0);  // hidden behind the next F of b
  CHECK(find(found, SensitivityKind::forward, 1).derivative == close_to(8));
  CHECK(find(found, SensitivityKind::backward, 1).derivative == close_to(8));
  CHECK(found.all[0].every);
  CHECK(found.all[1].kind == SensitivityKind::backward);
  CHECK(found.all[1].stage.value == 1);
}

TEST_CASE("an asynchronous run gains by what bounds its period") {
  const std::string text =
      "version: 1\nmodel:\n  layers:\n"
      "    - {name: a, forward: 1 ms, backward: 2 ms}\n"
      "    - {name: b, forward: 2 ms, backward: 3 ms}\n"
      "cluster: {devices: 2}\nschedule: {name: pipedream, micro_batches: 30}\n";
  const Outcome outcome = predicted(text);
  CHECK(outcome.iteration_time_s == close_to(30 * 5e-3));
  const Sensitivities found = sensitivities(outcome);
  CHECK(find(found, SensitivityKind::forward, 1).derivative == close_to(30));
  CHECK(find(found, SensitivityKind::backward, 1).derivative == close_to(30));
  CHECK(find(found, SensitivityKind::backward, 0).gain_s == close_to(0));
  // Stage a takes over at 3 ms a micro-batch: F of b may shrink to nothing first.
  CHECK(*find(found, SensitivityKind::forward, 1).min_s == close_to(30 * 3e-3));
}

TEST_CASE("buckets of a data-parallel backward are one lever") {
  const Outcome outcome = predicted(
      "version: 1\nmodel:\n  layers:\n"
      "    - {name: a, forward: 1 ms, backward: 2 ms, parameters: 30 MiB}\n"
      "    - {name: b, forward: 1 ms, backward: 3 ms, parameters: 30 MiB}\n"
      "cluster: {devices: 2, link: {bandwidth: 1 TB/s}}\n"
      "schedule: {name: data-parallel, micro_batches: 2}\n");
  const Sensitivities found = sensitivities(outcome);
  const Sensitivity& backward = find(found, SensitivityKind::backward, 0);
  CHECK(backward.now == std::chrono::milliseconds(5));
  CHECK(backward.derivative == close_to(2));
}

TEST_CASE("on shared cards the changes are those of a simulation") {
  const std::string text =
      "version: 1\nmodel: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms, output: 1 MB}}\n"
      "cluster: {levels: [{name: server, size: 2}, {name: rack, size: 2, bandwidth: 1 GB/s}]}\n"
      "schedule: {name: naive, micro_batches: 2}\nplan: {data_parallel: 2, stages: 2}\n";
  const Sensitivities found = sensitivities(predicted(text));
  CHECK(!found.exact);
  CHECK(find(found, SensitivityKind::forward, 0).derivative == close_to(2));
  CHECK(!find(found, SensitivityKind::forward, 0).until);
}

TEST_CASE("however long an iteration takes, a path holds as many ops of all stages") {
  for (const int m : {4, 5, 32, 400}) {
    for (const char* unit : {"ms", "s"}) {
      CAPTURE(m);
      CAPTURE(unit);
      // Equal stages, and stages whose times have no common divisor but 1 ns.
      for (const char* odd : {"000000", "000007"}) {
        std::string layers;
        for (const char* own : {"000000", odd, "000000", "000000"})
          layers += fmt::format("{{name: l{2}, forward: 100 {0}, backward: 200.{1} {0}}}, ", unit,
                                own, layers.size());
        const Sensitivities found = sensitivities(
            predicted(fmt::format("version: 1\nmodel: {{layers: [{}]}}\ncluster: {{devices: "
                                  "4, link: {{latency: 3 us}}}}\n"
                                  "schedule: {{name: 1f1b, micro_batches: {}}}\n",
                                  layers, m)));
        REQUIRE(found.exact);
        for (const Sensitivity& sensitivity : found.all) {
          if (sensitivity.kind == SensitivityKind::backward && sensitivity.every)
            CHECK(sensitivity.derivative == close_to(m + 3, m == 400 ? 1e-2 : 1e-3));
        }
      }
    }
  }
}

TEST_CASE("in a long run, too, it is known how far a lever goes") {
  // Times of which steps of some nanoseconds, the finest that fit, miss a part.
  Case c;
  for (std::int64_t s = 0; s < 8; ++s) {
    c.forward.push_back(44'108'903 + (s == 1 ? 9'400'001 : 7 * s));
    c.backward.push_back(88'217'807 + (s == 1 ? 8'823'001 : 11 * s));
  }
  c.rest = "schedule: {name: 1f1b, micro_batches: 32}\ncluster: {devices: 8}\n";
  const Outcome outcome = predicted(c.text());
  REQUIRE(outcome.iteration_time_s > 4);
  const Sensitivities found = sensitivities(outcome);
  REQUIRE(found.exact);
  for (const Sensitivity& sensitivity : found.all) {
    if (sensitivity.gain_s <= 0 || !sensitivity.every) continue;
    CAPTURE(static_cast<int>(sensitivity.kind));
    REQUIRE(sensitivity.until);
    REQUIRE(*sensitivity.until > 0.5);
    // The line holds up to there, and no further.
    const auto scaled = [&](double share) {
      Case shorter = c;
      auto& times =
          sensitivity.kind == SensitivityKind::forward ? shorter.forward : shorter.backward;
      for (std::int64_t& time : times) time = std::llround((1 - share) * double(time));
      return outcome.iteration_time_s - predicted(shorter.text()).iteration_time_s;
    };
    const double there = *sensitivity.until;
    CHECK(scaled(there) == close_to(there * sensitivity.gain_s, 1e-6));
    if (there < 0.97)
      CHECK(scaled(there + 0.02) < (there + 0.02) * sensitivity.gain_s * (1 - 1e-5));
  }
}

TEST_CASE("the links of all copies are one lever, which gains no more than every link") {
  const auto of = [](const char* inner, const char* outer) {
    return sensitivities(predicted(
        std::string("version: 1\nmodel: {uniform: {layers: 4, forward: 10 ms, backward: 20 ms, "
                    "output: 10 MB, parameters: 1 MB}}\ncluster: {levels: [{size: 4, ") +
        inner + "}, {size: 4, " + outer +
        "}]}\nplan: {stages: 4, data_parallel: 4}\nschedule: {name: 1f1b, micro_batches: 32}\n"));
  };
  for (const char* outer : {"bandwidth: 4 GB/s", "latency: 2 ms"}) {
    const Sensitivities found = of("bandwidth: 450 GB/s", outer);
    const bool shares = std::string(outer).starts_with("bandwidth");
    CHECK(found.exact == !shares);
    double every = 0;
    int pipelines = 0;
    int rings = 0;
    for (const Sensitivity& sensitivity : found.all) {
      const SensitivityKind kind = shares ? SensitivityKind::bandwidth : SensitivityKind::latency;
      if (sensitivity.kind != kind) continue;
      if (sensitivity.every) every = sensitivity.gain_s;
      if (sensitivity.every || sensitivity.links == 1) continue;
      CHECK(sensitivity.links == 4);
      pipelines += sensitivity.from.value / 4 != sensitivity.to.value / 4 ? 1 : 0;
      rings += sensitivity.from.value / 4 == sensitivity.to.value / 4 ? 1 : 0;
    }
    CHECK(every > 0);
    CHECK(pipelines == 6);  // three boundaries, two ways
    CHECK(rings == (shares ? 4 : 0));
    for (const Sensitivity& sensitivity : found.all) {
      const bool is_link = sensitivity.kind == SensitivityKind::bandwidth ||
                           sensitivity.kind == SensitivityKind::latency;
      if (is_link && (shares == (sensitivity.kind == SensitivityKind::bandwidth)))
        CHECK(sensitivity.gain_s <= every * (1 + 1e-12));
    }
  }
}

TEST_CASE("on shared cards a step that parts two transfers is not taken for what it is worth") {
  // 1 % less of B of stage 5 saves 1.9 ms here, as much as 96.9 of the 16 that there are.
  const auto scenario = read_scenario("examples/two-servers.yaml", {});
  REQUIRE(scenario);
  const auto outcome = predict(*scenario);
  REQUIRE(outcome);
  const Sensitivities found = sensitivities(*outcome);
  REQUIRE(!found.exact);
  for (const Sensitivity& sensitivity : found.all) {
    const bool is_op = sensitivity.kind == SensitivityKind::forward ||
                       sensitivity.kind == SensitivityKind::backward;
    if (is_op && !sensitivity.every)
      CHECK(sensitivity.derivative < 3 * scenario->schedule.micro_batches);
  }
}

}  // namespace
}  // namespace plumbline::test
