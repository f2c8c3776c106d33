// All-reduces of replicas and copies: closed forms, the steady period, who waits for whom.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <numeric>

#include "tests/support/builders.h"
#include "tests/support/close_to.h"

namespace plumbline::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

Metrics metrics_of(const TestPipeline& t) {
  const OpGraph graph = graph_of(t);
  return measure(graph, simulate(graph), steady_window(replicas_of(t)));
}

/// 2 (r-1) latencies and 2 (r-1)/r of the bytes at the link's bandwidth.
Duration ring_time(std::int64_t r, Bytes bytes, const Link& link) {
  return 2 * (r - 1) * link.latency +
         (link.bandwidth ? transfer_time(ring_volume(bytes, r), *link.bandwidth) : Duration{});
}

TEST_CASE("a member of a ring sends 2 (r-1)/r of the bytes, rounded up") {
  CHECK(ring_volume({1200}, 1) == Bytes{0});
  CHECK(ring_volume({1200}, 2) == Bytes{1200});
  CHECK(ring_volume({1200}, 4) == Bytes{1800});
  CHECK(ring_volume({10}, 3) == Bytes{14});  // 13.33
  CHECK(ring_volume({0}, 5) == Bytes{0});
  CHECK(ring_volume({1'000'000'000'000'000'000}, 10'000) == Bytes{1'999'800'000'000'000'000});
}

TEST_CASE("data-parallel training in one bucket: forward, backward, ring, update") {
  for (std::uint32_t devices = 1; devices <= 9; ++devices) {
    TestPipeline t = equal_pipeline(1, milliseconds(3), milliseconds(5));
    t.schedule = "data-parallel";
    t.micro_batches = 4;
    t.parameters = {7'000'001};
    t.update = microseconds(70);
    t.link = {microseconds(5), BytesPerSecond{12'000'000'000}};
    t.options.copies = devices;
    CAPTURE(devices);
    CHECK(makespan_of(t) ==
          4 * milliseconds(8) + ring_time(devices, t.parameters, t.link) + microseconds(70));
    t.link.bandwidth.reset();
    CHECK(makespan_of(t) ==
          4 * milliseconds(8) + 2 * (devices - 1) * microseconds(5) + microseconds(70));
    t.parameters = {0};  // nothing is exchanged
    CHECK(makespan_of(t) == 4 * milliseconds(8) + microseconds(70));
    CHECK(metrics_of(t).all_reduces == 0);
    t.parameters = {7'000'001};
    t.link = {};
    CHECK(makespan_of(t) == 4 * milliseconds(8) + microseconds(70));
  }
}

TEST_CASE("an update adds up the gradients of the other devices of its stage") {
  TestPipeline t = equal_pipeline(1, milliseconds(3), milliseconds(5));
  t.schedule = "data-parallel";
  t.parameters = {12'000'000};
  t.update = milliseconds(2);
  t.options.overheads.add_up = BytesPerSecond{6'000'000'000};  // 2 ms for each other device
  for (const std::uint32_t devices : {1U, 2U, 4U}) {
    CAPTURE(devices);
    t.options.copies = devices;
    t.options.sharing.state = Sharded::nothing;
    CHECK(makespan_of(t) == milliseconds(8 + 2 + 2 * (devices - 1)));
    t.options.sharing.state = Sharded::optimizer;  // of its share
    CHECK(makespan_of(t) == milliseconds(8) + milliseconds(2 + 2 * (devices - 1)) / devices);
  }
  // At the pace that neighbours leave it, the update takes half as much longer; sums stay.
  t.options.copies = 2;
  t.options.sharing.state = Sharded::nothing;
  StageCosts costs = costs_of(t);
  costs.slowdowns = {{{3e6, 3e6}, {5e6, 5e6}, {5e6, 5e6}, {5e6, 5e6}, {}, {2e6, 3e6}}};
  const auto graph =
      lower(schedule_of(t), costs, {DeviceId{0}}, flat_cluster(2, {}), t.options, {});
  REQUIRE(graph);
  CHECK(makespan(*graph, simulate(*graph)) == milliseconds(8 + 3 + 2));
}

TEST_CASE("on a levelled cluster data-parallel training reduces level by level") {
  TestPipeline t = equal_pipeline(1, milliseconds(3), milliseconds(5));
  t.schedule = "data-parallel";
  t.parameters = {12'000'000};
  const Link inner{microseconds(5), BytesPerSecond{12'000'000'000}};
  const Link outer{microseconds(30), BytesPerSecond{1'000'000'000}};
  t.cluster = Cluster{{{"server", 4, inner}, {"cluster", 3, outer}}, std::nullopt};
  t.options.copies = 12;
  t.options.hierarchical = true;
  // Scatter and gather: 3 steps of 5 us and 3/4 of 12 MB each; 4 rings of 3 servers share a card:
  // 4 steps of 30 us, 4 x 4/3 x 3 MB.
  const Duration inside = 3 * microseconds(5) + microseconds(750);
  const Duration outside = 4 * microseconds(30) + milliseconds(16);
  CHECK(makespan_of(t) == milliseconds(8) + 2 * inside + outside);
  // A level of size 1 changes nothing.
  t.cluster->levels.push_back({"site", 1, {milliseconds(9), BytesPerSecond{1}}});
  CHECK(makespan_of(t) == milliseconds(8) + 2 * inside + outside);
  // Three levels: what the middle one scatters is a quarter of the gradients.
  t.cluster = Cluster{{{"server", 4, inner}, {"rack", 3, outer}, {"site", 2, outer}}, std::nullopt};
  t.options.copies = 24;
  const Duration rack = 2 * microseconds(30) + milliseconds(4 * 2);  // 4 rings, 2/3 of 3 MB each
  const Duration site = 2 * microseconds(30) + milliseconds(12);  // 12 rings of 1 MB share a card
  CHECK(makespan_of(t) == milliseconds(8) + 2 * inside + 2 * rack + site);
  // The flat ring crosses each card once with nearly all the bytes.
  t.options.hierarchical = false;
  CHECK(makespan_of(t) == milliseconds(8) + 46 * microseconds(30) + milliseconds(23));
}

TEST_CASE("a bucket is on its way while the backward of the layers before goes on") {
  TestPipeline t = equal_pipeline(1, milliseconds(3), milliseconds(6));
  t.schedule = "data-parallel";
  t.micro_batches = 2;
  t.parameters = {8'000'000};
  t.link.bandwidth = BytesPerSecond{1'000'000'000};
  t.options.copies = 2;
  StageCosts costs = costs_of(t);
  const auto run = [&](std::vector<Bucket> buckets) {
    costs.stages.front().buckets = std::move(buckets);
    const auto graph =
        lower(schedule_of(t), costs, {DeviceId{0}}, flat_cluster(2, t.link), t.options, {});
    REQUIRE(graph);
    const Trace trace = simulate(*graph);
    CHECK(trace == longest_path(*graph));
    return measure(*graph, trace, {});
  };
  // Each half takes 4 ms on its ring. The first one's begins after 2 of the 6 ms.
  const Metrics halves =
      run({{.backward = milliseconds(2), .gradients = {4'000'000}, .reduced = {4'000'000}},
           {.backward = milliseconds(4), .gradients = {4'000'000}, .reduced = {4'000'000}}});
  CHECK(halves.makespan == milliseconds(2 * 9 + 4));
  CHECK(halves.devices[0].idle_by_cause.all_reduce == milliseconds(4));
  CHECK(halves.operations == 8);
  CHECK(halves.all_reduces == 2);
  // The second half waits for the first one's end: after 18 - 1 + 4 ms.
  const Metrics late =
      run({{.backward = milliseconds(5), .gradients = {4'000'000}, .reduced = {4'000'000}},
           {.backward = milliseconds(1), .gradients = {4'000'000}, .reduced = {4'000'000}}});
  CHECK(late.makespan == milliseconds(17 + 4 + 4));
  // Layers without gradients need no ring.
  const Metrics bare =
      run({{.backward = milliseconds(2), .gradients = {8'000'000}, .reduced = {8'000'000}},
           {.backward = milliseconds(4), .gradients = {0}, .reduced = {0}}});
  CHECK(bare.makespan == milliseconds(18 - 4 + 8));
}

TEST_CASE("two copies of a pipeline: its own time, then the ring of the stage that ends last") {
  TestPipeline t = equal_pipeline(2, milliseconds(1), milliseconds(2));
  t.schedule = "1f1b";
  t.micro_batches = 4;
  t.parameters = {2'000'000};
  t.link.bandwidth = BytesPerSecond{1'000'000'000};
  t.options.copies = 2;
  // The pipeline takes 15 ms; stage 1 ends 2 ms earlier and is reduced meanwhile; stage 0 takes 2
  // ms more.
  const Metrics metrics = metrics_of(t);
  CHECK(metrics.makespan == milliseconds(17));
  CHECK(metrics.all_reduces == 2);
  CHECK(metrics.all_reduce_bytes == Bytes{2 * 2 * 2'000'000});
  for (const DeviceMetrics& device : metrics.devices)
    CHECK(device.idle_by_cause.all_reduce == milliseconds(2));
  CHECK(metrics.devices[2].idle_by_cause.drain == milliseconds(2));
  t.options.copies = 1;
  CHECK(metrics_of(t).makespan == milliseconds(15));
  CHECK(metrics_of(t).all_reduces == 0);
}

TEST_CASE("both stages of a copy on one device share the ring's links, one after the other") {
  TestPipeline t = equal_pipeline(2, milliseconds(1), milliseconds(2));
  t.devices = {{0}, {0}};
  t.micro_batches = 3;
  t.parameters = {3'000'000};
  t.link.bandwidth = BytesPerSecond{1'000'000'000};
  t.options.copies = 2;
  // 3 x 6 ms; stage 1's last backward ends at 16 ms, its ring at 19, stage 0's behind it at 22.
  CHECK(metrics_of(t).makespan == milliseconds(22));
}

TEST_CASE("with free links and lag 1 replicated stages run at their bottleneck") {
  struct Case {
    std::vector<std::uint32_t> replicas;
    std::vector<std::int64_t> forward_us;
  };
  const std::vector<Case> cases = {{{1, 1, 1, 1}, {10, 12, 9, 11}},
                                   {{3, 1}, {30, 10}},
                                   {{15, 1}, {150, 10}},
                                   {{2, 1, 1}, {20, 10, 10}},
                                   {{7, 6, 3}, {70, 60, 30}}};
  for (const Case& c : cases) {
    TestPipeline t;
    for (const std::int64_t f : c.forward_us) {
      t.forward.emplace_back(microseconds(f));
      t.backward.emplace_back(microseconds(2 * f));
    }
    t.schedule = "pipedream";
    t.replicas = c.replicas;
    t.parameters = {1'000'000};
    t.micro_batches = steady_window(c.replicas).min_run();
    double bottleneck = 0;
    for (std::size_t s = 0; s < c.replicas.size(); ++s) {
      bottleneck = std::max(bottleneck, 3e-6 * static_cast<double>(c.forward_us[s]) /
                                            static_cast<double>(c.replicas[s]));
    }
    const Metrics metrics = metrics_of(t);
    CAPTURE(c.replicas.size());
    CAPTURE(c.replicas.front());
    CHECK(metrics.steady->bottleneck_s == close_to(bottleneck));
    CHECK(metrics.steady->period_s == close_to(bottleneck, 0.01));
    CHECK(metrics.steady->period_s >= bottleneck * (1 - 1e-9));
  }
}

TEST_CASE("the published warm-up holds 1-2-1 back, and the report says so") {
  TestPipeline t;
  for (const int f : {10, 20, 10}) {
    t.forward.emplace_back(milliseconds(f));
    t.backward.emplace_back(milliseconds(2 * f));
  }
  t.schedule = "pipedream";
  t.replicas = {1, 2, 1};
  t.micro_batches = 60;
  const Metrics metrics = metrics_of(t);
  CHECK(metrics.steady->period_s == close_to(0.045));
  CHECK(metrics.steady->bottleneck_s == close_to(0.030));
  CHECK(metrics.steady->warm_up_limited);
}

TEST_CASE("lag 0 makes replicas wait for each other, lag 1 hides the ring") {
  TestPipeline t = equal_pipeline(1, milliseconds(1), milliseconds(2));
  t.schedule = "pipedream";
  t.replicas = {2};
  t.parameters = {1'000'000};
  t.link.bandwidth = BytesPerSecond{1'000'000'000};  // the ring takes 1 ms
  t.micro_batches = 40;
  t.options.updates.lag = 1;
  CHECK(metrics_of(t).steady->period_s == close_to(0.0015));
  t.options.updates.lag = 0;
  const Metrics metrics = metrics_of(t);
  CHECK(metrics.steady->period_s == close_to(0.002));
  // Every device waits 1 ms for each of the 20 rounds but the last, whose update is its own last
  // activity and takes no time.
  CHECK(metrics.devices[0].idle_by_cause.all_reduce == milliseconds(20));
  CHECK(metrics.all_reduces == 20);
}

TEST_CASE("every micro-batch runs where the replicas put it, forward and backward") {
  TestPipeline t = equal_pipeline(3, milliseconds(1), milliseconds(2));
  t.schedule = "pipedream";
  t.replicas = {3, 1, 2};
  t.micro_batches = 48;
  const OpGraph graph = graph_of(t);
  CHECK(graph.slots() == 6);
  const std::uint32_t first[] = {0, 3, 4};
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    const Activity& activity = graph.activities[i];
    if (!is_op(activity.kind)) continue;
    const std::uint32_t s = activity.stage.value;
    CHECK(graph.nodes[i].resource == first[s] + activity.micro_batch.value % t.replicas[s]);
  }
}

TEST_CASE("the steady state lies between multiples of the replicas' common multiple") {
  const auto window = [](const std::vector<std::uint32_t>& replicas, std::uint32_t n) {
    TestPipeline t = equal_pipeline(static_cast<std::uint32_t>(replicas.size()), milliseconds(1),
                                    milliseconds(2));
    t.schedule = "pipedream";
    t.replicas = replicas;
    t.micro_batches = n;
    const Metrics metrics = metrics_of(t);
    return std::pair(metrics.steady->first, metrics.steady->last);
  };
  CHECK(window({1, 1, 1, 1}, 13) == std::pair(4U, 8U));
  CHECK(window({2, 3}, 40) == std::pair(6U, 30U));  // N = 5, L = 6
  CHECK(window({2, 1}, 16) == std::pair(4U, 12U));  // N = 3, L = 2
}

}  // namespace
}  // namespace plumbline::test
