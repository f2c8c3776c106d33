// Building blocks: when each op of a micro-batch is due, repeated with a period.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/search/list_scheduler.h"

namespace plumbline {

/// The path of a micro-batch down and up the pipeline, and how it repeats. Times are shares of the
/// busiest device's work for one micro-batch. Qi et al. 2024 ("Pipeline parallelism with
/// controllable memory") describe V schedules by such a block: its lifespan is the memory.
struct OrderBlock {
  double period = 1;             ///< From one micro-batch to the next.
  std::vector<double> forward;   ///< Per chunk: a pause before each F but the first.
  std::vector<double> backward;  ///< Per chunk: a pause before each B but the first.
  std::vector<double> turn;  ///< Before the first F of each chunk but 0; [0]: before the first B.
  double ahead = 0;          ///< How much more urgent F's are than they are due.
  double weight_lag = 0;     ///< W is due that much after B has ended.
  double earliness = -1;     ///< See ListRules; below 0: as early as can be.
  bool weights_in_turn = false;         ///< See ListRules.
  std::uint32_t delay_by_weight = 100;  ///< See ListRules.
  std::uint32_t delay_by_other = 100;   ///< See ListRules.
};

/// The stages of one run of the devices: stage s is in chunk s / devices.
std::uint32_t chunks_of(const OrderProblem& problem);

/// The rules by which a list schedule follows the block.
ListRules rules_of(const OrderProblem& problem, const OrderBlock& block);

/// Blocks to begin with: F's as early as there is room, 1F1B, and those of V-half, V-min and
/// others, each with several rules for W.
std::vector<OrderBlock> usual_blocks(const OrderProblem& problem);

}  // namespace plumbline
