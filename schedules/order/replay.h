// Replaying lists of ops: every op takes one step and links are free.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/order/schedule.h"

namespace plumbline {

/// The step at which each entry of each list starts.
using ReplayTimes = std::vector<std::vector<std::uint32_t>>;

/// Whether each entry of each list and the next one are a pair; empty = there are no pairs.
using PairStarts = std::vector<std::vector<bool>>;

/// The pairs of a schedule, by its devices' lists; empty where every op runs separately.
PairStarts pair_starts(const Schedule& schedule);

/// The result of a replay. Where the lists deadlock, `done[slot]` is the number of ops that ran.
struct Replay {
  ReplayTimes start;
  std::vector<std::size_t> done;
  bool complete = false;
};

/// Executes the lists in order: F needs the F of the stage before, B (or I) the B (or I) of the
/// stage behind and its own F, W its own I. The two ops of a pair take two steps: they begin when
/// both can, and end together. Requires: every op names a stage and micro-batch of the shape.
Replay replay(const PipelineShape& shape, const OpLists& lists, const PairStarts& pairs = {});

/// The same for a schedule that is known to run.
ReplayTimes replay_times(const Schedule& schedule);

/// Sorts the ops of complete lists by (start, micro-batch, stage), and finds the index at which
/// each step begins. This is the issue order of schedules that no loop orders.
void order_by_replay(const OpLists& lists, const ReplayTimes& start, std::vector<Op>& issue_order,
                     std::vector<std::uint32_t>& waves);

}  // namespace plumbline
