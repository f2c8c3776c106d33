// Families of grouped-query attention and dense MLPs, each as a few facts.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "models/architectures/block_parts.h"

namespace plumbline {

/// A key of biases, and whether there are some where it is absent. Without a key: always so.
struct BiasKey {
  std::string_view key{};
  bool otherwise = false;
};

/// The blocks with a sliding window.
enum class WindowBlocks : std::uint8_t {
  none,
  all,             ///< sliding_window is that of all blocks.
  but_each_fourth  ///< All but blocks 3, 7, ..., unless layer_types says otherwise.
};

/// The facts that a family's configuration class and modelling code share for all its models.
struct GroupedFacts {
  bool tied = false;
  HeadDefaults heads{};
  BiasKey input_bias{};   ///< Of queries, keys and values.
  BiasKey output_bias{};  ///< Of the projection.
  BiasKey mlp_bias{};
  bool query_key_norm = false;
  bool whole_norms = false;       ///< Of all heads together.
  std::int64_t norms_behind = 0;  ///< Behind attention, and as many behind the MLP.
  WindowBlocks windows = WindowBlocks::none;
  std::int64_t window = 0;  ///< Used where the file has no sliding_window.
};

/// Reads sizes, heads, biases and norms.
void read_grouped_attention(ConfigFile& file, TransformerShape& shape, const GroupedFacts& facts);
/// Reads a whole model of such blocks with dense MLPs.
void read_grouped(ConfigFile& file, TransformerShape& shape, const GroupedFacts& facts);

/// MPT's own names of keys.
void read_mpt(ConfigFile& file, TransformerShape& shape);
/// Blocks with heads and widths of their own, or without attention or MLP (NVIDIA's DeciLM).
void read_nemotron_nas(ConfigFile& file, TransformerShape& shape);

}  // namespace plumbline
