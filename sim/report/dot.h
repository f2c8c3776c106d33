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

/// The largest number of nodes of an op graph that is drawn. Graphviz cannot lay out more in
/// reasonable time.
inline constexpr std::uint32_t kMaxDrawnNodes = 5'000;

/// The layers with their parameters and stages, and the edges to their consumers. A layer's name
/// stays plain text, whatever characters it contains.
std::string layer_graph_dot(const LayerGraph& graph, const Partition& partition);

/// The activities of a run: solid edges bring data, dotted ones are the order on a device or link.
/// Errors: more than kMaxDrawnNodes nodes.
Result<std::string> op_graph_dot(const OpGraph& graph);

}  // namespace plumbline
