// Transfers that the work of other devices makes longer: by hand, and through a scenario. The plain
// reference of slowdown_test.cpp has them, too.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/simulate.h"
#include "sim/planning/predict.h"
#include "tests/support/builders.h"
#include "tests/support/profile_file.h"

namespace plumbline::test {
namespace {

using std::chrono::nanoseconds;

TEST_CASE("by hand: a transfer takes longer while a third device computes, not for its own ends") {
  // Three stages: F takes 100, B 200, a transfer 30.
  TestPipeline pipeline = equal_pipeline(3, nanoseconds(100), nanoseconds(200));
  pipeline.link = {nanoseconds(0), BytesPerSecond{1'000'000'000}};
  pipeline.output = Bytes{30};
  pipeline.schedule = "gpipe";
  pipeline.micro_batches = 1;
  const auto slowed_transfers = [](OpGraph graph, std::vector<double> factors) {
    graph.beside_work.push_back(std::move(factors));
    for (std::uint32_t node = 0; node < graph.size(); ++node) {
      if (is_transfer(graph.activities[node].kind))
        graph.costs[graph.nodes[node].cost].beside_work = 1;
    }
    return graph;
  };
  const OpGraph bare = graph_of(pipeline);
  REQUIRE(makespan(bare, simulate(bare)) == nanoseconds(3 * 300 + 4 * 30));
  // One at a time: the others rest while a transfer goes, whatever the factors beyond the first.
  CHECK(makespan(bare, simulate(slowed_transfers(bare, {1, 9}))) == nanoseconds(3 * 300 + 4 * 30));
  CHECK(makespan(bare, simulate(slowed_transfers(bare, {2}))) == nanoseconds(3 * 300 + 4 * 60));
  CHECK(slowed_transfers(bare, {1, 9}).rates_change());
  // With three micro-batches, stage 0 computes from 200 to 300, while 1F0's result goes to stage 2
  // from 230 on. It arrives at 290. 2F0 lasts until 390, while 0F2's result goes from 300 to 360.
  pipeline.micro_batches = 3;
  const OpGraph graph = slowed_transfers(graph_of(pipeline), {1, 2});
  const Trace trace = simulate(graph);
  const auto span_of = [&](std::uint32_t stage, std::uint32_t micro_batch) {
    const Activity wanted{ActivityKind::activation_transfer, {stage}, {micro_batch}};
    const auto found = std::find(graph.activities.begin(), graph.activities.end(), wanted);
    const Span& span = trace.spans[static_cast<std::size_t>(found - graph.activities.begin())];
    return std::pair{span.begin.time_since_epoch(), span.end.time_since_epoch()};
  };
  CHECK(span_of(1, 1) == std::pair<Duration, Duration>{nanoseconds(200), nanoseconds(230)});
  CHECK(span_of(2, 0) == std::pair<Duration, Duration>{nanoseconds(230), nanoseconds(290)});
  CHECK(span_of(1, 2) == std::pair<Duration, Duration>{nanoseconds(300), nanoseconds(360)});
}

TEST_CASE("transfers of a measured link take longer while others compute, if neighbours count") {
  const auto profile_with = [](const std::string& busy) {
    std::string layers;
    for (const char* name : {"a", "b", "c"}) {
      layers += fmt::format(
          "  - {{name: {}, kind: linear, forward: 100 us, backward: 200 us, output: 1 kB}}\n",
          name);
    }
    return ProfileFile("version: 1\nkind: profile\nbatch: 1\nlayers:\n" + layers +
                       "links:\n  - {kind: copy, latency: 10 us, table: [[1 kB, 30 us], [2 kB, 40 "
                       "us]]" +
                       busy + "}\n");
  };
  const ProfileFile busy = profile_with(", busy: [{workers: 1, table: [[1 kB, 60 us]]}]");
  const auto on = [](const std::string& schedule, const std::string& more = "") {
    return fmt::format(
        "cluster: {{devices: 3, link: measured{}}}\nschedule: {{{}}}\nplan: {{partition: [1, 1, "
        "1]}}\n",
        more, schedule);
  };
  const std::string gpipe = "name: gpipe, micro_batches: 3";
  const Outcome outcome = busy.predict(on(gpipe));
  CHECK(outcome.graph.beside_work == std::vector<std::vector<double>>{{}, {1, 2}});
  const Outcome rest = profile_with("").predict(on(gpipe));
  CHECK(!rest.graph.rates_change());
  CHECK(rest.metrics.makespan < outcome.metrics.makespan);
  const auto is_told = [](const Outcome& of) {
    return std::any_of(of.setup.notes.begin(), of.setup.notes.end(), [](const std::string& note) {
      return note.find("transfers take 1.") == 0 &&
             note.find("times as long as at rest, because other devices compute") != note.npos;
    });
  };
  CHECK(is_told(outcome));
  CHECK(!is_told(rest));
  // Devices that do not share a machine do not slow each other's transfers either.
  const Outcome none = busy.predict(on(gpipe, ", slowdown: none"));
  CHECK(!none.graph.rates_change());
  CHECK(none.metrics.makespan == rest.metrics.makespan);
  // One device at a time works under Naive.
  const Outcome naive = busy.predict(on("name: naive, micro_batches: 3"));
  CHECK(naive.metrics.makespan ==
        profile_with("").predict(on("name: naive, micro_batches: 3")).metrics.makespan);
  CHECK(!is_told(naive));
  // A transfer that blocks both ends is slowed down by the third device as well, by the times of
  // its own link, whatever their order.
  const std::string blocking = gpipe + ", transfers: blocking";
  CHECK(profile_with("").predict(on(blocking)).metrics.makespan <
        busy.predict(on(blocking)).metrics.makespan);
  const ProfileFile two_links = profile_with(
      "}\n  - {kind: blocking copy, latency: 10 us, table: [[1 kB, 20 us], [2 kB, 30 us]], busy: "
      "[{workers: 1, table: [[2 kB, 99 us], [1 kB, 50 us]]}]");
  CHECK(two_links.predict(on(blocking)).graph.beside_work ==
        std::vector<std::vector<double>>{{}, {1, 2.5}});
  CHECK(!two_links.predict(on(gpipe)).graph.rates_change());
  CHECK(!two_links.predict(on(blocking, ", slowdown: none")).graph.rates_change());
}

TEST_CASE("beside busy links the first copy does not stand for all") {
  const TemporaryFolder folder;
  const std::string profile = folder.file(
      "p.profile.yaml",
      "version: 1\nkind: profile\nbatch: 1\nlayers:\n"
      "  - {name: a, kind: linear, forward: 100 us, backward: 200 us, output: 1 kB}\n"
      "  - {name: b, kind: linear, forward: 100 us, backward: 200 us, output: 1 kB}\n"
      "links: [{kind: copy, latency: 10 us, busy: [{workers: 2, table: [[1 kB, 60 us]]}]}]\n");
  const auto scenario =
      parse_scenario(text_source("s.yaml", "version: 1\nmodel: {profile: " + profile +
                                               "}\ncluster: {devices: 4, link: measured}\n"
                                               "plan: {partition: [1, 1], data_parallel: 2}\n"
                                               "schedule: {name: 1f1b, micro_batches: 6}\n"),
                     {});
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  const auto events = predict(*scenario, Evaluation::events);
  const auto fastest = predict(*scenario, Evaluation::fastest);
  REQUIRE(events);
  REQUIRE(fastest);
  CHECK(fastest->metrics.makespan == events->metrics.makespan);
  const auto has_note = [](const std::string& note) { return note.find("transfers take ") == 0; };
  CHECK(std::any_of(events->setup.notes.begin(), events->setup.notes.end(), has_note));
}

}  // namespace
}  // namespace plumbline::test
