// Replaying lists of ops with every op one step long and free links.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/order/schedule.h"

namespace plumbline {

/// The step at which each entry of each list starts.
using ReplayTimes = std::vector<std::vector<std::uint32_t>>;

/// Of each entry of each list, whether it and the next one are a pair; empty: there are none.
using PairStarts = std::vector<std::vector<bool>>;

/// Those of a schedule, by its devices' lists; empty where all run by themselves.
PairStarts pair_starts(const Schedule& schedule);

/// What a replay came to. Where the lists deadlock, `done[slot]` says how far each got.
struct Replay {
  ReplayTimes start;
  std::vector<std::size_t> done;
  bool complete = false;
};

/// Executes the lists in order: F needs the F of the stage before, B (or I) the B (or I) of the
/// stage behind and its own F, W its own I. The two of a pair take two steps, begin when both can,
/// and have ended when both have. Requires: every op names a stage and micro-batch of the shape.
Replay replay(const PipelineShape& shape, const OpLists& lists, const PairStarts& pairs = {});

/// The same for a schedule that is known to run.
ReplayTimes replay_times(const Schedule& schedule);

/// The ops of complete lists by (start, micro-batch, stage): the issue order where no loop gives
/// it; and the index at which each step begins.
void order_by_replay(const OpLists& lists, const ReplayTimes& start, std::vector<Op>& issue_order,
                     std::vector<std::uint32_t>& waves);

}  // namespace plumbline
