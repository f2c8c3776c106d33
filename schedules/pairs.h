// Forwards and backwards that a device runs at the same time. SPDX-License-Identifier: MIT
#pragma once

#include "models/diagnostic.h"
#include "schedules/replay.h"
#include "schedules/schedule.h"

namespace plumbline {

/// The same schedule with its neighbours in pairs: on each device an F and the full B of another
/// micro-batch beside it become one step, which begins once the inputs of both are there and ends
/// with both, so that each computes while the other sends within its group (DeepSeek-AI 2024,
/// "DeepSeek-V3", section 3.2.1). Each list is paired from its front: F and the B behind it, or B
/// and the F behind it, on all devices alike; whichever takes fewer steps, and the first of these,
/// which holds one micro-batch less, if both take as many. Where some are marked, those alone are
/// paired. The order of ops on each device stays. Errors (at `mark`): there is no such neighbour;
/// one that is marked is none; pairs wait for each other either way (infeasible).
Result<Schedule> pair_up(const Schedule& schedule, const PairStarts& marked, const Mark& mark);

}  // namespace plumbline
