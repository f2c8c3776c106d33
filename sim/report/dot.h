// Graphs as text for Graphviz.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "base/diagnostic.h"
#include "models/profile/layer_graph.h"
#include "schedules/stages/partition.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// The most nodes of an op graph that are drawn: Graphviz lays no more out in reasonable time.
inline constexpr std::uint32_t kMaxDrawnNodes = 5'000;

/// The layers with their parameters and the stage that each is in, and who consumes what. A layer's
/// name stays text, whatever it holds.
std::string layer_graph_dot(const LayerGraph& graph, const Partition& partition);

/// The activities of a run: solid edges bring data, dotted ones are the order on a device or link.
/// Errors: more than kMaxDrawnNodes nodes.
Result<std::string> op_graph_dot(const OpGraph& graph);

}  // namespace plumbline
