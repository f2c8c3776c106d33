// List scheduling: each device, whenever it is free, takes the most urgent op that it can run.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/search/order_problem.h"

namespace plumbline {

/// What is urgent, and what a device waits for.
struct ListRules {
  /// When op k of a kind and stage is due: due[kind][stage] + k x period. The earlier, the more
  /// urgent.
  std::array<std::vector<OrderTime>, kOrderKinds> due;
  OrderTime period = 0;
  /// Used instead, if it is not empty: when each op is due, by op number.
  std::vector<OrderTime> due_of_op;
  /// No F or I starts earlier than this before it is due; nothing: as early as it can.
  std::optional<OrderTime> earliness;
  /// A W runs in its turn, by when it is due; otherwise only where no F or I can start.
  bool weights_in_turn = false;
  /// How much an op may delay a more urgent one that arrives soon, in percent of its own time: 0
  /// waits for what arrives, 100 never waits. For W, and for F and I.
  std::uint32_t delay_by_weight = 100;
  std::uint32_t delay_by_other = 100;
  /// The run is given up when some device's end, and its tail, cannot be before this; nothing:
  /// never.
  std::optional<OrderTime> give_up;
};

/// The orders that these rules make, and their times. Within a kind and stage micro-batches go in
/// turn. An F starts only if all micro-batches that its device holds, and then this one, can still
/// be finished one after the other within the limits, so no order deadlocks (Dijkstra's banker).
/// Requires: lack_of_room() finds nothing.
struct ListResult {
  bool complete = true;    ///< False: it was given up.
  std::size_t placed = 0;  ///< Ops.
  DeviceOrders orders;
  OrderTime length = 0;  ///< See OrderTimes.
};
ListResult schedule_by_list(const OrderProblem& problem, const ListRules& rules);

}  // namespace plumbline
