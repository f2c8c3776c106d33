// Max-min fair shares, alone and inside a run over shared network cards.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/fair_share.h"

#include <doctest/doctest.h>

#include <map>

#include "tests/support/builders.h"
#include "tests/support/trials.h"

namespace plumbline {
namespace {

using std::chrono::nanoseconds;

/// Flows that start at given times; returns when each ends.
struct Flow {
  std::int64_t start;
  std::int64_t bytes;
  std::uint32_t out;
  std::uint32_t in;
};

std::vector<std::int64_t> ends_of(std::vector<BytesPerSecond> capacities,
                                  const std::vector<Flow>& flows) {
  FairShare share(capacities);
  std::vector<std::int64_t> ends(flows.size(), -1);
  std::map<std::uint32_t, FairShare::Change> due;
  std::size_t started = 0;
  while (started < flows.size() || !due.empty()) {
    auto next = due.begin();
    for (auto at = due.begin(); at != due.end(); ++at) {
      if (at->second.end < next->second.end) next = at;
    }
    std::vector<FairShare::Change> changes;
    if (started < flows.size() &&
        (due.empty() || flows[started].start < next->second.end.time_since_epoch().count())) {
      const Flow& f = flows[started];
      const BytesPerSecond full = std::min(capacities[f.out], capacities[f.in]);
      changes =
          share.start(static_cast<std::uint32_t>(started), {f.bytes},
                      transfer_time({f.bytes}, full), f.out, f.in, SimTime(Duration(f.start)));
      ++started;
    } else {
      const FairShare::Change change = next->second;
      due.erase(next);
      REQUIRE(share.end(change.activity, change.version, change.end));
      ends[change.activity] = change.end.time_since_epoch().count();
      changes = share.changes();
    }
    for (const FairShare::Change& change : changes) due[change.activity] = change;
  }
  return ends;
}

constexpr BytesPerSecond kOneByteANs{1'000'000'000};

TEST_CASE("two transfers on one card take twice as long, and speed up when one ends") {
  CHECK(ends_of({kOneByteANs, kOneByteANs, kOneByteANs}, {{0, 100, 0, 1}, {0, 100, 0, 2}}) ==
        std::vector<std::int64_t>{200, 200});
  CHECK(ends_of({kOneByteANs, kOneByteANs, kOneByteANs}, {{0, 100, 0, 1}, {50, 100, 0, 2}}) ==
        std::vector<std::int64_t>{150, 200});
  CHECK(ends_of({kOneByteANs, kOneByteANs}, {{0, 100, 0, 1}, {0, 100, 0, 1}, {0, 100, 0, 1}}) ==
        std::vector<std::int64_t>{300, 300, 300});
}

TEST_CASE("what a tight card leaves goes to the others") {
  // Flows a and b leave by card 0; b and c enter by card 2. Card 2 is half as wide: b and c get a
  // quarter each, and a the three quarters that b leaves of card 0.
  const BytesPerSecond half{500'000'000};
  const std::vector<std::int64_t> ends = ends_of({kOneByteANs, kOneByteANs, half, kOneByteANs},
                                                 {{0, 300, 0, 1}, {0, 100, 0, 2}, {0, 100, 3, 2}});
  CHECK(ends == std::vector<std::int64_t>{400, 400, 400});
}

TEST_CASE("a transfer that never shares takes its exact time") {
  CHECK(ends_of({{3'000'000'000}, {3'000'000'000}}, {{0, 10, 0, 1}, {100, 10, 0, 1}}) ==
        std::vector<std::int64_t>{4, 104});
}

TEST_CASE("two pipelines' worth of stages behind one card contend, and the engine shows it") {
  // Devices 0 1 | 2 3: stages on 0, 2, 1, 3 make every boundary cross between the servers.
  test::TestPipeline t = test::equal_pipeline(4, nanoseconds(100), nanoseconds(100));
  t.output = {100};
  t.micro_batches = 6;
  t.schedule = "1f1b";
  t.devices = {{0}, {2}, {1}, {3}};
  Cluster cluster;
  cluster.levels = {{"server", 2, {}}, {"room", 2, {nanoseconds(0), kOneByteANs}}};
  t.cluster = cluster;
  const OpGraph graph = test::graph_of(t);
  const Trace trace = simulate(graph);
  int slowed = 0;
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    if (!is_transfer(graph.activities[i].kind)) continue;
    const Duration took = trace.spans[i].end - trace.spans[i].begin;
    CHECK(took >= nanoseconds(100));
    CHECK(took <= nanoseconds(300));
    slowed += took > nanoseconds(100) ? 1 : 0;
  }
  CHECK(slowed > 0);
  // Without sharing (a server for each device) the same pipeline is faster.
  cluster.levels = {{"server", 1, {}}, {"room", 4, {nanoseconds(0), kOneByteANs}}};
  t.cluster = cluster;
  CHECK(test::makespan_of(t) < test::makespan(graph, trace));
}

TEST_CASE("levels without contention run exactly as flat links") {
  for (std::uint64_t seed = 1; seed <= test::trials(100); ++seed) {
    test::Dice dice(seed);
    test::TestPipeline t =
        test::equal_pipeline(2, nanoseconds(dice.roll(1, 50)), nanoseconds(dice.roll(1, 50)));
    t.output = {dice.roll(1, 100)};
    t.micro_batches = static_cast<std::uint32_t>(dice.roll(1, 9));
    t.schedule = "1f1b";
    t.options.blocking = dice.roll(0, 1) == 1;
    t.link = {nanoseconds(dice.roll(0, 9)), BytesPerSecond{700'000'000}};
    const Duration flat = test::makespan_of(t);
    Cluster cluster;
    cluster.levels = {{"server", 1, {}}, {"room", 2, t.link}};
    t.cluster = cluster;
    CHECK(test::makespan_of(t) == flat);
  }
}

}  // namespace
}  // namespace plumbline
