// Local search: ops of the longest path change places with their neighbours.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "schedules/search/dice.h"
#include "schedules/search/order_problem.h"

namespace plumbline {

/// When to stop, and what to begin with.
struct MoveRules {
  OrderTime bound = 0;                      ///< An order of this length is good enough.
  std::int64_t effort = 0;                  ///< Ops that are timed at most, about.
  const std::atomic<bool>* stop = nullptr;  ///< Once it is set, the search ends. Null = never.
  std::uint32_t shakes = 0;  ///< Moves at first, of any ops, that may make the order longer.
};

/// Moves one op of the longest path at a time to a place near its own, and keeps what is no longer.
/// Returns the ops that were timed. Requires: orders that run and have room; so do the orders
/// afterwards.
std::int64_t move_ops(const OrderProblem& problem, const MoveRules& rules, Dice& dice,
                      DeviceOrders& orders);

}  // namespace plumbline
