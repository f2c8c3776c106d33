// Whether lists of ops can run: the step from lists that somebody wrote to a Schedule.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>

#include "schedules/order/schedule.h"

namespace plumbline {

/// Makes a schedule of `lists`, ordered by a replay, after these checks. Every op names a stage and
/// micro-batch of the shape and is on the device that runs it. Every stage has, for every
/// micro-batch, one F and one B (or one I and one W), and none twice. The lists do not deadlock.
/// Errors (at `mark`): each names device, position and op, and shows the lists with the place
/// marked. A deadlock names each device's next op and the op that it waits for, and is
/// Fault::infeasible.
Result<Schedule> checked_schedule(std::string name, bool asynchronous, const PipelineShape& shape,
                                  const OpLists& lists, const Mark& mark);

/// The place in a file of an entry of a list. The index one past the list is the place for missing
/// ops.
using MarkOfOp = std::function<Mark(std::uint32_t slot, std::size_t index)>;

/// The same, with a mark for each op.
Result<Schedule> checked_schedule(std::string name, bool asynchronous, const PipelineShape& shape,
                                  const OpLists& lists, const MarkOfOp& mark_of_op);

}  // namespace plumbline
