// An iteration as it was measured: spans from events, and the books of its memory.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "calibrate/cuda/program/program.h"
#include "calibrate/runtime/ledger.h"
#include "calibrate/runtime/run_record.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// When the first of two steps began and the second ended, since their device began.
using ToldTimes =
    std::function<std::pair<Duration, Duration>(std::uint32_t first, std::uint32_t last)>;

/// Every node's span, from what is told of its steps; a moment is where what it waits for has
/// ended. Devices' clocks may differ by a little: nothing begins before what it waited for. The
/// ledgers, one a slot, are gone through in that order.
MeasuredIteration measured_iteration(const OpGraph& graph, const CudaProgram& program,
                                     std::vector<Ledger>& ledgers, const ToldTimes& told);

}  // namespace plumbline
