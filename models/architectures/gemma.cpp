// Their windows, and Gemma 4's two kinds of heads.
//
// SPDX-License-Identifier: MIT
#include "models/architectures/gemma.h"

#include "models/architectures/block_parts.h"
#include "models/architectures/grouped_attention.h"

namespace plumbline {
namespace {

/// Keys that scale or cap scores and logits: they cost nothing.
void pass_over_scales(ConfigFile& file) {
  file.pass_over({"query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping",
                  "cache_implementation", "use_bidirectional_attention", "sliding_window_pattern",
                  "_sliding_window_pattern"});
}

GroupedFacts facts_of(std::int64_t key_value_heads, bool norms) {
  return {.tied = true,
          .heads = {key_value_heads, 256},
          .input_bias = {"attention_bias", false},
          .output_bias = {"attention_bias", false},
          .query_key_norm = norms,
          .norms_behind = 1};
}

/// Reads the heads of blocks that see all tokens: others than those with windows have.
BlockShape full_block_of_gemma4(ConfigFile& file, BlockShape block) {
  block.head_dim = file.size_or("global_head_dim", 512);
  block.values_are_keys = file.flag("attention_k_eq_v", false);
  const std::int64_t groups = file.size_or("num_global_key_value_heads", block.key_value_heads);
  if (block.values_are_keys) block.key_value_heads = groups;
  return block;
}

/// Experts beside a dense MLP, with norms in front of them and behind both.
void read_experts_of_gemma4(ConfigFile& file, TransformerShape& shape) {
  if (!file.flag("enable_moe_block", false))
    return file.pass_over(
        {"num_experts", "top_k_experts", "moe_intermediate_size", "expert_intermediate_size"});
  read_experts(file, shape, {.chosen = "top_k_experts"});
  shape.shared_feed_forward = shape.feed_forward;
  shape.mlp_norms += 3;
  shape.mlp_tensors.push_back({"scales of the router's input", shape.hidden});
  shape.mlp_tensors.push_back({"scales of experts", shape.experts});
}

}  // namespace

void read_gemma2(ConfigFile& file, TransformerShape& shape) {
  read_grouped(file, shape, facts_of(4, false));
  pass_over_scales(file);
  const auto types = block_words(file, shape, "layer_types", [](std::int64_t i) {
    return i % 2 == 0 ? kSlidingAttention : kFullAttention;
  });
  const std::int64_t window = file.size_or("sliding_window", 4096);
  if (file.is_ok()) lay_out_windows(shape, types, window);
}

void read_gemma3(ConfigFile& file, TransformerShape& shape) {
  GroupedFacts facts = facts_of(4, true);
  // Files of the larger models leave out what Gemma3TextConfig has.
  constexpr std::int64_t heads = 8, vocabulary = 262'208;
  shape.hidden = file.size("hidden_size");
  shape.blocks = file.size("num_hidden_layers");
  shape.vocabulary = file.size_or("vocab_size", vocabulary);
  shape.positions = file.count_or("max_position_embeddings", 131'072);
  shape.tied = file.flag("tie_word_embeddings", true);
  shape.heads = file.size_or("num_attention_heads", heads);
  shape.key_value_heads = file.size_or("num_key_value_heads", facts.heads.key_value_heads);
  shape.head_dim = file.size_or("head_dim", facts.heads.head_dim);
  shape.feed_forward = file.size("intermediate_size");
  shape.query_key_norm = true;
  shape.attention_input_bias = file.flag("attention_bias", false);
  shape.attention_output_bias = shape.attention_input_bias;
  shape.mixer_norms = shape.mlp_norms = facts.norms_behind;
  const std::int64_t step =
      file.size_or(file.either("sliding_window_pattern", "_sliding_window_pattern"), 6);
  pass_over_scales(file);
  const auto types = block_words(file, shape, "layer_types", [&](std::int64_t i) {
    return (i + 1) % step == 0 ? kFullAttention : kSlidingAttention;
  });
  const std::int64_t window = file.size_or("sliding_window", 4096);
  if (file.is_ok()) lay_out_windows(shape, types, window);
}

void read_gemma4(ConfigFile& file, TransformerShape& shape) {
  read_grouped(file, shape, facts_of(4, true));
  pass_over_scales(file);
  if (file.count_or("hidden_size_per_layer_input", 0) > 0)
    file.refuse("hidden_size_per_layer_input",
                "hidden_size_per_layer_input gives each block an embedding of its own, which is "
                "not read",
                "needed: what such embeddings cost in training; models without them are read");
  if (file.count_or("num_kv_shared_layers", 0) > 0)
    file.refuse("num_kv_shared_layers",
                "num_kv_shared_layers lets blocks take keys and values of others, which is not "
                "read",
                "needed: where these are kept in training; models without that are read");
  file.pass_over({"vocab_size_per_layer_input", "use_double_wide_mlp"});
  read_experts_of_gemma4(file, shape);
  const auto types = block_words(file, shape, "layer_types", [](std::int64_t i) {
    return (i + 1) % 6 == 0 ? kFullAttention : kSlidingAttention;
  });
  const std::int64_t window = file.size_or("sliding_window", 512);
  const BlockShape sliding = windowed(shape, window);
  const BlockShape full = full_block_of_gemma4(file, shape);
  if (!file.is_ok()) return;
  lay_out(shape, [&](std::int64_t i) -> BlockKind {
    return types[static_cast<std::size_t>(i)] == kFullAttention ? BlockKind{"", full}
                                                                : BlockKind{"sliding_", sliding};
  });
}

}  // namespace plumbline
