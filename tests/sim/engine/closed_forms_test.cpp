// Closed forms that hold to the tick over all small shapes.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "schedules/generators/bubble_formulas.h"
#include "tests/support/builders.h"
#include "tests/support/close_to.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

using std::chrono::nanoseconds;
constexpr std::uint32_t kMaxStages = 8;
constexpr std::uint32_t kMaxMicroBatches = 24;

PipelineTimes times_of(const TestPipeline& p) {
  return {p.forward, p.backward, std::vector<Duration>(p.forward.size() - 1, p.link.latency),
          p.micro_batches};
}

/// Runs `check(pipeline)` for every p, m and a few pairs of F and B.
template <class Check>
void over_small_shapes(const std::string& schedule, Check&& check) {
  for (std::uint32_t p = 1; p <= kMaxStages; ++p) {
    for (std::uint32_t m = 1; m <= kMaxMicroBatches; ++m) {
      for (const std::pair<int, int>& times :
           {std::pair{10, 20}, std::pair{7, 7}, std::pair{9, 4}, std::pair{0, 3}}) {
        TestPipeline pipeline =
            equal_pipeline(p, nanoseconds(times.first), nanoseconds(times.second));
        pipeline.micro_batches = m;
        pipeline.schedule = schedule;
        CAPTURE(p);
        CAPTURE(m);
        INFO("F ", times.first, " ns, B ", times.second, " ns");
        check(pipeline);
      }
    }
  }
}

TEST_CASE("GPipe, 1F1B and eager 1F1B with equal stages and free links take (m+p-1)(f+b)") {
  for (const char* schedule : {"gpipe", "1f1b", "eager-1f1b"}) {
    CAPTURE(schedule);
    over_small_shapes(schedule, [](const TestPipeline& t) {
      const auto p = static_cast<std::int64_t>(t.forward.size());
      CHECK(makespan_of(t) == (t.micro_batches + p - 1) * (t.forward[0] + t.backward[0]));
    });
  }
}

TEST_CASE("naive takes m p (f+b), delayed backward ((m-1)p+1)(f+b) from two micro-batches on") {
  over_small_shapes("naive", [](const TestPipeline& t) {
    const auto p = static_cast<std::int64_t>(t.forward.size());
    CHECK(makespan_of(t) == t.micro_batches * p * (t.forward[0] + t.backward[0]));
  });
  over_small_shapes("delayed-backward", [](const TestPipeline& t) {
    const auto p = static_cast<std::int64_t>(t.forward.size());
    const std::int64_t m = t.micro_batches;
    const Duration pair = t.forward[0] + t.backward[0];
    CHECK(makespan_of(t) == (m == 1 ? p * pair : ((m - 1) * p + 1) * pair));
  });
}

TEST_CASE("delayed backward is GPipe with two micro-batches on two stages and slower with four") {
  TestPipeline t = equal_pipeline(2, nanoseconds(1), nanoseconds(2));
  for (const auto& [m, delayed, gpipe] :
       {std::tuple{2U, 9, 9}, std::tuple{4U, 21, 15}, std::tuple{8U, 45, 27}}) {
    t.micro_batches = m;
    t.schedule = "delayed-backward";
    CHECK(makespan_of(t) == nanoseconds(delayed));
    t.schedule = "gpipe";
    CHECK(makespan_of(t) == nanoseconds(gpipe));
  }
}

TEST_CASE("GPipe with latency c pays 2c(p-1) once") {
  over_small_shapes("gpipe", [](TestPipeline t) {
    const auto p = static_cast<std::int64_t>(t.forward.size());
    for (const int c : {1, 5, 40}) {
      t.link.latency = nanoseconds(c);
      CHECK(makespan_of(t) == (t.micro_batches + p - 1) * (t.forward[0] + t.backward[0]) +
                                  2 * (p - 1) * t.link.latency);
    }
  });
}

TEST_CASE("1F1B with latency c pays 2c((p-1)m/p + p-2) where m is a multiple of p") {
  over_small_shapes("1f1b", [](TestPipeline t) {
    const auto p = static_cast<std::int64_t>(t.forward.size());
    const std::int64_t m = t.micro_batches;
    if (p < 2 || m % p != 0) return;
    for (const int c : {1, 5, 40}) {
      t.link.latency = nanoseconds(c);
      CHECK(makespan_of(t) == (m + p - 1) * (t.forward[0] + t.backward[0]) +
                                  2 * ((p - 1) * m / p + p - 2) * t.link.latency);
    }
  });
}

TEST_CASE("eager 1F1B with latency c pays 2c(p-1) while 2c <= f+b") {
  over_small_shapes("eager-1f1b", [](TestPipeline t) {
    const auto p = static_cast<std::int64_t>(t.forward.size());
    const Duration pair = t.forward[0] + t.backward[0];
    for (Duration c{1}; 2 * c <= pair; c += nanoseconds(3)) {
      t.link.latency = c;
      CHECK(makespan_of(t) == (t.micro_batches + p - 1) * pair + 2 * (p - 1) * c);
    }
  });
}

TEST_CASE("GPipe with uneven stages takes sum f + sum b + (m-1)(max f + max b)") {
  for (std::uint64_t seed = 1; seed <= trials(600); ++seed) {
    Dice dice(seed);
    TestPipeline t = equal_pipeline(static_cast<std::uint32_t>(dice.roll(1, 7)), {}, {});
    Duration sum{}, max_forward{}, max_backward{};
    for (std::size_t s = 0; s < t.forward.size(); ++s) {
      t.forward[s] = nanoseconds(dice.roll(1, 30));
      t.backward[s] = nanoseconds(dice.roll(1, 60));
      sum += t.forward[s] + t.backward[s];
      max_forward = std::max(max_forward, t.forward[s]);
      max_backward = std::max(max_backward, t.backward[s]);
    }
    t.micro_batches = static_cast<std::uint32_t>(dice.roll(1, 12));
    CAPTURE(seed);
    CHECK(makespan_of(t) == sum + (t.micro_batches - 1) * (max_forward + max_backward));
  }
}

TEST_CASE(
    "the window law: a run of j neighbouring pairs with equal windows gives the period "
    "(1+j)(f+b)") {
  // Windows min(K, p-s): the first p-K+1 positions share the window K, so the steady period is
  // (p-K+1)(f+b).
  for (std::uint32_t p = 2; p <= 6; ++p) {
    for (std::uint32_t k = 1; k <= p; ++k) {
      TestPipeline t = equal_pipeline(p, nanoseconds(10), nanoseconds(20));
      t.schedule = "1f1b";
      for (std::uint32_t s = 0; s < p; ++s) t.windows.push_back(std::min(k, p - s));
      t.micro_batches = 40 * k;
      const Duration shorter = makespan_of(t);
      t.micro_batches += k * (p - k + 1);
      CAPTURE(p);
      CAPTURE(k);
      // Measured as the difference of two runs, k (p-k+1) micro-batches apart.
      CHECK((makespan_of(t) - shorter) ==
            std::int64_t{k} * (p - k + 1) * (p - k + 1) * nanoseconds(30));
    }
  }
}

TEST_CASE(
    "a constant window on all positions gives no overlap: the period is p(f+b) for any window") {
  for (std::uint32_t p = 2; p <= 5; ++p) {
    for (std::uint32_t k = 1; k <= 4; ++k) {
      TestPipeline t = equal_pipeline(p, nanoseconds(10), nanoseconds(20));
      t.schedule = "1f1b";
      t.windows.assign(p, k);
      t.micro_batches = 50;
      const Duration shorter = makespan_of(t);
      ++t.micro_batches;
      CHECK(makespan_of(t) - shorter == std::int64_t{p} * nanoseconds(30));
    }
  }
}

TEST_CASE("closed_form answers exactly where it claims to hold") {
  std::uint64_t answered = 0;
  for (std::uint64_t seed = 1; seed <= trials(2000); ++seed) {
    Dice dice(seed);
    TestPipeline t = equal_pipeline(static_cast<std::uint32_t>(dice.roll(1, 6)),
                                    nanoseconds(dice.roll(1, 9)), nanoseconds(dice.roll(1, 9)));
    if (dice.roll(0, 2) == 0) t.forward[0] += nanoseconds(dice.roll(0, 4));
    t.micro_batches = static_cast<std::uint32_t>(dice.roll(1, 12));
    t.link.latency = nanoseconds(dice.roll(0, 1) * dice.roll(0, 6));
    const char* names[] = {"naive", "gpipe", "1f1b", "eager-1f1b", "delayed-backward"};
    t.schedule = names[dice.roll(0, 4)];
    const auto form = closed_form(t.schedule, times_of(t));
    if (!form) continue;
    ++answered;
    CAPTURE(seed);
    CAPTURE(t.schedule);
    CAPTURE(form->text);
    const OpGraph graph = graph_of(t);
    const Trace trace = simulate(graph);
    CHECK(makespan(graph, trace) == form->makespan);
    const Metrics metrics = measure(graph, trace, steady_window(replicas_of(t)));
    CHECK(metrics.bubble_fraction() == close_to(form->bubble_fraction, 1e-12));
    CHECK(metrics.bubble_overhead() == close_to(form->bubble_overhead, 1e-12));
  }
  CHECK(answered > trials(1000));
}

TEST_CASE(
    "no closed form is claimed for 1F1B with latency and m no multiple of p, nor with uneven "
    "stages") {
  TestPipeline t = equal_pipeline(4, nanoseconds(1), nanoseconds(2));
  t.micro_batches = 6;
  t.link.latency = nanoseconds(1);
  CHECK(!closed_form("1f1b", times_of(t)));
  t.link.latency = {};
  t.forward[2] = nanoseconds(2);
  CHECK(!closed_form("1f1b", times_of(t)));
  CHECK(!closed_form("pipedream", times_of(t)));
}

TEST_CASE(
    "blocking transfers: GPipe and 1F1B with F 1, B 2, transfers of 0.25, eight micro-batches") {
  for (const auto& [schedule, stages, end] :
       {std::tuple{"gpipe", 2U, 310}, std::tuple{"gpipe", 4U, 415}, std::tuple{"1f1b", 2U, 310},
        std::tuple{"1f1b", 4U, 410}}) {
    TestPipeline t = equal_pipeline(stages, nanoseconds(10), nanoseconds(20));
    t.schedule = schedule;
    t.micro_batches = 8;
    t.options.blocking = true;
    // Times are multiples of 0.1, a transfer of 0.25 is 2.5: twice everything.
    for (Duration& f : t.forward) f *= 2;
    for (Duration& b : t.backward) b *= 2;
    t.link.latency = nanoseconds(5);
    INFO(t.schedule, " over ", t.forward.size(), " stages");
    CHECK(makespan_of(t) == nanoseconds(2 * end));
  }
}

TEST_CASE("the published bubble of 1F1B with 8 stages and 24 micro-batches is 0.2431") {
  // Qi et al. 2024 (zero bubble), table of profiled times: F 18.522, B 18.086 + 9.337,
  // communication 0.601 ms.
  TestPipeline t =
      equal_pipeline(8, std::chrono::microseconds(18522), std::chrono::microseconds(18086 + 9337));
  t.micro_batches = 24;
  t.schedule = "1f1b";
  t.link.latency = std::chrono::microseconds(601);
  const OpGraph graph = graph_of(t);
  const Metrics metrics = measure(graph, simulate(graph), {});
  CHECK(metrics.bubble_fraction() == close_to(0.2431, 0.0002));
}

TEST_CASE("PipeDream without replicas runs at the pace of its slowest stage") {
  for (std::uint64_t seed = 1; seed <= trials(100); ++seed) {
    Dice dice(seed);
    TestPipeline t = equal_pipeline(static_cast<std::uint32_t>(dice.roll(1, 6)), nanoseconds(10),
                                    nanoseconds(20));
    const auto slow =
        static_cast<std::size_t>(dice.roll(0, static_cast<std::int64_t>(t.forward.size()) - 1));
    t.forward[slow] += nanoseconds(dice.roll(0, 30));
    t.update = nanoseconds(dice.roll(0, 3));
    t.schedule = "pipedream";
    const std::vector<std::uint32_t> replicas(t.forward.size(), 1);
    t.micro_batches = steady_window(replicas).min_run() + 40;
    const OpGraph graph = graph_of(t);
    const Metrics metrics = measure(graph, simulate(graph), steady_window(replicas));
    CAPTURE(seed);
    REQUIRE(metrics.steady);
    CHECK(metrics.steady->length == (metrics.steady->last - metrics.steady->first) *
                                        (t.forward[slow] + t.backward[slow] + t.update));
    CHECK(metrics.steady->fill + metrics.steady->length + metrics.steady->drain ==
          metrics.makespan);
  }
}

}  // namespace
}  // namespace plumbline::test
