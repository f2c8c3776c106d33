// Evaluating an op graph: by events, and as a longest path. Two ways, one answer.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/engine/trace.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// Runs the graph by events. Streams execute in order; channels carry one transfer at a time.
/// Channels that share a card share its bandwidth max-min fairly. Ops run at the pace that their
/// neighbours leave them. Rates may change during a transfer or an op.
Trace simulate(const OpGraph& graph);

/// The same answer in one pass over the arrays, without a queue: each node starts when its resource
/// is free and its input has arrived. Exact to the tick if no rates change. Requires: not
/// graph.rates_change().
Trace longest_path(const OpGraph& graph);

/// Only the end of the run, by the same pass: the inner loop of sweeps.
SimTime longest_path_end(const OpGraph& graph);

}  // namespace plumbline
