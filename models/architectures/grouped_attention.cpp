// Reading families by their facts.
//
// SPDX-License-Identifier: MIT
#include "models/architectures/grouped_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "models/profile/model_checks.h"

namespace plumbline {
namespace {

bool has_bias(ConfigFile& file, const BiasKey& bias) {
  return bias.key.empty() ? bias.otherwise : file.flag(bias.key, bias.otherwise);
}

std::string_view but_each_fourth(std::int64_t block) {
  return block % 4 == 3 ? kFullAttention : kSlidingAttention;
}

void read_windows(ConfigFile& file, TransformerShape& shape, const GroupedFacts& facts) {
  if (facts.windows == WindowBlocks::none) return file.pass_over({"layer_types"});
  const std::int64_t window = file.count_or("sliding_window", facts.window);
  if (facts.windows == WindowBlocks::all) {
    if (window > 0) shape.window = window;
    return;
  }
  const auto types = block_words(file, shape, "layer_types", but_each_fourth);
  if (file.is_ok() && window > 0) lay_out_windows(shape, types, window);
}

/// The inner width of an MLP whose size is a multiple of the hidden size: two thirds of it, rounded
/// up to a multiple of 256 (modeling_decilm.py).
std::int64_t inner_width(double multiple, std::int64_t hidden) {
  constexpr std::int64_t step = 256;
  const auto width = static_cast<std::int64_t>(2 * multiple * static_cast<double>(hidden) / 3);
  return (width + step - 1) / step * step;
}

/// The attention of one of DeciLM's blocks.
void read_nas_attention(ConfigFile& file, BlockShape& block, std::string& prefix) {
  if (file.flag("no_op", false)) {
    block.mixer = Mixer::none;
    prefix += "no_attention_";
  } else if (file.flag("replace_with_linear", false)) {
    block.mixer = Mixer::linear;
    prefix += "linear_";
  } else {
    const std::int64_t each = file.size_or("n_heads_in_group", 1);
    if (block.heads % each != 0)
      return file.refuse("n_heads_in_group",
                         fmt::format("n_heads_in_group is {}, which does not divide "
                                     "num_attention_heads, {}",
                                     each, block.heads));
    block.key_value_heads = block.heads / each;
    if (const std::int64_t window = file.count_or("window_length", 0); window > 0)
      block.window = window;
    prefix += fmt::format("g{}_", block.key_value_heads);
  }
}

void read_nas_mlp(ConfigFile& file, BlockShape& block, std::int64_t hidden, std::string& prefix) {
  if (file.flag("no_op", false)) {
    block.has_mlp = false;
    prefix += "no_mlp_";
  } else if (file.flag("replace_with_linear", false)) {
    file.refuse("replace_with_linear", "an MLP that is one matrix is not read",
                "needed: what of a block has one matrix in its place");
  } else {
    block.feed_forward = inner_width(file.real_or("ffn_mult", 1), hidden);
    prefix += fmt::format("f{}_", block.feed_forward);
  }
}

}  // namespace

void read_grouped_attention(ConfigFile& file, TransformerShape& shape, const GroupedFacts& facts) {
  read_sizes(file, shape, facts.tied);
  read_heads(file, shape, facts.heads);
  shape.attention_input_bias = has_bias(file, facts.input_bias);
  shape.attention_output_bias = has_bias(file, facts.output_bias);
  shape.feed_forward_bias = has_bias(file, facts.mlp_bias);
  shape.query_key_norm = facts.query_key_norm;
  shape.whole_norms = facts.whole_norms;
  shape.mixer_norms = facts.norms_behind;
  shape.mlp_norms = facts.norms_behind;
}

void read_grouped(ConfigFile& file, TransformerShape& shape, const GroupedFacts& facts) {
  read_grouped_attention(file, shape, facts);
  shape.feed_forward = file.size("intermediate_size");
  shape.further_predictions = file.count_or("num_nextn_predict_layers", 0);
  if (facts.windows == WindowBlocks::none && !file.flag("use_sliding_window", false))
    file.pass_over({"sliding_window"});
  if (facts.input_bias.key.empty()) file.pass_over({"attention_bias"});
  read_windows(file, shape, facts);
}

void read_mpt(ConfigFile& file, TransformerShape& shape) {
  shape.hidden = file.size("d_model");
  shape.blocks = file.size("n_layers", kMaxLayers / 2 - 1);
  shape.heads = file.size("n_heads");
  shape.vocabulary = file.size("vocab_size");
  shape.positions = file.count_or("max_seq_len", 2048);
  const double ratio = file.real_or("expansion_ratio", 4);
  shape.feed_forward = static_cast<std::int64_t>(ratio * static_cast<double>(shape.hidden));
  shape.key_value_heads = shape.heads;
  bool alibi = true;
  if (auto attention = file.map("attn_config")) {
    shape.key_value_heads = attention->size_or("kv_n_heads", shape.heads);
    if (attention->word("attn_type") == "multiquery_attention") shape.key_value_heads = 1;
    alibi = attention->flag("alibi", true);
    shape.query_key_norm = shape.whole_norms = attention->flag("qk_ln", false);
  }
  if (file.is_ok() && shape.hidden % shape.heads != 0)
    file.refuse("n_heads", fmt::format("n_heads is {}, which does not divide d_model, {}",
                                       shape.heads, shape.hidden));
  shape.head_dim = std::max<std::int64_t>(1, shape.hidden / shape.heads);
  shape.positions_in_scores = alibi;
  shape.learned_positions = !alibi && file.flag("learned_pos_emb", true);
  shape.gated = false;
  // Without biases norms have scales alone.
  const bool biases = !file.flag("no_bias", true);
  shape.layer_norm = biases;
  shape.attention_input_bias = shape.attention_output_bias = shape.feed_forward_bias = biases;
  shape.tied = file.flag("tie_word_embeddings", true);
  file.pass_over({"norm_type", "init_config", "init_device", "verbose", "logit_scale",
                  "use_norm_bias", "emb_pdrop"});
}

void read_nemotron_nas(ConfigFile& file, TransformerShape& shape) {
  read_sizes(file, shape, false);
  shape.heads = file.size("num_attention_heads");
  shape.key_value_heads = shape.heads;
  shape.head_dim = std::max<std::int64_t>(1, shape.hidden / shape.heads);
  const bool bias = file.flag("attention_bias", false);
  shape.attention_input_bias = shape.attention_output_bias = bias;
  shape.feed_forward_bias = file.flag("mlp_bias", false);
  file.pass_over({"intermediate_size", "num_key_value_heads"});
  file.section().require("block_configs", "each block has its own attention and MLP");
  const std::vector<YamlNode>* list = file.section().list("block_configs");
  if (!list || !file.is_ok()) return;
  file.check_length("block_configs", *list, shape.blocks);
  if (!file.is_ok()) return;
  const BlockShape base = shape;
  std::vector<YamlNode> entries = *list;
  std::vector<BlockKind> blocks;
  Diagnostics problems;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    ConfigFile entry(entries[i], fmt::format("block_configs[{}]", i), problems);
    BlockKind kind{"", base};
    if (auto attention = entry.map("attention"))
      read_nas_attention(*attention, kind.block, kind.prefix);
    if (auto mlp = entry.map("ffn")) read_nas_mlp(*mlp, kind.block, shape.hidden, kind.prefix);
    blocks.push_back(std::move(kind));
  }
  for (const Diagnostic& problem : problems)
    file.section().error(problem.mark, problem.message, problem.help);
  if (!problems.empty()) return;
  lay_out(shape, [&](std::int64_t i) { return blocks[static_cast<std::size_t>(i)]; });
}

}  // namespace plumbline
