// Reading what blocks share.
//
// SPDX-License-Identifier: MIT
#include "models/architectures/block_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/profile/model_checks.h"

namespace plumbline {
namespace {

/// The MLP of one block with the mixer of another.
BlockShape with_mlp_of(BlockShape block, const BlockShape& other) {
  block.has_mlp = other.has_mlp;
  block.feed_forward = other.feed_forward;
  block.gated = other.gated;
  block.experts = other.experts;
  block.experts_per_token = other.experts_per_token;
  block.expert_groups = other.expert_groups;
  block.groups_per_token = other.groups_per_token;
  block.expert_feed_forward = other.expert_feed_forward;
  block.expert_hidden = other.expert_hidden;
  block.shared_feed_forward = other.shared_feed_forward;
  return block;
}

bool is_of_experts(const BlockKind& kind) { return kind.block.has_mlp && kind.block.experts > 0; }

/// The kind for which a test holds first, else the first of all.
template <class Is>
const BlockShape& first_of(const std::vector<BlockKind>& kinds, Is&& is) {
  const auto found = std::find_if(kinds.begin(), kinds.end(), is);
  return (found == kinds.end() ? kinds.front() : *found).block;
}

}  // namespace

void read_sizes(ConfigFile& file, TransformerShape& shape, bool tied) {
  shape.hidden = file.size("hidden_size");
  shape.blocks = file.size("num_hidden_layers", kMaxLayers / 2 - 1);
  shape.vocabulary = file.size("vocab_size");
  shape.positions = file.count_or("max_position_embeddings", 0);
  shape.tied = file.flag("tie_word_embeddings", tied);
}

void read_heads(ConfigFile& file, TransformerShape& shape, HeadDefaults otherwise) {
  shape.heads = file.size("num_attention_heads");
  const std::int64_t groups =
      otherwise.key_value_heads > 0 ? otherwise.key_value_heads : shape.heads;
  shape.key_value_heads = file.size_or("num_key_value_heads", groups);
  const std::int64_t of_head = otherwise.head_dim > 0
                                   ? otherwise.head_dim
                                   : std::max<std::int64_t>(1, shape.hidden / shape.heads);
  shape.head_dim = file.size_or("head_dim", of_head);
  if (file.is_ok() && shape.heads % shape.key_value_heads != 0)
    file.refuse("num_key_value_heads",
                fmt::format("num_key_value_heads is {}, which does not divide "
                            "num_attention_heads, {}",
                            shape.key_value_heads, shape.heads));
  if (file.is_ok() && !file.has("head_dim") && otherwise.head_dim == 0 &&
      shape.hidden % shape.heads != 0)
    file.refuse("num_attention_heads",
                fmt::format("num_attention_heads is {}, which does not divide hidden_size, {}",
                            shape.heads, shape.hidden));
}

void read_latent(ConfigFile& file, BlockShape& block) {
  LatentAttention latent;
  latent.query_rank = file.count_or("q_lora_rank", 0);
  latent.key_value_rank = file.size("kv_lora_rank");
  latent.plain = file.size("qk_nope_head_dim");
  latent.rotated = file.size("qk_rope_head_dim");
  latent.value = file.size("v_head_dim");
  block.latent = latent;
  block.heads = file.size("num_attention_heads");
  block.key_value_heads = block.heads;
  block.head_dim = latent.plain + latent.rotated;
  file.pass_over({"num_key_value_heads", "head_dim"});
}

void read_experts(ConfigFile& file, BlockShape& block, const ExpertKeys& keys) {
  block.experts = file.size(keys.experts);
  block.experts_per_token = file.size(keys.chosen);
  block.expert_feed_forward = file.size(keys.width);
  if (file.is_ok() && block.experts_per_token > block.experts)
    file.refuse(keys.chosen, fmt::format("{} is {}, but {} is {}", keys.chosen,
                                         block.experts_per_token, keys.experts, block.experts));
}

void read_groups(ConfigFile& file, BlockShape& block) {
  const std::int64_t groups = file.size_or("n_group", 1);
  const std::int64_t chosen = file.size_or("topk_group", 1);
  const bool fits = block.experts % groups == 0 && chosen <= groups &&
                    block.experts_per_token <= chosen * (block.experts / groups);
  if (!fits && file.is_ok())
    return file.refuse("topk_group",
                       fmt::format("{} of {} groups of {} experts have no {} for a token", chosen,
                                   groups, block.experts, block.experts_per_token));
  block.expert_groups = groups;
  block.groups_per_token = chosen;
}

BlockShape dense_block(BlockShape block, std::int64_t width) {
  block.experts = 0;
  block.experts_per_token = 0;
  block.expert_feed_forward = 0;
  block.expert_hidden = 0;
  block.expert_groups = 1;
  block.groups_per_token = 1;
  block.expert_bias = false;
  block.shared_feed_forward = 0;
  block.shared_gate = 0;
  block.mlp_tensors.clear();
  block.feed_forward = width;
  return block;
}

BlockShape windowed(BlockShape block, std::int64_t window) {
  block.window = window;
  return block;
}

BlockShape mixer_alone(BlockShape block) {
  block = dense_block(std::move(block), 1);
  block.has_mlp = false;
  return block;
}

BlockShape mlp_alone(BlockShape block) {
  block.mixer = Mixer::none;
  block.mixer_tensors.clear();
  block.mixer_norms = 0;
  return block;
}

void lay_out(TransformerShape& shape, const std::function<BlockKind(std::int64_t)>& kind_of) {
  shape.kinds.clear();
  shape.kind_of.clear();
  for (std::int64_t i = 0; i < shape.blocks; ++i) {
    BlockKind kind = kind_of(i);
    const auto known =
        std::find_if(shape.kinds.begin(), shape.kinds.end(), [&](const BlockKind& other) {
          return other.prefix == kind.prefix && is_of_experts(other) == is_of_experts(kind);
        });
    shape.kind_of.push_back(static_cast<std::uint8_t>(known - shape.kinds.begin()));
    if (known == shape.kinds.end()) shape.kinds.push_back(std::move(kind));
  }
  const BlockShape mixer = first_of(shape.kinds, [](const BlockKind& kind) {
    return kind.block.mixer == Mixer::attention || kind.block.mixer == Mixer::compressed;
  });
  const BlockShape& dense =
      first_of(shape.kinds, [](const BlockKind& kind) { return kind.block.has_mlp; });
  const bool any = std::any_of(shape.kinds.begin(), shape.kinds.end(), is_of_experts);
  const BlockShape& mlp = any ? first_of(shape.kinds, is_of_experts) : dense;
  shape.set_block(with_mlp_of(mixer, mlp));
  if (shape.kinds.size() > 1) return;
  shape.set_block(shape.kinds.front().block);
  shape.kinds.clear();
  shape.kind_of.clear();
}

void lay_out_windows(TransformerShape& shape, const std::vector<std::string>& types,
                     std::int64_t window) {
  const BlockShape full = shape;
  lay_out(shape, [&](std::int64_t i) -> BlockKind {
    const bool is_full = types[static_cast<std::size_t>(i)] == kFullAttention;
    return is_full ? BlockKind{"", full} : BlockKind{"sliding_", windowed(full, window)};
  });
}

std::vector<std::string> block_words(
    ConfigFile& file, const TransformerShape& shape, std::string_view key,
    const std::function<std::string_view(std::int64_t)>& otherwise) {
  std::vector<std::string> list = file.words(key);
  file.check_length(key, list, shape.blocks);
  for (std::int64_t i = static_cast<std::int64_t>(list.size()); i < shape.blocks; ++i)
    list.emplace_back(otherwise(i));
  return list;
}

}  // namespace plumbline
