// Their blocks, by the lists of the files.
//
// SPDX-License-Identifier: MIT
#include "models/architectures/deepseek.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/architectures/block_parts.h"

namespace plumbline {
namespace {

/// Which blocks run an index of their own: "full"; "shared" ones take what one before has chosen.
std::vector<std::string> index_kinds(ConfigFile& file, const TransformerShape& shape) {
  const std::int64_t step = std::max<std::int64_t>(1, file.count_or("index_topk_freq", 1));
  const std::int64_t offset = file.count_or("index_skip_topk_offset", 2);
  const std::string pattern = file.word("index_topk_pattern");
  return block_words(file, shape, "indexer_types", [&](std::int64_t i) -> std::string_view {
    if (static_cast<std::size_t>(i) < pattern.size())
      return pattern[static_cast<std::size_t>(i)] == 'S' ? "shared" : "full";
    return std::max<std::int64_t>(i - offset + 1, 0) % step == 0 ? "full" : "shared";
  });
}

/// Reads experts, those for all tokens, and their groups.
void read_deepseek_experts(ConfigFile& file, TransformerShape& shape) {
  read_experts(file, shape, {.experts = "n_routed_experts"});
  read_groups(file, shape);
  shape.shared_feed_forward = file.count_or("n_shared_experts", 1) * shape.expert_feed_forward;
}

/// Compressed attention with keys for `stride` tokens; 0 = a window alone.
BlockShape with_keys_for(BlockShape block, std::int64_t stride, const KeyIndex& index) {
  constexpr std::int64_t of_index = 4;  // compressed sparse attention; the other takes all keys
  block.compressed->stride = stride;
  block.compressed->overlaps = stride == of_index;
  if (stride == of_index) block.index = index;
  return block;
}

}  // namespace

/// DeepSeek-AI 2025, "DeepSeek-V3.2", section 2.1: queries of the index are made of the compressed
/// ones, its key of the token, and a layer norm follows the key (modeling_deepseek_v32.py).
void read_deepseek_v32(ConfigFile& file, TransformerShape& shape) {
  read_sizes(file, shape, false);
  read_latent(file, shape);
  const bool bias = file.flag("attention_bias", false);
  shape.attention_input_bias = shape.attention_output_bias = bias;
  read_deepseek_experts(file, shape);
  shape.further_predictions = file.count_or("num_nextn_predict_layers", 0);
  const std::int64_t width = file.size("intermediate_size");
  const std::int64_t first = file.count_or("first_k_dense_replace", 3);
  KeyIndex index{.heads = file.size("index_n_heads"),
                 .size = file.size("index_head_dim"),
                 .chosen = file.size("index_topk"),
                 .of_compressed = true,
                 .is_weighted = true};
  index.norm_numbers = 2 * index.size;
  if (shape.latent->query_rank == 0 && file.is_ok())
    file.refuse("index_n_heads", "an index needs compressed queries, and q_lora_rank is not there");
  const auto indices = index_kinds(file, shape);
  const auto mlps = block_words(file, shape, "mlp_layer_types", [&](std::int64_t i) {
    return i < first ? std::string_view("dense") : std::string_view("sparse");
  });
  file.pass_over({"moe_layer_freq", "indexer_rope_interleave", "index_share_for_mtp_iteration",
                  "moe_router_dtype", "layer_types", "num_experts"});
  if (!file.is_ok()) return;
  shape.index = index;
  const BlockShape experts = shape;
  lay_out(shape, [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    const bool is_own = indices[at] != "shared";
    BlockKind kind{is_own ? "" : "shared_index_",
                   mlps[at] == "dense" ? dense_block(experts, width) : experts};
    kind.block.index->is_own = is_own;
    return kind;
  });
  shape.further_block = experts;  // a module has an index of its own
}

/// DeepSeek-AI 2026, "DeepSeek-V4", section 2; modeling_deepseek_v4.py. The table by which the
/// first blocks choose experts gets no gradient.
void read_deepseek_v4(ConfigFile& file, TransformerShape& shape) {
  read_sizes(file, shape, false);
  shape.mixer = Mixer::compressed;
  shape.heads = file.size("num_attention_heads");
  shape.key_value_heads = 1;
  shape.head_dim = file.size("head_dim");
  shape.window = file.size("sliding_window");
  shape.streams = file.size_or("hc_mult", 4);
  shape.compressed = CompressedAttention{.query_rank = file.size("q_lora_rank"),
                                         .output_groups = file.size("o_groups"),
                                         .output_rank = file.size("o_lora_rank")};
  shape.mixer_tensors = {{"sinks of the softmax", shape.heads, true}};
  KeyIndex index{.heads = file.size("index_n_heads"),
                 .size = file.size("index_head_dim"),
                 .chosen = file.size("index_topk"),
                 .of_compressed = true,
                 .is_weighted = true};
  index.norm_numbers = index.size;
  read_deepseek_experts(file, shape);
  const std::vector<std::int64_t> ratios = file.numbers("compress_ratios");
  file.check_length("compress_ratios", ratios, shape.blocks);
  if (ratios.empty())
    file.section().require("compress_ratios",
                           "tokens for a key, of each block; 0 = a window alone");
  if (file.is_ok() && shape.heads % shape.compressed->output_groups != 0)
    file.refuse("o_groups", fmt::format("o_groups is {}, which does not divide "
                                        "num_attention_heads, {}",
                                        shape.compressed->output_groups, shape.heads));
  if (file.count_or("num_nextn_predict_layers", 0) > 0)
    shape.facts.notes.emplace_back(
        "modules that predict further tokens are not counted: they are not part of the public "
        "model code");
  file.pass_over({"num_key_value_heads", "qk_rope_head_dim", "hc_eps", "hc_sinkhorn_iters",
                  "num_hash_layers", "compress_rope_theta", "swiglu_limit", "expert_dtype",
                  "moe_layer_freq", "first_k_dense_replace", "layer_types", "mlp_layer_types"});
  if (!file.is_ok()) return;
  const BlockShape base = shape;
  lay_out(shape, [&](std::int64_t i) {
    const std::int64_t stride = ratios[static_cast<std::size_t>(i)];
    return BlockKind{stride == 0 ? "sliding_" : fmt::format("compressed_{}_", stride),
                     with_keys_for(base, stride, index)};
  });
}

}  // namespace plumbline
