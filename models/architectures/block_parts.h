// The parts that blocks of many architectures share: heads, MLPs, experts, and their order.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/architectures/config_file.h"
#include "models/import/transformer_shape.h"

namespace plumbline {

/// The words of layer_types.
inline constexpr std::string_view kFullAttention = "full_attention";
inline constexpr std::string_view kSlidingAttention = "sliding_attention";
inline constexpr std::string_view kLinearAttention = "linear_attention";

/// Reads hidden_size, num_hidden_layers, vocab_size, max_position_embeddings and whether the
/// embedding is tied, where the file does not say so.
void read_sizes(ConfigFile& file, TransformerShape& shape, bool tied);

/// What counts where a file has no such key; 0 = as many as heads, and hidden / heads.
struct HeadDefaults {
  std::int64_t key_value_heads = 0;
  std::int64_t head_dim = 0;
};
/// Reads num_attention_heads, num_key_value_heads and head_dim.
void read_heads(ConfigFile& file, TransformerShape& shape, HeadDefaults otherwise = {});

/// Reads multi-head latent attention.
void read_latent(ConfigFile& file, BlockShape& block);

/// The keys of experts.
struct ExpertKeys {
  std::string_view experts = "num_experts";
  std::string_view chosen = "num_experts_per_tok";
  std::string_view width = "moe_intermediate_size";
};
void read_experts(ConfigFile& file, BlockShape& block, const ExpertKeys& keys = {});
/// Reads groups of experts of which a token uses some: n_group, topk_group.
void read_groups(ConfigFile& file, BlockShape& block);

/// A block without its experts, with a dense MLP of `width`.
BlockShape dense_block(BlockShape block, std::int64_t width);
/// A block whose attention looks back `window` tokens.
BlockShape windowed(BlockShape block, std::int64_t window);
/// A mixer alone, and an MLP alone.
BlockShape mixer_alone(BlockShape block);
BlockShape mlp_alone(BlockShape block);

/// Gives each block its kind. `kind_of(i)` is that of block i: kinds with one prefix are alike, but
/// for one with experts and one without.
void lay_out(TransformerShape& shape, const std::function<BlockKind(std::int64_t)>& kind_of);

/// The same where all blocks are the shape's, and look back `window` tokens but for those whose
/// word is kFullAttention. Requires: there is a word for each block.
void lay_out_windows(TransformerShape& shape, const std::vector<std::string>& types,
                     std::int64_t window);

/// The words of `key` for each block; where it is absent, those that `otherwise` gives.
std::vector<std::string> block_words(
    ConfigFile& file, const TransformerShape& shape, std::string_view key,
    const std::function<std::string_view(std::int64_t)>& otherwise);

}  // namespace plumbline
