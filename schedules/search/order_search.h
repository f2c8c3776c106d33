// The best order that can be found with a given effort.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "schedules/search/order_problem.h"

namespace plumbline {

/// How long to search.
struct OrderSearchOptions {
  /// Ops that are placed or timed at most, about: 10 million take less than a second. The search
  /// stops earlier where the bound is met.
  std::int64_t effort = 10'000'000;
  /// Orders that are known, as those of published schedules. The result is never worse than one of
  /// them that runs and has room.
  std::vector<DeviceOrders> known;
  /// Once it is set, the best order so far is the result. Null = never.
  const std::atomic<bool>* stop = nullptr;
};

/// The orders found.
struct FoundOrder {
  DeviceOrders orders;
  OrderTime length = 0;    ///< See OrderTimes.
  std::int64_t spent = 0;  ///< Of the effort.
};

/// The same result for the same problem and options, on any machine, unless it is stopped.
/// Requires: lack_of_room() finds nothing.
FoundOrder search_order(const OrderProblem& problem, const OrderSearchOptions& options = {});

}  // namespace plumbline
