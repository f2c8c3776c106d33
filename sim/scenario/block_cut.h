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

/// The number of layers of each stage if blocks are cut evenly; the first (blocks mod stages)
/// stages have one block more. Layers before the first block belong to the first stage; layers
/// behind a block belong to that block's stage. Errors, at `mark`: no block, fewer blocks than
/// stages.
Result<std::vector<std::uint32_t>> even_block_counts(const std::vector<LayerUnit>& units,
                                                     std::uint32_t stages, const Mark& mark);

/// The number of layers of each stage of a layout. Errors, at `mark`: embeddings, blocks, modules
/// or heads in another number or order than in the model; a layer without a letter.
Result<std::vector<std::uint32_t>> layout_counts(const std::vector<LayerUnit>& units,
                                                 const LayoutString& layout, const Mark& mark);

}  // namespace plumbline
