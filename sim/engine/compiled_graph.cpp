// Compiling gives each arrival a place for as long as it is needed. Evaluating is one loop.
//
// SPDX-License-Identifier: MIT
#include "sim/engine/compiled_graph.h"

#include <algorithm>
#include <numeric>

#include "base/bug.h"
#include "base/vectorized.h"

#if defined(__clang__)
#define PLUMBLINE_LANES_APART _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define PLUMBLINE_LANES_APART _Pragma("GCC ivdep")
#else
#define PLUMBLINE_LANES_APART
#endif

namespace plumbline {
namespace {

constexpr std::size_t kLanes = CompiledGraph::kLanes;
constexpr std::uint32_t kStart = 0;   ///< The place that is always 0: nothing to wait for.
constexpr std::uint32_t kUnread = 1;  ///< The place of arrivals that nobody reads.

/// The last step that reads each node's arrival; the node itself where none does.
std::vector<std::uint32_t> last_readers(const OpGraph& graph) {
  std::vector<std::uint32_t> last(graph.size());
  std::iota(last.begin(), last.end(), 0U);
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const std::uint32_t after = graph.nodes[node].input;
    if (after != graph.size()) last[after] = node;
  }
  for (const Join& join : graph.joins) {
    for (const std::uint32_t producer : join.inputs)
      last[producer] = std::max(last[producer], join.node);
  }
  return last;
}

/// The nodes whose end may be the end of the run: no node waits for their arrival. If a later node
/// holds the same resource, only nodes with a latency count.
std::vector<bool> possible_ends(const OpGraph& graph, const std::vector<std::uint32_t>& readers) {
  std::vector<bool> ends(graph.size());
  std::vector<bool> held_again(graph.resources());
  for (std::uint32_t node = graph.size(); node-- > 0;) {
    const Node& n = graph.nodes[node];
    const bool read = readers[node] != node;
    const bool followed = held_again[n.resource] || held_again[n.peer_resource];
    ends[node] = !read && (!followed || graph.cost(node).latency.count() > 0);
    held_again[n.resource] = held_again[n.peer_resource] = true;
  }
  return ends;
}

std::vector<std::int64_t> in_all_lanes(const std::vector<Duration>& times) {
  std::vector<std::int64_t> table;
  table.reserve(times.size() * kLanes);
  for (const Duration time : times) table.insert(table.end(), kLanes, time.count());
  return table;
}

}  // namespace

CostIndex index_by_class(const OpGraph& graph) {
  CostIndex index;
  index.hold.reserve(graph.size());
  for (const Node& node : graph.nodes) index.hold.push_back(node.cost);
  index.latency = index.hold;
  for (const Cost& cost : graph.costs) {
    index.holds.push_back(cost.hold);
    index.latencies.push_back(cost.latency);
  }
  return index;
}

CostIndex index_by_node(const OpGraph& graph) {
  CostIndex index = index_by_class(graph);
  std::iota(index.hold.begin(), index.hold.end(), 0U);
  index.holds.clear();
  for (std::uint32_t node = 0; node < graph.size(); ++node)
    index.holds.push_back(graph.cost(node).hold);
  return index;
}

CompiledGraph::CompiledGraph(const OpGraph& graph, const CostIndex& index,
                             const std::vector<std::uint32_t>& watched)
    : resources_(graph.resources()), holds_(index.holds), latencies_(index.latencies) {
  PLUMBLINE_CHECK(!graph.rates_change(), graph.channels.size(), graph.slowdowns.size());
  const std::vector<std::uint32_t> readers = last_readers(graph);
  const std::vector<bool> ends = possible_ends(graph, readers);
  std::vector<bool> kept = ends;
  for (const std::uint32_t node : watched) kept[node] = true;

  std::vector<std::uint32_t> place(std::size_t{graph.size()} + 1, kUnread);
  place[graph.size()] = kStart;
  std::vector<std::uint32_t> free_places;
  places_ = 2;
  const auto read = [&](std::uint32_t producer, std::uint32_t reader) {
    if (producer == graph.size() || readers[producer] != reader || kept[producer]) return;
    free_places.push_back(place[producer]);
    kept[producer] = true;  // its place is released once
  };
  auto join = graph.joins.begin();
  steps_.reserve(graph.size());
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    const Node& n = graph.nodes[node];
    Step step{index.hold[node], index.latency[node], n.resource,
              n.peer_resource,  place[n.input],      kUnread};
    if (join != graph.joins.end() && join->node == node) {
      Gathering gathering{node, {}};
      for (const std::uint32_t producer : join->inputs) {
        gathering.places.push_back(place[producer]);
        read(producer, node);
      }
      gatherings_.push_back(std::move(gathering));
      ++join;
    }
    read(n.input, node);
    if (readers[node] != node || kept[node]) {
      if (free_places.empty() || kept[node]) {
        step.arrival = static_cast<std::uint32_t>(places_++);
      } else {
        step.arrival = free_places.back();
        free_places.pop_back();
      }
    }
    place[node] = step.arrival;
    if (ends[node]) last_.push_back(step.arrival);
    steps_.push_back(step);
  }
  for (const std::uint32_t node : watched) watched_.push_back(place[node]);
}

CompiledGraph::Tables CompiledGraph::tables() const {
  return {in_all_lanes(holds_), in_all_lanes(latencies_)};
}

PLUMBLINE_VECTORIZED
void CompiledGraph::pass(const Step* first, const Step* end, const std::int64_t* hold,
                         const std::int64_t* latency, std::int64_t* free_at,
                         std::int64_t* arrived) {
  for (const Step* step = first; step != end; ++step) {
    const std::int64_t* const h = hold + step->hold * kLanes;
    const std::int64_t* const l = latency + step->latency * kLanes;
    const std::int64_t* const ready = arrived + step->after * kLanes;
    std::int64_t* const held = free_at + step->resource * kLanes;
    std::int64_t* const second = free_at + step->second * kLanes;
    std::int64_t* const arrival = arrived + step->arrival * kLanes;
    PLUMBLINE_LANES_APART
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::int64_t free = held[lane] > second[lane] ? held[lane] : second[lane];
      const std::int64_t begin = free > ready[lane] ? free : ready[lane];
      const std::int64_t released = begin + h[lane];
      held[lane] = released;
      second[lane] = released;
      arrival[lane] = released + l[lane];
    }
  }
}

void CompiledGraph::evaluate(const Tables& tables, Workspace& workspace,
                             std::vector<std::int64_t>& rows) const {
  PLUMBLINE_CHECK(tables.hold.size() == holds_.size() * kLanes &&
                      tables.latency.size() == latencies_.size() * kLanes,
                  tables.hold.size(), tables.latency.size());
  workspace.free_at.assign(resources_ * kLanes, 0);
  workspace.arrived.assign(places_ * kLanes, 0);
  std::int64_t* const free_at = workspace.free_at.data();
  std::int64_t* const arrived = workspace.arrived.data();
  const auto run = [&](std::size_t first, std::size_t end) {
    pass(steps_.data() + first, steps_.data() + end, tables.hold.data(), tables.latency.data(),
         free_at, arrived);
  };
  const auto raise = [&](std::int64_t* row, std::uint32_t place) {
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      row[lane] = std::max(row[lane], arrived[place * kLanes + lane]);
  };
  // The loop has no branch between gatherings.
  std::size_t first = 0;
  for (const Gathering& gathering : gatherings_) {
    run(first, gathering.step);
    std::int64_t* const ready = free_at + steps_[gathering.step].resource * kLanes;
    for (const std::uint32_t place : gathering.places) raise(ready, place);
    first = gathering.step;
  }
  run(first, steps_.size());
  rows.assign((1 + watched_.size()) * kLanes, 0);
  for (const std::uint32_t place : last_) raise(rows.data(), place);
  for (std::size_t w = 0; w < watched_.size(); ++w)
    raise(rows.data() + (1 + w) * kLanes, watched_[w]);
}

}  // namespace plumbline
