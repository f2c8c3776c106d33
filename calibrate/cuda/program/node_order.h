// The order in which one thread can take the nodes of an op graph.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "calibrate/runtime/run_plan.h"
#include "calibrate/runtime/run_record.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// Takes every node, in the order of the graph, each as soon as possible: all nodes that it waits
/// for have been taken, and it is the next one of its devices. `joins` are joins_by_node(graph).
/// Errors: orders that wait for each other (deadlock) or lack a node (incomplete); an exception of
/// `take` (failed).
std::optional<RunFailure> take_nodes(const OpGraph& graph, const DeviceOrders& orders,
                                     const std::vector<const Join*>& joins,
                                     const std::function<void(std::uint32_t)>& take);

}  // namespace plumbline
