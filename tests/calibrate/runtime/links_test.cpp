// Links fed with the simulator's own ends of ops: two codes for one network, one answer.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/links.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/engine/idle.h"
#include "tests/support/examples.h"

namespace plumbline::test {
namespace {

/// Something that the devices tell the links, at its time.
struct Event {
  SimTime at;
  std::uint32_t node = 0;
  bool reaches = false;  ///< A device comes to a blocking transfer; else an op ends.
};

/// Gives all links the times of `outcome`'s ops; all else must begin and end when it did there.
void check_links(const Outcome& outcome) {
  constexpr RealTime start = 1'000'000'000;
  const OpGraph& graph = outcome.graph;
  const std::vector<Span>& spans = outcome.trace.spans;
  const RunPlan plan{graph, outcome.setup};
  Progress progress(graph.size());
  std::vector<Ledger> ledgers;
  for (std::uint32_t slot = 0; slot < graph.slots(); ++slot) ledgers.emplace_back(plan, slot);
  Links links(graph, progress, ledgers);

  std::vector<Event> events;
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    if (is_compute(graph.activities[node].kind)) events.push_back({spans[node].end, node, false});
  }
  for (const auto& order : nodes_by_slot(graph)) {
    SimTime free;
    for (const std::uint32_t node : order) {
      if (!is_compute(graph.activities[node].kind)) events.push_back({free, node, true});
      free = spans[node].end;
    }
  }
  // Ops without time end at the instant at which they begin: the graph's order separates such
  // events.
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.at != b.at ? a.at < b.at : a.node < b.node;
  });
  links.restart(start);
  for (const Event& event : events) {
    const RealTime at = start + event.at.time_since_epoch().count();
    if (event.reaches) {
      links.reached(event.node, at);
    } else {
      progress.end[event.node] = at;
      links.made(event.node);
    }
  }
  links.drain();
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    if (is_compute(graph.activities[node].kind)) continue;
    CAPTURE(to_text(graph.activities[node]));
    CHECK(progress.begin[node] - start == spans[node].begin.time_since_epoch().count());
    CHECK(progress.end[node] - start == spans[node].end.time_since_epoch().count());
  }
}

TEST_CASE("links begin and end transfers, hops and moments when the simulator does") {
  for (const char* example : {"four-stages", "slow-link", "blocking-transfers", "data-parallel",
                              "replicas", "two-servers", "practical-10", "pipedream-async",
                              "branching", "recompute", "zero-bubble", "interleaved"}) {
    CAPTURE(example);
    check_links(predict_example(example, {}));
  }
  check_links(predict_example("two-servers", {"schedule.transfers=blocking"}));
  check_links(predict_example("two-servers", {"schedule.name=gpipe"}));
}

}  // namespace
}  // namespace plumbline::test
