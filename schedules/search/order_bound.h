// Lower bounds of the makespan, or the longest span, of any order.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "schedules/search/order_problem.h"

namespace plumbline {

/// What limits the time of any order.
enum class BoundReason : std::uint8_t {
  work,    ///< A device: before its first op, its work, after its last op.
  chain,   ///< The ops of one micro-batch, one after the other.
  memory,  ///< A device: it waits for the first backwards, as its memory is full.
  turn,    ///< A device whose memory turns over: each place in it is taken for a whole round trip.
};

/// No order within the limits has a makespan, or a longest span, below `time`.
struct OrderBound {
  OrderTime time = 0;
  BoundReason reason = BoundReason::work;
  std::uint32_t device = 0;  ///< The device of that reason; of a chain: the last stage's.
};

/// The largest of the bounds that orders.md and docs/explanation/best-order.md describe.
OrderBound order_bound(const OrderProblem& problem);

}  // namespace plumbline
