// Orders that repeat one block of ops every six slots, so that the block says how much memory they
// take.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "schedules/generators/chunk_orders.h"
#include "schedules/order/schedule.h"

namespace plumbline {

/// V-Half (Qi et al. 2024, controllable memory): half of what 1F1B keeps on device 0. Placed in a
/// vee; F, I and W are planned as equally long. Blocks are laid one behind the other, each W into
/// the first slot that they leave free behind its I; then every F and I moves to the earliest free
/// slot behind what it needs in which no device keeps more than blocks do at most. Requires: two
/// chunks.
OpLists v_half(const ChunkShape& shape);

/// V-Min (the same): a third, for a larger bubble.
OpLists v_min(const ChunkShape& shape);

}  // namespace plumbline
