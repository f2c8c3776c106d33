// What decides the end of a run, and how much later the rest could be.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/trace.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// The activities that decide when `last` ends, first to last: from it back over `released_by`.
std::vector<std::uint32_t> path_to(const Trace& trace, std::uint32_t last);

/// The activities that decide the end of the run: the path to the last one that ends. Empty for a
/// run without any.
std::vector<std::uint32_t> critical_path(const Trace& trace);

/// How much longer each activity could take, it alone, without the run ending later: 0 on every
/// longest path. On shared cards the transfers are taken as long as they are.
std::vector<Duration> slack(const OpGraph& graph, const Trace& trace);

}  // namespace plumbline
