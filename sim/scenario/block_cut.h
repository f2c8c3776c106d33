// Cuts of a transformer that count blocks: evenly, or as a layout of Megatron-LM says.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "base/diagnostic.h"
#include "models/profile/layer_units.h"
#include "sim/scenario/layout_string.h"

namespace plumbline {

/// Layers of each stage where blocks are cut evenly, the first (blocks mod stages) stages with one
/// more; what stands before the first block belongs to the first stage, what stands behind a block
/// to that block's. Errors, at `mark`: no block, fewer blocks than stages.
Result<std::vector<std::uint32_t>> even_block_counts(const std::vector<LayerUnit>& units,
                                                     std::uint32_t stages, const Mark& mark);

/// Layers of each stage of a layout. Errors, at `mark`: another number of embeddings, blocks,
/// modules or heads than the model has, or in another order; a layer that no letter stands for.
Result<std::vector<std::uint32_t>> layout_counts(const std::vector<LayerUnit>& units,
                                                 const LayoutString& layout, const Mark& mark);

}  // namespace plumbline
