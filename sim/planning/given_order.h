// The order of a scenario whose placement and partition are given.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <optional>

#include "sim/planning/found_order.h"

namespace plumbline {

/// What is asked, before it is searched.
struct AskedOrder {
  Scenario scenario;
  Outcome stand_in;  ///< A run of the same ops in some order, without noise.
  OrderProblem problem;
  OrderBound bound;
};

/// The error of what no order is searched for, if there is one: see answer_order().
std::optional<Diagnostic> check_open_order(const Scenario& scenario);

/// The question of a scenario that leaves its order open. Errors: those of answer_order(), found
/// before the search.
Result<AskedOrder> ask_order(Scenario scenario);

/// Searches the order, and simulates it and the published ones. With noise the order is the one
/// whose slow runs are the fastest: see NoisyOrder. Errors: those of predict_resolved().
Result<OrderAnswer> answer_asked(AskedOrder asked, const std::atomic<bool>* stop);

/// Sorts the published orders, the fastest first.
void sort_named(OrderAnswer& answer);

}  // namespace plumbline
