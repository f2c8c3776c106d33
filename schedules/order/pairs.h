// Forwards and backwards that a device runs at the same time.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "base/diagnostic.h"
#include "schedules/order/replay.h"
#include "schedules/order/schedule.h"

namespace plumbline {

/// The same schedule with its neighbours in pairs, in each way that runs, at least one: on each
/// device an F and the full B of another micro-batch beside it become one step, which begins once
/// the inputs of both are there and ends with both, so that each computes while the other sends
/// within its group (DeepSeek-AI 2024, "DeepSeek-V3", section 3.2.1). Each list is paired from its
/// front: F and the B behind it (the first way, which holds one micro-batch less), or B and the F
/// behind it, on all devices alike. Which is faster depends on the costs: with a window of 1, as on
/// the last device of 1F1B, only the second way has pairs. Where some are marked, those alone are
/// paired. The order of ops on each device stays. Errors (at `mark`): there is no such neighbour;
/// one that is marked is none; pairs wait for each other either way (infeasible).
Result<std::vector<Schedule>> pair_up(const Schedule& schedule, const PairStarts& marked,
                                      const Mark& mark);

/// The pairs of DualPipe and DualPipeV as DeepSeek's programs run them (deepseek-ai/DualPipe, step
/// 4): F and the B behind it, but for the first ones of a device whose two stages are neighbours,
/// which stay apart "to further reduce bubble size".
PairStarts dual_pairs(const Schedule& schedule);

}  // namespace plumbline
