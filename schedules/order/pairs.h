// Forwards and backwards that a device runs at the same time.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "base/diagnostic.h"
#include "schedules/order/replay.h"
#include "schedules/order/schedule.h"

namespace plumbline {

/// The same schedule with neighbouring ops in pairs, in each way that can run, at least one. On
/// each device an F and the full B of another micro-batch beside it become one step. The step
/// begins when the inputs of both are there and ends when both have ended. Each op computes while
/// the other sends within its group (DeepSeek-AI 2024, "DeepSeek-V3", section 3.2.1). Each list is
/// paired from its front. The first way pairs F and the B behind it, and holds one micro-batch
/// less. The second way pairs B and the F behind it. All devices pair alike. The faster way depends
/// on the costs. With a window of 1, as on the last device of 1F1B, only the second way has pairs.
/// Where `marked` has pairs, only those are paired. The order of ops on each device stays. Errors
/// (at `mark`): no such neighbours; a marked pair that is not an F and a full B of two
/// micro-batches; pairs that wait for each other in every way (infeasible).
Result<std::vector<Schedule>> pair_up(const Schedule& schedule, const PairStarts& marked,
                                      const Mark& mark);

/// The pairs of DualPipe and DualPipeV as DeepSeek's programs run them (deepseek-ai/DualPipe, step
/// 4): F and the B behind it. On a device whose two stages are neighbours, the first pair stays
/// apart "to further reduce bubble size".
PairStarts dual_pairs(const Schedule& schedule);

}  // namespace plumbline
