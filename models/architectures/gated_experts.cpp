// One function for each family; biases of routers that only correct the choice of experts get no
// gradient, and are no parameters (transformers keeps them as buffers).
//
// SPDX-License-Identifier: MIT
#include "models/architectures/gated_experts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "models/architectures/block_parts.h"
#include "models/architectures/grouped_attention.h"

namespace plumbline {
namespace {

constexpr std::string_view kNoModules =
    "modules that predict further tokens are not counted: they are not part of the public model "
    "code";

std::int64_t at(const std::vector<std::int64_t>& list, std::int64_t i) {
  return list[static_cast<std::size_t>(i)];
}

/// Gives the first blocks a dense MLP of `width`, and the others the shape's experts.
void lay_out_dense_first(TransformerShape& shape, std::int64_t first, std::int64_t width) {
  const BlockShape experts = shape;
  const BlockShape dense = dense_block(shape, width);
  lay_out(shape, [&](std::int64_t i) { return BlockKind{"", i < first ? dense : experts}; });
}

/// The blocks with experts by their numbers: "2,3,4".
std::set<std::int64_t> blocks_of(ConfigFile& file, std::string_view key) {
  std::set<std::int64_t> blocks;
  for (const std::int64_t number : file.numbers(key)) blocks.insert(number);
  if (!blocks.empty() || !file.has(key)) return blocks;
  const std::string text = file.word(key);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::int64_t number = 0;
    std::from_chars(text.data() + begin, text.data() + end, number);
    blocks.insert(number);
    begin = end + 1;
  }
  return blocks;
}

/// The first number of a key that holds one for all blocks, or one for each.
std::int64_t size_or_first(ConfigFile& file, std::string_view key) {
  const std::vector<std::int64_t> list = file.numbers(key);
  if (list.empty()) return file.size(key);
  if (std::any_of(list.begin(), list.end(), [&](std::int64_t n) { return n != list.front(); }))
    file.refuse(key, fmt::format("{} differs between blocks, which is not read", key),
                "needed: one number for all blocks");
  return list.front();
}

}  // namespace

/// OpenAI 2025, "gpt-oss-120b & gpt-oss-20b Model Card", section 2; modeling_gpt_oss.py.
void read_gpt_oss(ConfigFile& file, TransformerShape& shape) {
  read_grouped_attention(file, shape,
                         {.heads = {8, 64},
                          .input_bias = {"attention_bias", true},
                          .output_bias = {"attention_bias", true}});
  shape.mixer_tensors = {{"sinks of the softmax", shape.heads, true}};
  read_experts(file, shape,
               {.experts = "num_local_experts",
                .chosen = file.either("num_experts_per_tok", "experts_per_token"),
                .width = "intermediate_size"});
  file.pass_over({"experts_per_token", "swiglu_limit", "initial_context_length"});
  shape.expert_bias = true;
  const auto types = block_words(file, shape, "layer_types", [](std::int64_t i) {
    return i % 2 == 0 ? kSlidingAttention : kFullAttention;
  });
  const std::int64_t window = file.size_or("sliding_window", 128);
  if (file.is_ok()) lay_out_windows(shape, types, window);
}

/// Three blocks of four attend within chunks, the fourth without rotation to all tokens
/// (modeling_llama4.py). Norms of queries and keys have no parameters.
void read_llama4(ConfigFile& file, TransformerShape& shape) {
  read_grouped_attention(file, shape,
                         {.heads = {8, 128},
                          .input_bias = {"attention_bias", false},
                          .output_bias = {"attention_bias", false}});
  read_experts(file, shape, {.experts = "num_local_experts", .width = "intermediate_size"});
  shape.shared_feed_forward = shape.expert_feed_forward;
  const std::int64_t width = file.size("intermediate_size_mlp");
  const std::int64_t step = file.size_or("interleave_moe_layer_step", 1);
  const std::int64_t chunk = file.size_or("attention_chunk_size", 8192);
  const std::vector<std::int64_t> listed = file.numbers("moe_layers");
  const std::vector<std::int64_t> rotated = file.numbers("no_rope_layers");
  file.check_length("no_rope_layers", rotated, shape.blocks);
  file.pass_over({"use_qk_norm", "attn_scale", "attn_temperature_tuning", "floor_scale",
                  "for_llm_compressor", "layer_types", "no_rope_layer_interval"});
  if (!file.is_ok()) return;
  const BlockShape experts = shape;
  const BlockShape dense = dense_block(shape, width);
  const std::set<std::int64_t> with_experts(listed.begin(), listed.end());
  lay_out(shape, [&](std::int64_t i) {
    const bool has_experts = listed.empty() ? (i + 1) % step == 0 : with_experts.contains(i);
    const bool in_chunks = rotated.empty() ? (i + 1) % 4 != 0 : at(rotated, i) != 0;
    BlockKind kind{in_chunks ? "chunked_" : "", has_experts ? experts : dense};
    if (in_chunks) {
      kind.block.window = chunk;
      kind.block.by_chunk = true;
    }
    return kind;
  });
}

/// GLM-4.5 Team 2025, "GLM-4.5", section 2.1; modeling_glm4_moe.py.
void read_glm4_moe(ConfigFile& file, TransformerShape& shape) {
  read_grouped_attention(file, shape, {.heads = {8, 128}, .input_bias = {"attention_bias", false}});
  shape.query_key_norm = file.flag("use_qk_norm", false);
  read_experts(file, shape, {.experts = "n_routed_experts"});
  read_groups(file, shape);
  shape.shared_feed_forward = file.count_or("n_shared_experts", 1) * shape.expert_feed_forward;
  shape.further_predictions = file.count_or("num_nextn_predict_layers", 0);
  const std::int64_t first = file.count_or("first_k_dense_replace", 1);
  const std::int64_t width = file.size("intermediate_size");
  file.pass_over({"moe_layer_freq"});
  if (file.is_ok()) lay_out_dense_first(shape, first, width);
}

/// modeling_minimax_m2.py: norms over all heads together. The weights have modules for further
/// tokens, whose layers no public code trains.
void read_minimax_m2(ConfigFile& file, TransformerShape& shape) {
  read_grouped_attention(file, shape, {.heads = {8, 128}});
  shape.query_key_norm = file.flag("use_qk_norm", true);
  shape.whole_norms = file.word("qk_norm_type") != "per_head";
  read_experts(file, shape, {.experts = "num_local_experts", .width = "intermediate_size"});
  shape.shared_feed_forward = file.count_or("shared_intermediate_size", 0);
  if (file.count_or("num_mtp_modules", 0) > 0 && file.flag("use_mtp", true))
    shape.facts.notes.emplace_back(kNoModules);
  file.pass_over({"attn_type_list", "mtp_transformer_layers", "rotary_dim", "use_routing_bias"});
}

/// modeling_minimax_m3_vl.py: an index of a few heads chooses blocks of keys.
void read_minimax_m3(ConfigFile& file, TransformerShape& shape) {
  read_grouped_attention(file, shape, {.heads = {4, 128}});
  shape.query_key_norm = file.flag("use_qk_norm", true);
  shape.whole_norms = file.word("qk_norm_type") == "per_layer";
  read_experts(file, shape, {.experts = "num_local_experts", .width = "intermediate_size"});
  shape.shared_feed_forward = file.count_or("n_shared_experts", 1) *
                              file.count_or("shared_intermediate_size", shape.expert_feed_forward);
  const std::int64_t width = file.size("dense_intermediate_size");
  const std::vector<std::int64_t> experts_at = file.numbers("moe_layer_freq");
  file.check_length("moe_layer_freq", experts_at, shape.blocks);
  if (file.count_or(file.either("num_mtp_modules", "num_nextn_predict_layers"), 0) > 0)
    shape.facts.notes.emplace_back(kNoModules);
  file.pass_over({"num_mtp_modules", "num_nextn_predict_layers", "first_k_dense_replace",
                  "moe_intermediate_size", "rotary_dim", "swiglu_alpha", "swiglu_limit",
                  "use_gemma_norm", "use_routing_bias", "attention_output_gate"});
  KeyIndex index{.heads = 4, .size = 128, .chosen = 2048, .norm_numbers = 256};
  std::vector<std::int64_t> sparse_at;
  if (auto own = file.map("sparse_attention_config")) {
    index.heads = own->size("sparse_num_index_heads");
    index.size = own->size("sparse_index_dim");
    index.chosen = own->size("sparse_topk_blocks") * own->size("sparse_block_size");
    index.norm_numbers = 2 * index.size;
    sparse_at = own->numbers("sparse_attention_freq");
    own->check_length("sparse_attention_freq", sparse_at, shape.blocks);
    if (!own->flag("use_sparse_attention", true))
      sparse_at.assign(static_cast<std::size_t>(shape.blocks), 0);
  }
  if (!file.is_ok()) return;
  const BlockShape experts = shape;
  const BlockShape dense = dense_block(shape, width);
  lay_out(shape, [&](std::int64_t i) {
    const bool is_sparse = sparse_at.empty() ? i >= 3 : at(sparse_at, i) != 0;
    const bool has_experts = experts_at.empty() ? i >= 3 : at(experts_at, i) != 0;
    BlockKind kind{is_sparse ? "sparse_" : "", has_experts ? experts : dense};
    if (is_sparse) kind.block.index = index;
    return kind;
  });
}

/// modeling_mimo_v2_flash.py: blocks with a window have heads of their own, and sinks.
void read_mimo_v2_flash(ConfigFile& file, TransformerShape& shape) {
  read_grouped_attention(file, shape, {.heads = {4, 192}, .input_bias = {"attention_bias", false}});
  shape.value_dim = file.size_or("v_head_dim", 128);
  read_experts(file, shape, {.experts = "n_routed_experts"});
  read_groups(file, shape);
  shape.shared_feed_forward = file.count_or("n_shared_experts", 0) * shape.expert_feed_forward;
  const std::int64_t width = file.size("intermediate_size");
  BlockShape sliding = windowed(shape, file.size_or("sliding_window", 128));
  sliding.heads = file.size_or("swa_num_attention_heads", shape.heads);
  sliding.key_value_heads = file.size_or("swa_num_key_value_heads", 2 * shape.key_value_heads);
  sliding.head_dim = file.size_or("swa_head_dim", shape.head_dim);
  sliding.value_dim = file.size_or("swa_v_head_dim", shape.value_dim);
  BlockShape full = shape;
  const auto add_sinks = [](BlockShape& block) {
    block.mixer_tensors = {{"sinks of the softmax", block.heads, true}};
  };
  if (file.flag("add_swa_attention_sink_bias", true)) add_sinks(sliding);
  if (file.flag("add_full_attention_sink_bias", false)) add_sinks(full);
  const std::vector<std::int64_t> pattern = file.numbers("hybrid_layer_pattern");
  file.check_length("hybrid_layer_pattern", pattern, shape.blocks);
  const std::vector<std::int64_t> experts_at = file.numbers("moe_layer_freq");
  file.check_length("moe_layer_freq", experts_at, shape.blocks);
  file.pass_over({"sliding_window_size", "attention_chunk_size", "attention_value_scale",
                  "swa_rope_theta", "layernorm_epsilon"});
  if (!file.is_ok()) return;
  lay_out(shape, [&](std::int64_t i) {
    const bool is_full = pattern.empty() ? i == 0 || (i + 1) % 6 == 0 : at(pattern, i) == 0;
    const bool has_experts = experts_at.empty() ? i > 0 : at(experts_at, i) != 0;
    const BlockShape& own = is_full ? full : sliding;
    return BlockKind{is_full ? "" : "sliding_", has_experts ? own : dense_block(own, width)};
  });
}

void read_granite_moe(ConfigFile& file, TransformerShape& shape) {
  read_grouped_attention(
      file, shape,
      {.input_bias = {"attention_bias", false}, .output_bias = {"attention_bias", false}});
  read_experts(file, shape, {.experts = "num_local_experts", .width = "intermediate_size"});
  shape.shared_feed_forward = file.count_or("shared_intermediate_size", 0);
}

/// modeling_hunyuan_v1_moe.py: norms of queries and keys, experts and a shared one in each block.
void read_hunyuan_moe(ConfigFile& file, TransformerShape& shape) {
  read_grouped_attention(file, shape,
                         {.input_bias = {"attention_bias", false},
                          .output_bias = {"attention_bias", false},
                          .query_key_norm = true});
  shape.experts = size_or_first(file, "num_experts");
  shape.experts_per_token = size_or_first(file, "moe_topk");
  const std::int64_t width = file.size("intermediate_size");
  shape.expert_feed_forward =
      file.has("moe_intermediate_size") ? size_or_first(file, "moe_intermediate_size") : width;
  shape.shared_feed_forward = width;
  if (file.has("num_shared_expert"))
    shape.shared_feed_forward = width * size_or_first(file, "num_shared_expert");
  file.pass_over({"use_qk_norm", "use_mixed_mlp_moe", "moe_drop_tokens", "moe_layer_num_skipped",
                  "attention_head_dim"});
}

/// modeling_ernie4_5_moe.py.
void read_ernie_moe(ConfigFile& file, TransformerShape& shape) {
  read_grouped_attention(file, shape,
                         {.tied = true,
                          .heads = {4, 0},
                          .input_bias = {"use_bias", false},
                          .output_bias = {"use_bias", false}});
  read_experts(file, shape, {.experts = "moe_num_experts", .chosen = "moe_k"});
  shape.shared_feed_forward =
      file.count_or("moe_num_shared_experts", 2) * shape.expert_feed_forward;
  const std::int64_t width = file.size("intermediate_size");
  const std::int64_t first = file.count_or("moe_layer_start_index", 1);
  const std::int64_t last = file.count_or("moe_layer_end_index", shape.blocks - 1);
  const std::int64_t step = file.size_or("moe_layer_interval", 1);
  file.pass_over({"moe_capacity", "moe_gate", "moe_use_aux_free", "num_nextn_predict_layers"});
  if (!file.is_ok()) return;
  const BlockShape experts = shape;
  const BlockShape dense = dense_block(shape, width);
  lay_out(shape, [&](std::int64_t i) {
    const bool has_experts = i >= first && i <= last && (i + 1) % step == 0;
    return BlockKind{"", has_experts ? experts : dense};
  });
}

/// Ling Team 2025, "Every FLOP Counts"; modeling_bailing_moe.py and _v2.py.
void read_bailing_moe(ConfigFile& file, TransformerShape& shape) {
  read_grouped_attention(
      file, shape, {.input_bias = {"use_qkv_bias", false}, .output_bias = {"use_bias", false}});
  shape.query_key_norm = file.flag("use_qk_norm", false);
  read_experts(file, shape);
  read_groups(file, shape);
  shape.shared_feed_forward =
      file.count_or("num_shared_experts", 0) *
      file.size_or("moe_shared_expert_intermediate_size", shape.expert_feed_forward);
  shape.further_predictions = file.count_or("num_nextn_predict_layers", 0);
  const std::int64_t first = file.count_or("first_k_dense_replace", 0);
  const std::int64_t width = file.size("intermediate_size");
  file.pass_over({"norm_head", "norm_softmax", "num_k_head", "use_rmsnorm", "embedding_dropout",
                  "output_dropout", "moe_router_enable_expert_bias", "score_function",
                  "router_dtype"});
  if (file.is_ok()) lay_out_dense_first(shape, first, width);
}

/// Step 3.5 and 3.7 (modeling_step3p5.py): norms of queries and keys, blocks with windows have
/// heads of their own where attention_other_setting says so.
void read_step3p7(ConfigFile& file, TransformerShape& shape) {
  read_sizes(file, shape, false);
  shape.heads = file.size("num_attention_heads");
  shape.key_value_heads = file.size(file.either("num_key_value_heads", "num_attention_groups"));
  shape.head_dim = file.size_or("head_dim", 128);
  shape.query_key_norm = true;
  read_experts(file, shape,
               {.experts = file.either("num_experts", "moe_num_experts"),
                .chosen = file.either("num_experts_per_tok", "moe_top_k")});
  shape.shared_feed_forward =
      file.count_or(file.either("share_expert_dim", "share_expert_dims"), 0);
  const std::int64_t width = file.size("intermediate_size");
  const std::int64_t window = file.size_or("sliding_window", 512);
  const bool has_gate = file.flag("use_head_wise_attn_gate", false);
  const std::set<std::int64_t> with_experts = blocks_of(file, "moe_layers_enum");
  const std::int64_t first = file.count_or("first_k_dense_replace", 1);
  shape.further_predictions = file.count_or("num_nextn_predict_layers", 0);
  const auto types = block_words(file, shape, "layer_types", [](std::int64_t i) {
    return i % 4 == 0 ? kFullAttention : kSlidingAttention;
  });
  BlockShape sliding = windowed(shape, window);
  if (auto other = file.map("attention_other_setting")) {
    sliding.heads = other->size_or("num_attention_heads", shape.heads);
    sliding.key_value_heads = other->size_or("num_attention_groups", shape.key_value_heads);
    sliding.head_dim = other->size_or("head_dim", shape.head_dim);
  }
  file.pass_over({"num_attention_groups", "moe_num_experts", "moe_top_k", "n_shared_experts",
                  "use_moe_router_bias", "moe_router_scaling_factor", "need_fp32_gate",
                  "moe_router_activation", "swiglu_limits", "swiglu_limits_shared", "max_seq_len",
                  "norm_expert_weight", "use_rope_layers", "yarn_only_types", "use_moe",
                  "partial_rotary_factors", "att_impl_type", "zero_centered", "moe_every_n_layer"});
  if (!file.is_ok()) return;
  const BlockShape full = shape;
  lay_out(shape, [&](std::int64_t i) {
    const bool is_full = types[static_cast<std::size_t>(i)] == kFullAttention;
    const bool has_experts = with_experts.empty() ? i >= first : with_experts.contains(i);
    BlockShape own = is_full ? full : sliding;
    if (has_gate) own.output_gate = own.heads;
    return BlockKind{is_full ? "" : "sliding_", has_experts ? own : dense_block(own, width)};
  });
  // Modules for further tokens have a window and a dense MLP.
  shape.further_block = dense_block(sliding, width);
  if (has_gate) shape.further_block->output_gate = sliding.heads;
}

/// modeling_qwen2_moe.py: a shared expert behind a gate of one number.
void read_qwen2_moe(ConfigFile& file, TransformerShape& shape) {
  read_grouped_attention(file, shape, {.heads = {16, 0}, .input_bias = {"qkv_bias", true}});
  read_experts(file, shape);
  shape.shared_feed_forward = file.size("shared_expert_intermediate_size");
  shape.shared_gate = 1;
  const std::int64_t width = file.size("intermediate_size");
  const std::int64_t step = file.size_or("decoder_sparse_step", 1);
  const std::vector<std::int64_t> dense_at = file.numbers("mlp_only_layers");
  file.pass_over({"use_sliding_window", "sliding_window"});
  if (!file.is_ok()) return;
  const BlockShape experts = shape;
  const BlockShape dense = dense_block(shape, width);
  lay_out(shape, [&](std::int64_t i) {
    const bool is_dense =
        (i + 1) % step != 0 || std::find(dense_at.begin(), dense_at.end(), i) != dense_at.end();
    return BlockKind{"", is_dense ? dense : experts};
  });
}

void read_olmoe(ConfigFile& file, TransformerShape& shape) {
  read_grouped_attention(file, shape,
                         {.input_bias = {"attention_bias", false},
                          .output_bias = {"attention_bias", false},
                          .query_key_norm = true,
                          .whole_norms = true});
  read_experts(file, shape, {.width = "intermediate_size"});
  file.pass_over({"clip_qkv"});
}

}  // namespace plumbline
