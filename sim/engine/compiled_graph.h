// An op graph made ready for many sets of costs at once: the fast path of what-if questions.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/graph/op_graph.h"

namespace plumbline {

/// The table entries from which each node takes its hold and its latency.
struct CostIndex {
  std::vector<std::uint32_t> hold;     ///< One per node.
  std::vector<std::uint32_t> latency;  ///< One per node.
  std::vector<Duration> holds;         ///< The table with the graph's own times.
  std::vector<Duration> latencies;
};

/// An index with one entry per class of cost.
CostIndex index_by_class(const OpGraph& graph);

/// An index with one entry per node's hold, so that every op may take another time.
CostIndex index_by_node(const OpGraph& graph);

/// The longest paths of one graph with many tables of costs, side by side, one lane per table. Each
/// lane gives the same answer as longest_path(), to the tick. The data of an evaluation are in flat
/// arrays. An arrival is kept only until the last node that waits for it, so that all data stay in
/// the first-level cache. The class knows neither activities nor devices.
class CompiledGraph {
 public:
  /// The number of tables that one pass evaluates.
  static constexpr std::size_t kLanes = 16;

  /// Times in nanoseconds. Entry i of the table is at [i * kLanes + lane] for each lane.
  struct Tables {
    std::vector<std::int64_t> hold;
    std::vector<std::int64_t> latency;
  };

  /// The scratch memory of an evaluation; one per thread.
  struct Workspace {
    std::vector<std::int64_t> free_at;
    std::vector<std::int64_t> arrived;
  };

  /// The ends of `watched` nodes are reported besides the end of the run. Requires: not
  /// graph.rates_change().
  CompiledGraph(const OpGraph& graph, const CostIndex& index,
                const std::vector<std::uint32_t>& watched = {});

  /// The graph's own times in every lane.
  Tables tables() const;

  /// Evaluates all lanes. Row 0 has the end of the run in each lane, row 1 + w the end of watched
  /// node w. Requires: tables of this graph's size; no time below 0; a latency that is 0 in the
  /// graph is 0 in the tables.
  void evaluate(const Tables& tables, Workspace& workspace, std::vector<std::int64_t>& rows) const;

 private:
  struct Step {
    std::uint32_t hold = 0;
    std::uint32_t latency = 0;
    std::uint32_t resource = 0;
    std::uint32_t second = 0;
    std::uint32_t after = 0;    ///< Place of the arrival that it waits for.
    std::uint32_t arrival = 0;  ///< Place of its own arrival.
  };
  /// Further arrivals that a step waits for.
  struct Gathering {
    std::uint32_t step = 0;
    std::vector<std::uint32_t> places;
  };

  static void pass(const Step* first, const Step* end, const std::int64_t* hold,
                   const std::int64_t* latency, std::int64_t* free_at, std::int64_t* arrived);

  std::vector<Step> steps_;
  std::vector<Gathering> gatherings_;
  std::vector<std::uint32_t> last_;     ///< The places of the arrivals that may end the run.
  std::vector<std::uint32_t> watched_;  ///< The places of the watched nodes' arrivals.
  std::size_t resources_ = 0;
  std::size_t places_ = 0;
  std::vector<Duration> holds_;
  std::vector<Duration> latencies_;
};

}  // namespace plumbline
