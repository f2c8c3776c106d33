// Random questions of orders.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "schedules/search/order_problem.h"

namespace plumbline::test {

/// The shape of a random question.
struct ProblemShape {
  std::uint32_t devices = 2;
  std::uint32_t chunks = 1;  ///< With two they stand in a vee.
  std::uint32_t micro_batches = 3;
  bool split = true;
};

/// Stages with random times, links with random latencies, a random number in flight.
inline OrderProblem random_problem(const ProblemShape& shape, std::mt19937& random) {
  const auto upto = [&](std::uint32_t n) { return static_cast<OrderTime>(random() % n); };
  OrderProblem problem;
  problem.devices = shape.devices;
  problem.micro_batches = shape.micro_batches;
  problem.split = shape.split;
  const std::uint32_t n = shape.devices * shape.chunks;
  for (std::uint32_t s = 0; s < n; ++s) {
    OrderStage stage;
    stage.device = s < shape.devices ? s : n - 1 - s;
    stage.time = {1 + upto(20), 1 + upto(20), shape.split ? 1 + upto(20) : 0};
    problem.stages.push_back(stage);
  }
  for (std::uint32_t s = 0; s + 1 < n; ++s) {
    if (problem.stages[s].device == problem.stages[s + 1].device) continue;
    problem.stages[s].to_next = upto(5);
    problem.stages[s + 1].to_previous = upto(5);
  }
  OrderLimit limit;
  const OrderTime room = shape.chunks + upto(shape.chunks * shape.micro_batches);
  limit.room.assign(shape.devices, room);
  limit.forward.assign(n, 1);
  limit.backward.assign(n, 0);
  limit.during.assign(n, 0);
  problem.limits.push_back(limit);
  return problem;
}

/// The same question without a flush: of the longest span, with random updates.
inline OrderProblem without_flush(OrderProblem problem, std::mt19937& random) {
  problem.goal = OrderGoal::span;
  for (std::uint32_t d = 0; d < problem.devices; ++d)
    problem.after.push_back(static_cast<OrderTime>(random() % 10));
  return problem;
}

/// What is to be short, from the ends of ops alone.
inline OrderTime length_of(const OrderProblem& problem, const DeviceOrders& orders,
                           const OrderTimes& times) {
  OrderTime length = 0;
  for (std::uint32_t d = 0; d < problem.devices; ++d) {
    if (orders[d].empty()) continue;
    const std::uint32_t first = orders[d].front();
    const OrderTime begin =
        times.end[first] - problem.time(problem.kind_of(first), problem.stage_of(first),
                                        problem.micro_batch_of(first));
    const bool own = problem.goal == OrderGoal::span;
    length = std::max(length, times.end[orders[d].back()] - (own ? begin : 0) +
                                  (problem.after.empty() ? 0 : problem.after[d]));
  }
  return length;
}

}  // namespace plumbline::test
