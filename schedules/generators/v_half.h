// Orders that repeat one block of ops every six slots. The block determines their memory.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "schedules/generators/chunk_orders.h"
#include "schedules/order/schedule.h"

namespace plumbline {

/// V-Half (Qi et al. 2024, controllable memory): half the activations that 1F1B keeps on device 0.
/// Placed in a vee. F, I and W are planned as equally long. Blocks are laid one behind the other,
/// each W in the first free slot behind its I. Then every F and I moves to the earliest free slot
/// behind the ops that it needs, if no device then keeps more than the maximum of the blocks.
/// Requires: two chunks.
OpLists v_half(const ChunkShape& shape);

/// V-Min (same source): a third of the activations, with a larger bubble.
OpLists v_min(const ChunkShape& shape);

}  // namespace plumbline
