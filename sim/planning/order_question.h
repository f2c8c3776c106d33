// From a setup to the question of its best order.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <vector>

#include "schedules/search/order_problem.h"
#include "sim/prediction/outcome.h"

namespace plumbline {

/// The question that a run asks, whatever its order is: one mini-batch of one copy. Devices are
/// slots, times are in ns, as the graph has them. A transfer takes its hold and its latency.
/// Transfers that queue, neighbours that slow each other and tensors that wait to be sent are left
/// out. Without a flush the longest span of a device is to be short, updates and the overhead of an
/// iteration included. Backwards are split if all layers give I and W. With a memory size one limit
/// is in bytes; `in_flight` is a limit of its own.
OrderProblem order_question(const Outcome& outcome, std::optional<double> in_flight);

/// Whether all layers that have a backward give it in two parts, I and W. Layers without parameters
/// need not, where those are known.
bool gives_split(const TrainingSetup& setup);

}  // namespace plumbline
