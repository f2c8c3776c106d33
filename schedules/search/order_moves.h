// Local search: ops of the longest path change places with their neighbours.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "schedules/search/dice.h"
#include "schedules/search/order_problem.h"

namespace plumbline {

/// Moves one op of the longest path at a time to a place near its own, and keeps what is no longer.
/// Stops at `bound`, when `effort` ops have been timed, or once `stop` is set (null = never).
/// Returns the ops that were timed. Requires: orders that run and have room; so do the orders
/// afterwards.
std::int64_t move_ops(const OrderProblem& problem, OrderTime bound, std::int64_t effort,
                      const std::atomic<bool>* stop, Dice& dice, DeviceOrders& orders);

}  // namespace plumbline
