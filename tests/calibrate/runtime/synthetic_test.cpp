// The synthetic backend: its random factors, and how long its ops take.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/synthetic.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "calibrate/runtime/clock.h"
#include "tests/calibrate/runtime/synthetic_runs.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

TEST_CASE("synthetic factors have the mean and the deviation that were asked for" *
          doctest::test_suite("measures")) {
  constexpr std::uint32_t iterations = 200;
  constexpr std::uint32_t nodes = 500;
  constexpr double draws = double{iterations} * double{nodes};
  const Subject subject =
      subject_of(uneven("gpipe", "devices: 2", "stages: 2", ", micro_batches: 150"));
  REQUIRE(subject.graph.size() > nodes);
  for (const double spread : {0.05, 0.2, 0.5}) {
    CAPTURE(spread);
    Noise options;
    options.spread = spread;
    double sum = 0, squares = 0;
    const auto workers = synthetic_backend(options)->workers(subject.plan());
    for (std::uint32_t i = 0; i < iterations; ++i) {
      for (std::uint32_t node = 0; node < nodes; ++node) {
        const double factor = noise_factor(options, i, node);
        CHECK(factor > 0);
        sum += factor;
        squares += factor * factor;
        const Duration min = workers.front()->min_time(i, node, std::chrono::seconds(1));
        CHECK(min.count() == std::llround(1e9 * factor));
      }
    }
    const double mean = sum / draws;
    CHECK(std::abs(mean - 1) < 5 * spread / std::sqrt(draws));
    CHECK(std::sqrt(squares / draws - mean * mean) == doctest::Approx(spread).epsilon(0.02));
  }
}

TEST_CASE("synthetic factors depend on the seed, the iteration and the op, and on nothing else" *
          doctest::test_suite("measures")) {
  CHECK(noise_factor({}, 3, 7) == 1);
  Noise options;
  options.spread = 0.2;
  options.seed = 5;
  Noise other = options;
  CHECK(noise_factor(options, 3, 7) == noise_factor(other, 3, 7));
  CHECK(noise_factor(options, 3, 7) != noise_factor(options, 3, 8));
  CHECK(noise_factor(options, 3, 7) != noise_factor(options, 4, 7));
  other.seed = 6;
  CHECK(noise_factor(options, 3, 7) != noise_factor(other, 3, 7));
}

TEST_CASE("stragglers take as much longer, and are as frequent, as they are told" *
          doctest::test_suite("measures")) {
  Noise options;
  options.stragglers.probability = 0.1;
  options.stragglers.factor = 3;
  std::uint32_t straggling = 0;
  constexpr std::uint32_t draws = 100'000;
  for (std::uint32_t node = 0; node < draws; ++node) {
    const double factor = noise_factor(options, node % 10, node);
    CHECK((factor == 1 || factor == 3));
    straggling += factor == 3 ? 1 : 0;
  }
  CHECK(straggling == doctest::Approx(0.1 * draws).epsilon(0.05));
}

TEST_CASE("a measured op takes its time times its factor" * doctest::test_suite("measures")) {
  const Subject subject =
      subject_of(uneven("1f1b", "devices: 3", "stages: 3", ", micro_batches: 4"));
  Noise options;
  options.spread = 0.3;
  options.seed = 11;
  const RunRecord record = record_of(subject, options, few(3));
  for (std::uint32_t i = 0; i < record.iterations.size(); ++i) {
    for (std::uint32_t node = 0; node < subject.graph.size(); ++node) {
      if (!is_compute(subject.graph.activities[node].kind)) continue;
      const Span& span = record.iterations[i].trace.spans[node];
      const auto min = std::llround(static_cast<double>(subject.graph.cost(node).hold.count()) *
                                    noise_factor(options, i, node));
      CHECK((span.end - span.begin).count() >= min);
      if (record.iterations[i].clean && !kSanitized)
        CHECK((span.end - span.begin).count() <= min + 200'000);
    }
  }
}

TEST_CASE("a stopped op returns early" * doctest::test_suite("measures")) {
  const Subject subject = subject_of(
      "version: 1\nmodel:\n  uniform: {layers: 1, forward: 100 s, backward: 100 s}\n"
      "cluster: {devices: 1}\nschedule: {name: gpipe, micro_batches: 1}\n");
  const auto workers = synthetic_backend({})->workers(subject.plan());
  const auto& worker = workers.front();
  std::atomic<bool> stop{false};
  Task task;
  task.begin = now();
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    stop = true;
  });
  const Work work = worker->run(task, stop);
  stopper.join();
  CHECK(work.end - task.begin >= 30'000'000);
  CHECK(work.end - task.begin < 1'000'000'000);
}

}  // namespace
}  // namespace plumbline::test
