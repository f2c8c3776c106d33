// Who let each activity start: read off the times, for any trace of a graph.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/engine/trace.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// Sets `released_by` of every span: of all that the activity had to wait for (its predecessor on
/// each resource it holds, its input, the members of a join) the one that ended last; among equals
/// the predecessor on its resource, then the one on its second resource, then the input.
void attribute_releases(const OpGraph& graph, Trace& trace);

/// When the last of all that a node waited for was met: a simulated node begins then, a real one a
/// little later. Requires: attributed releases.
SimTime released(const OpGraph& graph, const Trace& trace, std::uint32_t node);

}  // namespace plumbline
