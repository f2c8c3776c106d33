// The consumers of each node of an op graph: the nodes that wait for it.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/graph/op_graph.h"

namespace plumbline {

/// For each node, the nodes that wait for its result, in one array. First come those whose `input`
/// it is, then those that join it. Each group is ascending.
struct Consumers {
  std::vector<std::uint32_t> first;  ///< Each node's begin in `nodes`; the next's is its end.
  std::vector<std::uint32_t> nodes;

  explicit Consumers(const OpGraph& graph) : Consumers(graph, [](std::uint32_t) { return true; }) {}

  /// Only the consumers for which `counts` is true.
  template <class Counts>
  Consumers(const OpGraph& graph, Counts&& counts) : first(graph.size() + 2, 0) {
    const auto each_edge = [&](auto&& visit) {
      for (std::uint32_t i = 0; i < graph.size(); ++i) {
        if (graph.nodes[i].input != graph.size() && counts(i)) visit(graph.nodes[i].input, i);
      }
      for (const Join& join : graph.joins) {
        if (!counts(join.node)) continue;
        for (const std::uint32_t producer : join.inputs) visit(producer, join.node);
      }
    };
    each_edge([&](std::uint32_t producer, std::uint32_t) { ++first[producer + 2]; });
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    nodes.resize(first.back());
    each_edge([&](std::uint32_t producer, std::uint32_t consumer) {
      nodes[first[producer + 1]++] = consumer;
    });
  }
};

}  // namespace plumbline
