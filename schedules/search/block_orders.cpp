// From a block to due times.
//
// SPDX-License-Identifier: MIT
#include "schedules/search/block_orders.h"

#include <algorithm>
#include <cmath>

namespace plumbline {

std::uint32_t chunks_of(const OrderProblem& problem) {
  return std::max(1U, (problem.stage_count() + problem.devices - 1) / problem.devices);
}

ListRules rules_of(const OrderProblem& problem, const OrderBlock& block) {
  const std::vector<OrderTime> work = problem.work_by_device();
  const double unit = static_cast<double>(*std::max_element(work.begin(), work.end())) /
                      std::max(1U, problem.micro_batches);
  const auto in_time = [&](double share) {
    return static_cast<OrderTime>(std::llround(share * unit));
  };
  const std::uint32_t n = problem.stage_count();
  ListRules rules;
  for (auto& due : rules.due) due.resize(n);
  auto& [forward, backward, weight] = rules.due;
  OrderTime now = 0;
  for (std::uint32_t s = 0; s < n; ++s) {
    const std::uint32_t chunk = s / problem.devices;
    if (s > 0) now += in_time(s % problem.devices == 0 ? block.turn[chunk] : block.forward[chunk]);
    forward[s] = now - in_time(block.ahead);
    now += problem.stages[s].time[0] + (s + 1 < n ? problem.stages[s].to_next : 0);
  }
  now += in_time(block.turn[0]);
  for (std::uint32_t s = n; s-- > 0;) {
    if (s + 1 < n) now += in_time(block.backward[s / problem.devices]);
    backward[s] = now;
    weight[s] = now + problem.stages[s].time[1] + in_time(block.weight_lag);
    now += problem.stages[s].time[1] + problem.stages[s].to_previous;
  }
  rules.period = std::max<OrderTime>(1, in_time(block.period));
  if (block.earliness >= 0) rules.earliness = in_time(block.earliness) + in_time(block.ahead);
  rules.weights_in_turn = block.weights_in_turn;
  rules.delay_by_weight = block.delay_by_weight;
  rules.delay_by_other = block.delay_by_other;
  return rules;
}

namespace {

/// A block that was good for many costs: pauses of even and odd chunks.
struct KnownBlock {
  double period;
  double down, up;            ///< Before F of even chunks, of odd chunks.
  double back_up, back_down;  ///< Before B of even chunks, of odd chunks.
  double before_backward, before_chunk;
  double ahead, lag, earliness;
  bool in_turn;
  std::uint32_t by_weight, by_other;
};

/// Blocks with two or more chunks. The first rows keep little, the last rows much. They were found
/// by long searches over the costs of orders.md; nothing else depends on them.
constexpr KnownBlock kKnown[] = {
    {0.96, 0, 0.16, 0.17, 0, 0.08, 0.08, 0, 0, 0.44, false, 0, 100},
    {0.97, 0, 0.16, 0.17, 0, 0, 0.03, 0, 0.17, 0.42, false, 100, 25},
    {0.965, 0.045, 0.17, 0.14, -0.02, -0.13, 0.13, 0.15, 0.22, 0.64, false, 0, 71},
    {0.96, 0.03, 0.09, 0.03, 0.055, -0.3, 0.13, -0.17, 0.24, 0.52, false, 57, 90},
    {0.967, -0.07, 0.05, 0.2, 0.05, -0.3, -0.05, 1.19, 0.48, 0.92, true, 100, 27},
    {0.96, -0.01, 0.14, 0.12, 0.01, 0.08, 0.18, -0.27, 0.09, 0.06, false, 0, 68},
    {0.974, -0.016, 0.167, 0.154, 0, -0.04, 0.098, 0.142, 0.58, 2.79, true, 92, 75},
    {0.985, 0.007, 0.134, 0.186, 0.073, -0.17, 0.206, -0.026, 0.298, 2.98, true, 41, 73},
    {0.9, 0, 0.161, 0.16, -0.01, -0.064, 0.02, 0.014, 0.61, 2.85, true, 100, 24},
    {0.93, 0.05, 0.108, 0.077, 0.068, -0.845, 0.122, -0.21, 0.58, 0.4, false, 52, 75},
    {0.95, -0.08, 0.2, 0.22, -0.066, -0.17, 0.15, 0.216, 2, 1.28, false, 16, 94},
    {0.92, -0.07, 0.18, 0.07, 0.1, -0.15, -0.07, 0.52, 0.106, 0.52, false, 31, 94},
    {0.937, 0.037, 0.1, 0.033, 0.085, -0.356, 0.214, -0.118, 0.267, 0.895, false, 31, 90},
    {0.9, -0.01, 0.12, 0.1, 0.02, 0.15, 0.37, -0.575, 1.3, 0.29, true, 100, 21},
    {0.96, 0.028, 0.084, 0.012, 0.074, -0.48, 0.187, -0.506, 0.74, 0.824, false, 61, 96},
    {0.9, 0, 0.106, 0.129, -0.01, -0.136, 0.05, 0.03, 1.06, 0.857, false, 34, 93},
    {1, 0.18, 0.09, 0.17, 0.3, 0.125, -0.145, 0.68, 0.465, -1, false, 0, 26},
    {0.96, 0.43, 0.03, 0.09, 0.41, 0.46, 0.11, 0.95, 0.13, 0.08, true, 26, 96},
    {1.1, 0, 0, 0, 0, 0, 0, 0, 0, 0, false, 0, 100},
    {1.27, 0.05, -0.1, 0.24, -0.08, 0.325, -0.38, 0.18, 0, 0.82, false, 0, 90},
    {1.375, 0.02, -0.1, -0.1, 0.12, -0.25, -0.02, 0.285, 0.17, 0.59, false, 23, 99},
    {1.23, 0.03, 0, 0.14, 0.01, -0.02, -0.06, -0.24, 0.46, 0.11, false, 3, 25},
    {1.18, -0.09, 0.07, 0.03, -0.04, 0.37, -0.11, 0.13, 0.9, 0.21, false, 28, 47},
    {0.93, 0.16, 0.05, 0, 0.17, -0.06, 0, 0, 0.18, 0.14, false, 7, 100},
    {0.94, 0.167, 0.04, -0.01, 0.167, 0, 0.06, -0.09, 0.25, 0.535, false, 3, 100},
    {0.99, 0.295, 0.015, 0.08, 0.32, 0.27, 0, -0.79, 0.05, 0.45, false, 0, 100},
    {0.9, -0.04, 0.18, 0.23, -0.03, -0.19, 0.23, 0.03, 0, 0.8, false, 43, 7},
    {0.91, -0.05, 0.08, 0.17, -0.05, 0.19, -0.01, 0.83, 0.38, 0.43, false, 0, 100},
    {0.95, -0.02, 0.14, 0.22, 0, -0.19, 0.21, 0.16, 0, 0.97, false, 0, 70},
    {1, 0.33, 0, 0, 0.33, 0, 0, 0, 0, -1, false, 100, 100},
    {1, 0, 0.167, 0.167, 0, 0, 0, 0, 0, -1, false, 100, 100},
    {1.06, 0.34, 0.18, 0.02, 0.28, 0.14, -0.12, 0.79, 0.07, -1, false, 0, 88},
    {0.9, 0.14, -0.07, 0.24, 0.24, 0.65, -0.31, 3.4, 0.08, -1, false, 9, 14},
};

}  // namespace

std::vector<OrderBlock> usual_blocks(const OrderProblem& problem) {
  const std::uint32_t chunks = chunks_of(problem);
  const auto pauses = [&](double even, double odd) {
    std::vector<double> result(chunks);
    for (std::uint32_t c = 0; c < chunks; ++c) result[c] = c % 2 == 0 ? even : odd;
    return result;
  };
  std::vector<OrderBlock> blocks;
  for (const double ahead : {0.0, 1e4, -1e4}) {
    for (const std::uint32_t delay : {100U, 0U, 50U}) {
      OrderBlock block;
      block.forward = block.backward = block.turn = pauses(0, 0);
      block.ahead = ahead;
      block.delay_by_weight = delay;
      blocks.push_back(block);
    }
  }
  for (const double period : {1.0, 1.15}) {
    OrderBlock block;
    block.period = period;
    block.forward = block.backward = block.turn = pauses(0, 0);
    block.earliness = 0;
    blocks.push_back(block);
    block.weights_in_turn = true;
    blocks.push_back(block);
  }
  if (chunks == 1) return blocks;
  for (const KnownBlock& known : kKnown) {
    OrderBlock block;
    block.period = known.period;
    block.forward = pauses(known.down, known.up);
    block.backward = pauses(known.back_up, known.back_down);
    block.turn.assign(chunks, known.before_chunk);
    block.turn.front() = known.before_backward;
    block.ahead = known.ahead;
    block.weight_lag = known.lag;
    block.earliness = known.earliness;
    block.weights_in_turn = known.in_turn;
    block.delay_by_weight = known.by_weight;
    block.delay_by_other = known.by_other;
    blocks.push_back(block);
  }
  return blocks;
}

}  // namespace plumbline
