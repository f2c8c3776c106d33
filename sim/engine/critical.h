// The activities that decide the end of a run, and the slack of the others.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/trace.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// The activities that decide the end of `last`, from first to last. They are found from `last`
/// back over `released_by`.
std::vector<std::uint32_t> path_to(const Trace& trace, std::uint32_t last);

/// The activities that decide the end of the run: the path to the activity that ends last. Empty
/// for a run without activities.
std::vector<std::uint32_t> critical_path(const Trace& trace);

/// The slack of each activity: the time by which it alone could take longer without delaying the
/// end of the run. 0 on every longest path. Transfers on shared cards count with their actual
/// times. Without a flush: without delaying the end of a device's span past its begin plus the
/// period; an activity that delays both ends of a span may have more room than that.
std::vector<Duration> slack(const OpGraph& graph, const Trace& trace);

}  // namespace plumbline
