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

}  // namespace plumbline::test
