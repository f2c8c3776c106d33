// The order of `schedule.name: auto`: asked, searched, simulated.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "schedules/search/order_bound.h"
#include "sim/prediction/outcome.h"

namespace plumbline {

/// The most F, B, I and W of an order that is searched for.
inline constexpr std::size_t kMaxOpsToOrder = 3'000'000;

/// A published schedule with the same costs, placement and memory.
struct NamedOrder {
  std::string name;
  double time_s = 0;  ///< From the first op to the last.
  bool fits = true;
};

/// The answer, before it is part of the scenario.
struct OrderAnswer {
  Scenario scenario;              ///< With the order found.
  OrderProblem problem;           ///< The question.
  OrderBound bound;               ///< Of any order of that question.
  double time_s = 0;              ///< Of the order found, from the first op to the last.
  Bytes peak_memory;              ///< Of its fullest device.
  std::vector<NamedOrder> named;  ///< The fastest first.

  /// How much the order is above the bound at most, as a share.
  double gap() const {
    return bound.time > 0 ? time_s * 1e9 / static_cast<double>(bound.time) - 1 : 0;
  }
};

/// The scenario with its order left open, on the devices of its own schedule; one that leaves it
/// open stays as it is. `overrides` are those with which it was read. Errors: schedule.file gives
/// the order; those of parse_scenario().
Result<Scenario> with_open_order(Scenario scenario, std::vector<std::string> overrides);

/// Finds the order of a scenario that leaves it open, and no partition. Errors: a device that has
/// no room for one micro-batch (infeasible); more than kMaxOpsToOrder ops; recomputation that is
/// to be fitted, pairs that overlap; those of predict_resolved(). Once `stop` is set, the best
/// order so far is the answer; null = never.
Result<OrderAnswer> answer_order(Scenario scenario, const std::atomic<bool>* stop = nullptr);

/// From the begin of the first op to the end of the last of the first mini-batch, in seconds.
double time_of_ops(const Outcome& outcome);

/// The scenario of answer_order(), with a note of the bound.
Result<Scenario> find_order(Scenario scenario);

/// The same in words: "at most 1.8 % above any order within this memory".
std::string gap_text(const OrderAnswer& answer);

}  // namespace plumbline
