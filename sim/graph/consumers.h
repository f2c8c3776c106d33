// Who waits for whom in an op graph, seen from those who are waited for.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/graph/op_graph.h"

namespace plumbline {

/// For each node those that wait for its result, in one array: first those whose `input` it is,
/// then those that join it, each ascending.
struct Consumers {
  std::vector<std::uint32_t> first;  ///< Of each node, in `nodes`; its end is that of the next one.
  std::vector<std::uint32_t> nodes;

  explicit Consumers(const OpGraph& graph) : Consumers(graph, [](std::uint32_t) { return true; }) {}

  /// Only those consumers that `counts` says yes to.
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
