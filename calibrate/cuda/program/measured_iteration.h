// A measured iteration: its spans from events, and its memory from ledgers.
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

/// Gives two times of a device, counted from its start of the iteration: when the first of two
/// steps began, and when the second ended.
using ToldTimes =
    std::function<std::pair<Duration, Duration>(std::uint32_t first, std::uint32_t last)>;

/// The span of every node, from the times of its steps. A moment is at the time when all that it
/// waits for has ended. Devices' clocks may differ a little, so no node begins before the end of
/// what it waited for. The ledgers, one per slot, follow the program's order of nodes.
MeasuredIteration measured_iteration(const OpGraph& graph, const CudaProgram& program,
                                     std::vector<Ledger>& ledgers, const ToldTimes& told);

}  // namespace plumbline
