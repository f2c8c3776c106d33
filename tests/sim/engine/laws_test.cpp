// Laws that hold for every run: two evaluations agree, time adds up, nothing beats its critical
// path.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "schedules/order/replay.h"
#include "tests/support/random_pipeline.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

using std::chrono::nanoseconds;

TEST_CASE("events and the longest path give the same trace to the tick") {
  for (std::uint64_t seed = 1; seed <= trials(3000); ++seed) {
    const OpGraph graph = graph_of(random_pipeline(seed));
    const Trace by_events = simulate(graph);
    const Trace by_path = longest_path(graph);
    CAPTURE(seed);
    CHECK(by_events == by_path);
    CHECK(longest_path_end(graph).time_since_epoch() == makespan(graph, by_events));
  }
}

TEST_CASE(
    "an activity starts when the last thing it waits for ends, and released_by names that thing") {
  for (std::uint64_t seed = 1; seed <= trials(500); ++seed) {
    const OpGraph graph = graph_of(random_pipeline(seed));
    const Trace trace = simulate(graph);
    CAPTURE(seed);
    for (std::uint32_t i = 0; i < graph.size(); ++i) {
      const Span& span = trace.spans[i];
      if (span.released_by == kNobody) {
        CHECK(span.begin == SimTime{});
        continue;
      }
      const SimTime released = trace.spans[span.released_by].end;
      const bool from_channel = graph.nodes[span.released_by].resource == graph.nodes[i].resource;
      CHECK(span.begin ==
            (from_channel ? released - graph.cost(span.released_by).latency : released));
    }
  }
}

TEST_CASE("busy and idle add up to the makespan on every device, and idle to its causes") {
  for (std::uint64_t seed = 1; seed <= trials(1000); ++seed) {
    const TestPipeline t = random_pipeline(seed);
    const OpGraph graph = graph_of(t);
    const Metrics metrics = measure(graph, simulate(graph), steady_window(replicas_of(t)));
    CAPTURE(seed);
    Duration busy{};
    for (const DeviceMetrics& device : metrics.devices) {
      CHECK(device.busy + device.idle == metrics.makespan);
      CHECK(device.idle_by_cause.sum() == device.idle);
      CHECK(device.idle >= Duration{});
      CHECK(device.span <= metrics.makespan);
      CHECK(metrics.makespan >= device.busy);
      busy += device.busy;
    }
    CHECK(metrics.operations ==
          2 * static_cast<std::int64_t>(t.forward.size()) * graph.micro_batches * t.options.copies);
    CHECK(metrics.bubble_fraction() >= 0);
    CHECK((metrics.makespan.count() == 0 || metrics.bubble_fraction() < 1));
  }
}

TEST_CASE("doubling every duration doubles the makespan exactly") {
  for (std::uint64_t seed = 1; seed <= trials(300); ++seed) {
    OpGraph graph = graph_of(random_pipeline(seed));
    const Duration once = makespan(graph, simulate(graph));
    for (Cost& cost : graph.costs) {
      cost.hold *= 2;
      cost.latency *= 2;
      cost.lead *= 2;
    }
    CHECK(makespan(graph, simulate(graph)) == 2 * once);
  }
}

TEST_CASE("a synchronous run of k mini-batches takes k times one") {
  for (std::uint64_t seed = 1; seed <= trials(300); ++seed) {
    TestPipeline t = random_pipeline(seed);
    if (t.schedule == "pipedream") continue;
    t.options.mini_batches = 1;
    const Duration once = makespan_of(t);
    t.options.mini_batches = 4;
    CHECK(makespan_of(t) == 4 * once);
  }
}

TEST_CASE(
    "the makespan is at least every device's work and every micro-batch's way through the "
    "pipeline") {
  for (std::uint64_t seed = 1; seed <= trials(300); ++seed) {
    const TestPipeline t = random_pipeline(seed);
    Duration way{};
    for (std::size_t s = 0; s < t.forward.size(); ++s) way += t.forward[s] + t.backward[s];
    CHECK(makespan_of(t) >= way);
  }
}

TEST_CASE("the same graph gives the same trace twice") {
  const OpGraph graph = graph_of(random_pipeline(77));
  CHECK(simulate(graph) == simulate(graph));
}

TEST_CASE(
    "every generated schedule is complete, and its lists are what its total order projects to") {
  for (const ScheduleRule& rule : window_rules()) {
    for (std::uint32_t p = 1; p <= 6; ++p) {
      for (std::uint32_t m = 1; m <= 9; ++m) {
        TestPipeline t = equal_pipeline(p, nanoseconds(1), nanoseconds(1));
        t.schedule = rule.name;
        t.micro_batches = m;
        const Schedule schedule = schedule_of(t);
        CAPTURE(rule.name);
        CAPTURE(p);
        CAPTURE(m);
        CHECK(schedule.issue_order.size() == std::size_t{2} * p * m);
        const OpLists lists = schedule.lists();
        CHECK(replay(schedule.shape, lists).complete);
        const auto window = windows(rule, schedule.shape, std::nullopt);
        for (std::uint32_t s = 0; s < p; ++s) CHECK(lists[s] == window_list({s, 1}, window[s], m));
      }
    }
  }
}

}  // namespace
}  // namespace plumbline::test
