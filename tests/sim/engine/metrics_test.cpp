// Idle time by cause, spans and stalls, by hand.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/metrics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <vector>

#include "tests/support/builders.h"
#include "tests/support/close_to.h"
#include "tests/support/random_pipeline.h"
#include "tests/support/trials.h"

namespace plumbline {
namespace {

using std::chrono::nanoseconds;

Metrics metrics_of(const test::TestPipeline& t) {
  const OpGraph graph = test::graph_of(t);
  return measure(graph, simulate(graph), steady_window(replicas_of(t)));
}

TEST_CASE("1F1B, 4 stages, 8 micro-batches, F 1 and B 2: the numbers of the contract") {
  test::TestPipeline t = test::equal_pipeline(4, nanoseconds(1'000'000), nanoseconds(2'000'000));
  t.schedule = "1f1b";
  t.micro_batches = 8;
  const Metrics m = metrics_of(t);
  CHECK(m.makespan == nanoseconds(33'000'000));
  CHECK(m.operations == 64);
  CHECK(m.transfers == 48);
  CHECK(m.devices[0].busy == nanoseconds(24'000'000));
  CHECK(m.devices[0].idle_by_cause.dependency == nanoseconds(9'000'000));
  CHECK(m.devices[0].idle_by_cause.sum() == nanoseconds(9'000'000));
  CHECK(m.devices[3].idle_by_cause.fill == nanoseconds(3'000'000));
  CHECK(m.devices[3].idle_by_cause.drain == nanoseconds(6'000'000));
  CHECK(m.devices[3].span == nanoseconds(24'000'000));
  CHECK(m.bubble_fraction() == test::close_to(3.0 / 11.0));
  CHECK(m.bubble_overhead() == test::close_to(3.0 / 8.0));
}

TEST_CASE("a gap is dependency until the producer ends and transfer until the data is there") {
  // One micro-batch over two stages: device 0 waits from 10 for the gradient: F and B of stage 1
  // run from 15 to 45 (link 5), the gradient arrives at 50.
  test::TestPipeline t = test::equal_pipeline(2, nanoseconds(10), nanoseconds(20));
  t.schedule = "gpipe";
  t.link.latency = nanoseconds(5);
  const Metrics m = metrics_of(t);
  CHECK(m.makespan == nanoseconds(70));
  CHECK(m.devices[0].idle_by_cause.dependency == nanoseconds(35));
  CHECK(m.devices[0].idle_by_cause.transfer == nanoseconds(5));
  CHECK(m.devices[1].idle_by_cause.fill == nanoseconds(15));
  CHECK(m.devices[1].idle_by_cause.drain == nanoseconds(25));
  CHECK(m.exposed == nanoseconds(5));
  CHECK(m.communication_stall_fraction() == test::close_to(5.0 / 140.0));
}

TEST_CASE("updates and overhead per iteration are told apart") {
  test::TestPipeline t = test::equal_pipeline(2, nanoseconds(10), nanoseconds(20));
  t.update = nanoseconds(4);
  t.options.overheads.per_iteration = nanoseconds(7);
  t.options.overheads.per_op = nanoseconds(1);
  t.options.mini_batches = 2;
  const Metrics m = metrics_of(t);
  CHECK(m.makespan == 2 * nanoseconds(2 * (11 + 21) + 5 + 7));
  CHECK(m.devices[0].idle_by_cause.overhead == nanoseconds(14));
  CHECK(m.devices[0].idle_by_cause.update == nanoseconds(0));
  CHECK(m.devices[0].busy == 2 * nanoseconds(11 + 21 + 5));
}

TEST_CASE("a stage with a longer update keeps the others waiting") {
  // Two stages share device 0, so it updates twice.
  test::TestPipeline t = test::equal_pipeline(3, nanoseconds(10), nanoseconds(20));
  t.update = nanoseconds(4);
  t.devices = {{0}, {0}, {1}};
  const Metrics m = metrics_of(t);
  CHECK(m.devices[1].idle_by_cause.update == nanoseconds(4));
  CHECK(m.devices[0].idle_by_cause.update == nanoseconds(0));
}

TEST_CASE(
    "a blocking transfer is busy time on both ends, and waiting for the partner is rendezvous") {
  test::TestPipeline t = test::equal_pipeline(2, nanoseconds(10), nanoseconds(20));
  t.schedule = "gpipe";
  t.micro_batches = 2;
  t.options.blocking = true;
  t.link.latency = nanoseconds(5);
  // Device 0: F0 0-10, send 10-15, F1 15-25, send when device 1 has done F0 (15-25): 25-30.
  // Device 1: F1 30-40, B0 40-60; device 0 waits from 30 to 60 for it, receives 60-65, B0 65-85;
  // device 1: B1 65-85, send 85-90; device 0: B1 90-110.
  const Metrics m = metrics_of(t);
  CHECK(m.makespan == nanoseconds(110));
  CHECK(m.devices[0].busy == nanoseconds(2 * 30 + 4 * 5));
  CHECK(m.devices[0].idle_by_cause.dependency == nanoseconds(30));
  CHECK(m.devices[1].idle_by_cause.fill == nanoseconds(10));
  CHECK(m.devices[1].idle_by_cause.drain == nanoseconds(20));
  CHECK(m.exposed == nanoseconds(2 * 4 * 5));
}

TEST_CASE("an asynchronous run needs 2N + 5L micro-batches") {
  CHECK(steady_window({1, 1, 1, 1}).min_run() == 13);
  CHECK(steady_window({2, 3}).min_run() == 40);
}

TEST_CASE("times of all devices in one pass are those of each device's nodes and gaps") {
  std::map<IdleCause, std::uint64_t> seen;
  for (std::uint64_t seed = 1; seed <= test::trials(400); ++seed) {
    CAPTURE(seed);
    test::TestPipeline t = test::random_pipeline(seed);
    const bool without_flush = seed % 5 == 0 && t.schedule != "pipedream";
    if (without_flush) {
      t.options.flushes = false;
      t.options.mini_batches = 1;
    }
    const OpGraph graph = test::graph_of(t);
    const Trace trace = simulate(graph);
    SimTime end;
    for (const Span& span : trace.spans) end = std::max(end, span.end);
    const auto nodes = nodes_by_slot(graph);
    const std::vector<StreamTimes> times = stream_times(graph, trace, end);
    REQUIRE(times.size() == nodes.size());
    for (std::size_t slot = 0; slot < nodes.size(); ++slot) {
      Duration busy{};
      for (const std::uint32_t node : nodes[slot]) busy += held(graph, trace, node);
      CHECK(times[slot].busy == busy);
      if (!nodes[slot].empty()) {
        CHECK(times[slot].first == trace.spans[nodes[slot].front()].begin);
        CHECK(times[slot].last_node == nodes[slot].back());
      }
      std::array<Duration, std::size(kIdleCauses)> idle{};
      for (const IdleGap& gap : idle_gaps(graph, trace, nodes[slot], end)) {
        idle[static_cast<std::size_t>(gap.cause)] += gap.end - gap.begin;
        ++seen[gap.cause];
      }
      CHECK(times[slot].idle == idle);
    }
  }
  CHECK(seen.size() == std::size(kIdleCauses));
}

}  // namespace
}  // namespace plumbline
