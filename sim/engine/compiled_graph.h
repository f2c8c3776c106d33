// An op graph made ready for many sets of costs at once: the fast path of what-if questions.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/graph/op_graph.h"

namespace plumbline {

/// Which entry of a table of times each node takes its hold and its latency from.
struct CostIndex {
  std::vector<std::uint32_t> hold;     ///< By node.
  std::vector<std::uint32_t> latency;  ///< By node.
  std::vector<Duration> holds;         ///< The table as the graph has it.
  std::vector<Duration> latencies;
};

/// An entry for each class of cost.
CostIndex index_by_class(const OpGraph& graph);

/// An entry for each node's hold, so that every op may take another time.
CostIndex index_by_node(const OpGraph& graph);

/// The longest paths of one graph with many tables of costs, a lane each, side by side. The answer
/// of each lane is that of longest_path(), to the tick. It keeps what an evaluation reads in flat
/// arrays and an arrival only until the last node that waits for it, so that the whole of it stays
/// in the first-level cache. It knows neither activities nor devices.
class CompiledGraph {
 public:
  /// So many tables are evaluated in one pass.
  static constexpr std::size_t kLanes = 16;

  /// Times in nanoseconds: entry i of the table has those of all lanes at [i * kLanes + lane].
  struct Tables {
    std::vector<std::int64_t> hold;
    std::vector<std::int64_t> latency;
  };

  /// What an evaluation works in; one a thread.
  struct Workspace {
    std::vector<std::int64_t> free_at;
    std::vector<std::int64_t> arrived;
  };

  /// `watched` nodes are told besides the end of the run. Requires: not graph.rates_change().
  CompiledGraph(const OpGraph& graph, const CostIndex& index,
                const std::vector<std::uint32_t>& watched = {});

  /// The graph's own times in every lane.
  Tables tables() const;

  /// Row 0 has the end of the run in each lane, row 1 + w the end of watched node w.
  /// Requires: tables of this graph's size; no time below 0; a latency that the graph has as 0
  /// stays 0.
  void evaluate(const Tables& tables, Workspace& workspace, std::vector<std::int64_t>& rows) const;

 private:
  struct Step {
    std::uint32_t hold = 0;
    std::uint32_t latency = 0;
    std::uint32_t resource = 0;
    std::uint32_t second = 0;
    std::uint32_t after = 0;    ///< The place of the arrival that it waits for.
    std::uint32_t arrival = 0;  ///< The place of its own.
  };
  /// More arrivals that a step waits for.
  struct Gathering {
    std::uint32_t step = 0;
    std::vector<std::uint32_t> places;
  };

  static void pass(const Step* first, const Step* end, const std::int64_t* hold,
                   const std::int64_t* latency, std::int64_t* free_at, std::int64_t* arrived);

  std::vector<Step> steps_;
  std::vector<Gathering> gatherings_;
  std::vector<std::uint32_t> last_;     ///< The places of the arrivals that may end the run.
  std::vector<std::uint32_t> watched_;  ///< The places of the watched ones.
  std::size_t resources_ = 0;
  std::size_t places_ = 0;
  std::vector<Duration> holds_;
  std::vector<Duration> latencies_;
};

}  // namespace plumbline
