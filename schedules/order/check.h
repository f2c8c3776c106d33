// Whether lists of ops can run: the passage from "what somebody wrote" to a Schedule.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>

#include "schedules/order/schedule.h"

namespace plumbline {

/// Makes a schedule of `lists`, ordered by a replay, after these checks: every op names a stage and
/// micro-batch of the shape and stands on the device that runs it; every stage has, for every
/// micro-batch, one F and one B (or one I and one W), and none twice; and the lists do not
/// deadlock. Errors (at `mark`): each names device, position and op, and shows the lists with the
/// place marked; a deadlock names each device's next op and what it waits for, and is
/// Fault::infeasible.
Result<Schedule> checked_schedule(std::string name, bool asynchronous, const PipelineShape& shape,
                                  const OpLists& lists, const Mark& mark);

/// The place that an entry of a list was read from; one past the list for what is missing there.
using MarkOfOp = std::function<Mark(std::uint32_t slot, std::size_t index)>;

/// The same with a place for each op.
Result<Schedule> checked_schedule(std::string name, bool asynchronous, const PipelineShape& shape,
                                  const OpLists& lists, const MarkOfOp& mark_of_op);

}  // namespace plumbline
