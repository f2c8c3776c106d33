// Real runs on the synthetic backend take as long as predicted.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "calibrate/runtime/real_run.h"
#include "sim/planning/predict.h"
#include "tests/calibrate/runtime/synthetic_runs.h"
#include "tests/support/load.h"
#include "tests/support/rules.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

/// One point of the matrix.
struct Point {
  std::string what;
  Scenario scenario;
  /// The relative excess of the predicted time over the real time, for the nearest run.
  double error = INFINITY;
};

constexpr double kLargestError = 0.05;

bool is_right(const Point& point) { return std::abs(point.error) <= kLargestError; }

Point point_of(const std::string& what, const std::string& text) {
  const auto scenario = parse_scenario(text_source("matrix.yaml", text), {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  return {.what = what, .scenario = *scenario};
}

/// Runs `point` once more.
void attempt(Point& point) {
  const auto prediction = predict(point.scenario);
  REQUIRE(prediction);
  const auto backend = synthetic_backend({});
  RunOptions options;
  options.warm_up = 0;
  options.iterations = 2;
  options.max_iterations = 3;
  const auto real = run_scenario(point.scenario, *backend, options);
  REQUIRE_MESSAGE(real, (real ? "" : to_text(real.problems())));
  const double error = prediction->iteration_time_s / real->time_s.median - 1;
  if (std::abs(error) < std::abs(point.error)) point.error = error;
}

std::vector<Point> matrix() {
  std::vector<Point> points;
  for (const ScheduleRule& rule : window_rules()) {
    for (const int devices : {2, 4, 8}) {
      for (const int micro_batches : {2, 4, 8, 16}) {
        if (kSanitized && micro_batches > 2) continue;
        const bool whole = rule.whole_model;
        const std::string text = fmt::format(
            "version: 1\nmodel:\n  uniform: {{layers: {}, forward: 1 ms, backward: 1 ms, "
            "output: 1 MiB, activation: 1 MiB, parameters: 1 MiB}}\n"
            "cluster: {{devices: {}, link: {{latency: 20 us, bandwidth: 20 GB/s}}}}\n{}"
            "schedule: {{name: {}, micro_batches: {}}}\n",
            whole ? 1 : devices, devices,
            whole ? "" : fmt::format("plan: {{stages: {}}}\n", devices), rule.name, micro_batches);
        points.push_back(point_of(
            fmt::format("{}, {} devices, {} micro-batches", rule.name, devices, micro_batches),
            text));
      }
    }
    if (rule.whole_model) continue;
    for (const std::string slices : {"3", "[1, 2, 3]"}) {
      if (!rule.takes_slices) continue;
      const std::string text = fmt::format(
          "version: 1\nmodel:\n  uniform: {{layers: 4, forward: 3 ms, backward: 3 ms, output: 3 "
          "MiB, activation: 3 MiB, parameters: 1 MiB}}\n"
          "cluster: {{devices: 4, link: {{latency: 20 us, bandwidth: 20 GB/s}}}}\n"
          "schedule: {{name: {}, micro_batches: 2, slices: {}}}\n",
          rule.name, slices);
      points.push_back(point_of(fmt::format("{}, slices {}", rule.name, slices), text));
    }
    // Replicas and copies.
    for (const std::string plan : {"stages: 2, replicas: [2, 2]", "stages: 2, data_parallel: 2",
                                   "stages: 4, data_parallel: 2"}) {
      if (rule.asynchronous && plan.find("data_parallel") != std::string::npos) continue;
      const std::string text = fmt::format(
          "version: 1\nmodel:\n  uniform: {{layers: 4, forward: 1 ms, backward: 1 ms, output: 1 "
          "MiB, activation: 1 MiB, parameters: 4 MiB}}\n"
          "cluster: {{devices: 8, link: {{latency: 20 us, bandwidth: 20 GB/s}}}}\n"
          "plan: {{{}}}\nschedule: {{name: {}, micro_batches: 4}}\n",
          plan, rule.name);
      points.push_back(point_of(fmt::format("{}, {}", rule.name, plan), text));
    }
  }
  return points;
}

TEST_CASE("waiters do not take the cores from the ops that they wait for" *
          doctest::test_suite("measures")) {
  // More threads than cores, and ops about as long as the time for which a waiter does not sleep.
  for (const int microseconds : {70, 85, 90, 95, 100, 110, 130, 150, 170}) {
    CAPTURE(microseconds);
    const std::string text = fmt::format(
        "version: 1\nmodel:\n  uniform: {{layers: 5, forward: {0} us, backward: {0} us, output: 4 "
        "KiB}}\ncluster: {{devices: 5, link: {{latency: 12 us}}}}\nplan: {{stages: 5}}\n"
        "schedule: {{name: naive, micro_batches: 4}}\n",
        microseconds);
    const auto scenario = parse_scenario(text_source("waiters.yaml", text), {});
    REQUIRE(scenario);
    const auto prediction = predict(*scenario);
    REQUIRE(prediction);
    // Other work on the machine does that too, but not each time.
    double best = INFINITY;
    for (int attempt = 0; attempt < 20 && best >= 2 * prediction->iteration_time_s; ++attempt) {
      const auto real = run_scenario(*scenario, *synthetic_backend({}), few(5));
      REQUIRE(real);
      best = std::min(best, *std::min_element(real->times_s.begin(), real->times_s.end()));
    }
    if (kSanitized) continue;
    if (best >= 2 * prediction->iteration_time_s && has_other_work()) {
      MESSAGE("inconclusive: the machine has other work");
      continue;
    }
    CHECK(best < 2 * prediction->iteration_time_s);
  }
}

TEST_CASE("devices that wait slow each other down as predicted" * doctest::test_suite("measures")) {
  for (const char* schedule : {"naive", "gpipe", "1f1b"}) {
    CAPTURE(schedule);
    auto scenario =
        parse_scenario(text_source("neighbours.yaml",
                                   "version: 1\nmodel:\n  layers:\n"
                                   "    - {name: a, kind: linear, forward: 2 ms, backward: 4 ms}\n"
                                   "    - {name: b, kind: linear, forward: 2 ms, backward: 4 ms}\n"
                                   "cluster: {devices: 2}\nschedule: {name: " +
                                       std::string(schedule) + ", micro_batches: 3}\n"),
                       {});
    REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
    const auto apart = predict(*scenario);
    scenario->model.edit().profile.slowdown["linear"] = {0.8, 1.4};
    const auto prediction = predict(*scenario);
    REQUIRE(apart);
    REQUIRE(prediction);
    CHECK(std::abs(prediction->iteration_time_s / apart->iteration_time_s - 1) > 0.04);
    double best = INFINITY;
    for (int attempt = 0; attempt < 5 && best > 1.03 * prediction->iteration_time_s; ++attempt) {
      const auto real = run_scenario(*scenario, *synthetic_backend({}), few(5));
      REQUIRE(real);
      best = std::min(best, *std::min_element(real->times_s.begin(), real->times_s.end()));
    }
    CHECK(best > 0.99 * prediction->iteration_time_s);
    if (!kSanitized && best > 1.03 * prediction->iteration_time_s)
      MESSAGE(fmt::format("inconclusive: {:.3f} of what was predicted",
                          best / prediction->iteration_time_s));
  }
}

TEST_CASE("runs of every schedule take as long as predicted" * doctest::test_suite("measures")) {
  std::vector<Point> points = matrix();
  // Other work on the machine spoils runs; a prediction that is wrong is wrong in each round.
  const int rounds = kSanitized ? 1 : 8;
  for (int round = 0; round < rounds; ++round) {
    for (Point& point : points) {
      if (!is_right(point)) attempt(point);
    }
  }
  if (kSanitized) return;
  const auto wrong = std::count_if(points.begin(), points.end(), std::not_fn(is_right));
  const bool spoilt = wrong > 0 && has_other_work();
  std::vector<double> errors;
  errors.reserve(points.size());
  for (const Point& point : points) {
    errors.push_back(std::abs(point.error));
    const std::string text = fmt::format("{}: error {:.2f} %", point.what, 100 * point.error);
    CAPTURE(text);
    if (spoilt && !is_right(point)) {
      MESSAGE("inconclusive, the machine has other work: " << text);
    } else {
      CHECK(is_right(point));
    }
  }
  std::sort(errors.begin(), errors.end());
  MESSAGE(fmt::format("{} points, {} wrong; error: median {:.3f} %, worst {:.3f} %", points.size(),
                      wrong, 100 * errors[errors.size() / 2], 100 * errors.back()));
}

}  // namespace
}  // namespace plumbline::test
