// The activity that let each activity start: found from the times, for any trace of a graph.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/engine/trace.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// Sets `released_by` of every span: the activity that ended last among all that the span had to
/// wait for. These are its predecessor on each resource it holds, its input, and the members of a
/// join. Among equals, the predecessor on its resource comes first, then the one on its second
/// resource, then the input.
void attribute_releases(const OpGraph& graph, Trace& trace);

/// The time at which the last requirement of a node was met. A simulated node begins then, a real
/// one a little later. Requires: attributed releases.
SimTime released(const OpGraph& graph, const Trace& trace, std::uint32_t node);

}  // namespace plumbline
