// Scans beside attention.
//
// SPDX-License-Identifier: MIT
#include "models/architectures/hybrids.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/architectures/block_parts.h"
#include "models/architectures/grouped_attention.h"
#include "models/profile/model_checks.h"

namespace plumbline {
namespace {

BlockShape scanning(BlockShape block, const Scan& scan) {
  block.mixer = Mixer::scan;
  block.scan = scan;
  block.output_gate = 0;
  block.query_key_norm = false;
  return block;
}

/// A letter of hybrid_override_pattern as the word of layers_block_type.
std::string word_of(char letter) {
  switch (letter) {
    case 'M':
      return "mamba";
    case '*':
      return "attention";
    case 'E':
      return "moe";
    case '-':
      return "mlp";
    default:
      return std::string(1, letter);
  }
}

/// The blocks of a Nemotron-H, by the words of its list or by the letters of its pattern.
std::vector<std::string> read_blocks(ConfigFile& file) {
  std::vector<std::string> blocks = file.words("layers_block_type");
  const std::string pattern = file.word("hybrid_override_pattern");
  if (blocks.empty()) {
    for (const char letter : pattern) blocks.push_back(word_of(letter));
  }
  if (blocks.empty())
    file.section().require("hybrid_override_pattern",
                           "what each block is: M, * for attention, E for experts, - for an MLP");
  return blocks;
}

Scan read_mamba(ConfigFile& file) {
  return {.kind = ScanKind::mamba2,
          .heads = file.size("mamba_num_heads"),
          .key_heads = file.size("n_groups"),
          .key_size = file.size("ssm_state_size"),
          .value_size = file.size("mamba_head_dim"),
          .convolution = file.size_or("conv_kernel", 4),
          .chunk = file.size_or("chunk_size", 128),
          .has_convolution_bias = file.flag("use_conv_bias", true),
          .has_bias = file.flag("use_bias", false)};
}

/// Experts of two matrices, on tokens that may be made narrower for them.
void read_nemotron_experts(ConfigFile& file, BlockShape& block) {
  read_experts(file, block, {.experts = "n_routed_experts"});
  read_groups(file, block);
  block.expert_hidden = file.count_or("moe_latent_size", 0);
  block.shared_feed_forward = file.size("moe_shared_expert_intermediate_size");
  file.pass_over({"n_shared_experts"});
}

/// Whether the list of 1-based numbers under a key has block `i`.
bool has_block(const std::vector<std::int64_t>& list, std::int64_t i) {
  return std::find(list.begin(), list.end(), i + 1) != list.end();
}

}  // namespace

/// modeling_qwen3_next.py, modeling_qwen3_5.py: the projection of queries also makes a gate for
/// each number of attention's output; the shared expert is behind a gate of one number.
void read_qwen3_next(ConfigFile& file, TransformerShape& shape) {
  read_grouped_attention(file, shape,
                         {.heads = {2, 256},
                          .input_bias = {"attention_bias", false},
                          .output_bias = {"attention_bias", false},
                          .query_key_norm = true});
  if (file.flag("attn_output_gate", true)) shape.output_gate = shape.heads * shape.head_dim;
  const Scan scan{.kind = ScanKind::gated_delta,
                  .heads = file.size("linear_num_value_heads"),
                  .key_heads = file.size("linear_num_key_heads"),
                  .key_size = file.size("linear_key_head_dim"),
                  .value_size = file.size("linear_value_head_dim"),
                  .convolution = file.size_or("linear_conv_kernel_dim", 4)};
  const bool has_experts = file.has("num_experts");
  std::int64_t width = 1;
  if (has_experts) {
    read_experts(file, shape);
    shape.shared_feed_forward = file.size("shared_expert_intermediate_size");
    shape.shared_gate = 1;
    width = file.size_or("intermediate_size", 1);
  } else {
    shape.feed_forward = width = file.size("intermediate_size");
  }
  const std::int64_t step = file.size_or("decoder_sparse_step", 1);
  const std::vector<std::int64_t> dense_at = file.numbers("mlp_only_layers");
  const std::int64_t interval = file.size_or("full_attention_interval", 4);
  const auto types = block_words(file, shape, "layer_types", [&](std::int64_t i) {
    return (i + 1) % interval == 0 ? kFullAttention : kLinearAttention;
  });
  shape.further_predictions = file.count_or("mtp_num_hidden_layers", 0);
  file.pass_over({"mamba_ssm_dtype", "mtp_use_dedicated_embeddings", "output_gate_type"});
  if (!file.is_ok()) return;
  const BlockShape full = shape;
  lay_out(shape, [&](std::int64_t i) {
    const bool is_linear = types[static_cast<std::size_t>(i)] == kLinearAttention;
    const bool is_dense =
        (i + 1) % step != 0 || std::find(dense_at.begin(), dense_at.end(), i) != dense_at.end();
    BlockShape block = is_linear ? scanning(full, scan) : full;
    if (has_experts && is_dense) block = dense_block(block, width);
    return BlockKind{is_linear ? "linear_" : "", block};
  });
  shape.further_block = full;
}

/// NVIDIA 2025, "Nemotron-H", section 2; modeling_nemotron_h.py. Attention has no rotation.
void read_nemotron_h(ConfigFile& file, TransformerShape& shape) {
  const std::vector<std::string> blocks = read_blocks(file);
  const auto has = [&](std::string_view word) {
    return std::find(blocks.begin(), blocks.end(), word) != blocks.end();
  };
  shape.hidden = file.size("hidden_size");
  shape.blocks = file.size_or("num_hidden_layers", std::max<std::int64_t>(1, std::ssize(blocks)));
  shape.vocabulary = file.size("vocab_size");
  shape.positions = file.count_or("max_position_embeddings", 0);
  shape.tied = file.flag("tie_word_embeddings", false);
  shape.positions_in_scores = true;
  shape.heads = file.size("num_attention_heads");
  shape.key_value_heads = file.size_or("num_key_value_heads", shape.heads);
  shape.head_dim = file.size(file.either("head_dim", "attention_head_dim"));
  shape.attention_input_bias = shape.attention_output_bias = file.flag("attention_bias", false);
  shape.gated = false;
  BlockShape dense = shape;
  dense.feed_forward = file.size("intermediate_size");
  dense.feed_forward_bias = file.flag("mlp_bias", false);
  if (has("moe")) read_nemotron_experts(file, shape);
  const Scan scan = has("mamba") ? read_mamba(file) : Scan{};
  shape.further_predictions = file.count_or("num_nextn_predict_layers", 0);
  file.pass_over({"expand", "mamba_hidden_act", "mamba_proj_bias", "mamba_ssm_cache_dtype",
                  "mlp_hidden_act", "moe_shared_expert_overlap", "mtp_hybrid_override_pattern",
                  "mtp_layers_block_type", "num_logits_to_keep", "rescale_prenorm_residual",
                  "residual_in_fp32", "time_step_rank", "use_mamba_kernels", "sliding_window",
                  "moe_intermediate_size", "moe_shared_expert_intermediate_size", "chunk_size"});
  file.check_length("hybrid_override_pattern", blocks, shape.blocks);
  if (!file.is_ok()) return;
  const BlockShape both = shape;
  const auto kind_of = [&](std::int64_t i) -> BlockKind {
    const std::string& word = blocks[static_cast<std::size_t>(i)];
    if (word == "mamba") return {"mamba_", mixer_alone(scanning(both, scan))};
    if (word == "attention") return {"attending_", mixer_alone(both)};
    if (word == "moe") return {"moe_", mlp_alone(both)};
    if (word != "mlp" && file.is_ok())
      file.refuse(file.has("layers_block_type") ? "layers_block_type" : "hybrid_override_pattern",
                  fmt::format("block {} is '{}', which is no kind of block that is read", i, word),
                  "mamba (M), attention (*), moe (E) and mlp (-) are");
    return {"dense_", mlp_alone(dense)};
  };
  lay_out(shape, kind_of);
  shape.further_block = both;
}

/// Kimi Team 2025, "Kimi Linear", section 4, and 2026, "Kimi K3": attention over what blocks before
/// have made (attn_res_block_size) costs next to nothing but its parameters.
void read_kimi_linear(ConfigFile& file, TransformerShape& shape) {
  read_sizes(file, shape, false);
  read_latent(file, shape);
  if (file.flag("mla_use_output_gate", false))
    shape.output_gate = shape.heads * shape.latent->value;
  read_experts(file, shape, {.chosen = "num_experts_per_token"});
  shape.expert_hidden = file.count_or("routed_expert_hidden_size", 0);
  if (shape.expert_hidden > 0 && file.flag("latent_moe_use_norm", false))
    shape.mlp_tensors.push_back({"norm of what experts make", shape.expert_hidden});
  shape.shared_feed_forward = file.count_or("num_shared_experts", 0) * shape.expert_feed_forward;
  const std::int64_t width = file.size("intermediate_size");
  const std::int64_t first = file.count_or("first_k_dense_replace", 0);
  const std::int64_t step = file.size_or("moe_layer_freq", 1);
  Scan scan{.kind = ScanKind::kimi_delta};
  std::vector<std::int64_t> linear_at;
  file.section().require("linear_attn_config", "the blocks and heads of Kimi delta attention");
  if (auto own = file.map("linear_attn_config")) {
    scan.heads = scan.key_heads = own->size("num_heads");
    scan.key_size = scan.value_size = own->size("head_dim");
    scan.convolution = own->size_or("short_conv_kernel_size", 4);
    scan.gate_rank = own->flag("use_full_rank_gate", false) ? 0 : scan.key_size;
    // Kimi K3's weights have a decay for each number of a key, shared by its heads.
    scan.decay_numbers = own->has("gate_lower_bound") ? scan.key_size : 0;
    own->section().require("kda_layers", "the blocks of Kimi delta attention, from 1");
    linear_at = own->numbers("kda_layers");
  }
  const bool over_blocks = file.count_or("attn_res_block_size", 0) > 0;
  file.pass_over({"activation_situ_beta", "activation_situ_linear_beta", "mla_use_nope",
                  "moe_renormalize", "moe_router_activation_func", "num_expert_group", "topk_group",
                  "use_grouped_topk", "num_nextn_predict_layers"});
  if (!file.is_ok()) return;
  BlockShape experts = shape;
  BlockShape dense = dense_block(shape, width);
  if (over_blocks) {
    const SmallTensor own{"norm and scores over blocks before", 2 * shape.hidden};
    for (BlockShape* block : {&experts, &dense}) {
      block->mixer_tensors.push_back(own);
      block->mlp_tensors.push_back(own);
    }
    shape.head_tensors = {own};
    shape.facts.notes.emplace_back(
        "attn_res_block_size: what blocks before have made goes from stage to stage, too, and is "
        "not counted but for its parameters");
  }
  lay_out(shape, [&](std::int64_t i) {
    const BlockShape& block = i >= first && i % step == 0 ? experts : dense;
    const bool is_linear = has_block(linear_at, i);
    return BlockKind{is_linear ? "linear_" : "", is_linear ? scanning(block, scan) : block};
  });
}

}  // namespace plumbline
