// One table of the families that were read first, and the keys that they share.
//
// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include "base/bug.h"
#include "base/section_reader.h"
#include "models/architectures/architectures.h"
#include "models/architectures/block_parts.h"
#include "models/profile/model_checks.h"

namespace plumbline {
namespace {

/// The facts that a family's configuration class and modelling code share for all its models.
struct Family {
  std::string_view name;
  bool tied;                     ///< Used where the file has no tie_word_embeddings.
  std::int64_t key_value_heads;  ///< Used where the file has no num_key_value_heads; 0 = heads.
  std::int64_t head_dim = 0;     ///< Used where the file has no head_dim; 0 = hidden / heads.
  bool input_bias = false;       ///< q, k and v have biases, whatever the file says.
  bool takes_attention_bias = false;  ///< attention_bias: biases of q, k, v and the output.
  bool attention_bias = false;        ///< Used where the file has no attention_bias.
  bool takes_mlp_bias = false;
  bool query_key_norm = false;
  std::string_view experts = "";      ///< The key of the number of experts; "" = none.
  std::int64_t window = 0;            ///< Used where the file has no sliding_window; 0 = none.
  bool window_switch = false;         ///< sliding_window counts only with use_sliding_window.
  bool latent = false;                ///< Multi-head latent attention.
  std::int64_t shared_experts = 0;    ///< Used where the file has no n_shared_experts.
  std::int64_t dense_first = 0;       ///< Used where the file has no first_k_dense_replace.
  std::int64_t expert_groups = 0;     ///< Where n_group is absent; 0 = see read_expert_groups().
  std::int64_t groups_per_token = 0;  ///< Used where the file has no topk_group.
  bool plain = false;                 ///< MLPs of two matrices, and norms with biases.
};

constexpr std::array kFamilies = {
    Family{.name = "gpt2", .tied = true, .key_value_heads = 0},
    Family{.name = "llama",
           .tied = false,
           .key_value_heads = 0,
           .takes_attention_bias = true,
           .takes_mlp_bias = true},
    Family{.name = "mistral", .tied = false, .key_value_heads = 8, .window = 4096},
    Family{.name = "mixtral", .tied = false, .key_value_heads = 8, .experts = "num_local_experts"},
    Family{.name = "qwen2",
           .tied = false,
           .key_value_heads = 32,
           .input_bias = true,
           .window = 4096,
           .window_switch = true},
    Family{.name = "qwen3",
           .tied = false,
           .key_value_heads = 32,
           .head_dim = 128,
           .takes_attention_bias = true,
           .query_key_norm = true,
           .window = 4096,
           .window_switch = true},
    Family{.name = "qwen3_moe",
           .tied = false,
           .key_value_heads = 4,
           .takes_attention_bias = true,
           .query_key_norm = true,
           .experts = "num_experts",
           .window = 4096,
           .window_switch = true},
    Family{.name = "deepseek_v2",
           .tied = false,
           .key_value_heads = 0,
           .takes_attention_bias = true,
           .experts = "n_routed_experts",
           .latent = true,
           .shared_experts = 2},
    Family{.name = "deepseek_v3",
           .tied = false,
           .key_value_heads = 0,
           .takes_attention_bias = true,
           .experts = "n_routed_experts",
           .latent = true,
           .shared_experts = 1,
           .dense_first = 3,
           .expert_groups = 8,
           .groups_per_token = 4},
    Family{.name = "nemotron",
           .tied = false,
           .key_value_heads = 0,
           .takes_attention_bias = true,
           .takes_mlp_bias = true,
           .plain = true},
    Family{.name = "starcoder2", .tied = true, .key_value_heads = 2, .plain = true},
    Family{.name = "falcon", .tied = true, .key_value_heads = 0, .plain = true},
    Family{.name = "gpt_neox",
           .tied = false,
           .key_value_heads = 0,
           .takes_attention_bias = true,
           .attention_bias = true,
           .plain = true},
    Family{.name = "phi", .tied = false, .key_value_heads = 0, .plain = true},
};

class ConfigReader {
 public:
  ConfigReader(const std::map<std::string, Mark, std::less<>>& nulls, Diagnostics& problems,
               TransformerShape& shape)
      : nulls_(nulls), problems_(problems), shape_(shape) {}

  void read(SectionReader& file, const Family& family) {
    shape_.family = family.name;
    if (family.name == "gpt2") {
      read_gpt2(file);
    } else if (family.name == "falcon") {
      read_falcon(file, family);
    } else {
      read_rotary(file, family);
    }
  }

 private:
  std::optional<Marked<std::int64_t>> size(SectionReader& file, std::string_view key,
                                           std::int64_t max = kLargestDimension) {
    return file.count(key, 1, max);
  }

  /// Whether the file has the key with the value null.
  bool is_null(std::string_view key) const { return nulls_.contains(key); }

  /// A size that must be there. Adds an error with its name where it is absent.
  std::int64_t needed(SectionReader& file, std::string_view key,
                      std::int64_t max = kLargestDimension) {
    if (const auto null = nulls_.find(key); null != nulls_.end()) {
      file.error(null->second, fmt::format("{} is null, where a size is wanted", key));
      return 1;
    }
    file.require(key);
    const auto value = size(file, key, max);
    return value ? value->value : 1;
  }

  /// Whether the embedding is tied. null means no, whatever the family's default.
  bool tied(SectionReader& file, bool otherwise) const {
    return flag(file, "tie_word_embeddings", otherwise && !is_null("tie_word_embeddings"));
  }

  static bool flag(SectionReader& file, std::string_view key, bool otherwise) {
    const auto value = file.boolean(key);
    return value ? value->value : otherwise;
  }

  /// Adds an error where `part` does not divide `whole`.
  void report_rest(SectionReader& file, std::string_view key, std::int64_t part,
                   std::string_view of, std::int64_t whole) {
    if (!problems_.empty() || whole % part == 0) return;
    file.error(file.mark_of(key),
               fmt::format("{} is {}, which does not divide {}, {}", key, part, of, whole));
  }

  void read_gpt2(SectionReader& file) {
    shape_.hidden = needed(file, "n_embd");
    shape_.blocks = needed(file, "n_layer", kMaxLayers / 2 - 1);
    shape_.heads = needed(file, "n_head");
    shape_.vocabulary = needed(file, "vocab_size");
    shape_.positions = needed(file, "n_positions");
    const auto inner = size(file, "n_inner");
    shape_.feed_forward = inner ? inner->value : 4 * shape_.hidden;
    shape_.key_value_heads = shape_.heads;
    report_rest(file, "n_head", shape_.heads, "n_embd", shape_.hidden);
    shape_.head_dim = std::max<std::int64_t>(1, shape_.hidden / shape_.heads);
    shape_.learned_positions = true;
    shape_.gated = false;
    shape_.layer_norm = true;
    shape_.attention_input_bias = true;
    shape_.attention_output_bias = true;
    shape_.feed_forward_bias = true;
    shape_.tied = tied(file, true);
  }

  /// Falcon's files say with several switches what has become of its blocks.
  void read_falcon(SectionReader& file, const Family& family) {
    const auto either = [&](std::string_view key, std::string_view old) {
      return !file.has(key) && file.has(old) ? old : key;
    };
    shape_.hidden = needed(file, either("hidden_size", "n_embed"));
    shape_.blocks = needed(file, either("num_hidden_layers", "n_layer"), kMaxLayers / 2 - 1);
    const std::string_view heads = either("num_attention_heads", "n_head");
    shape_.heads = needed(file, heads);
    shape_.vocabulary = needed(file, "vocab_size");
    if (const auto positions = size(file, "max_position_embeddings"))
      shape_.positions = positions->value;
    const auto inner = size(file, "ffn_hidden_size");
    shape_.feed_forward = inner ? inner->value : 4 * shape_.hidden;
    report_rest(file, heads, shape_.heads, "hidden_size", shape_.hidden);
    shape_.head_dim = std::max<std::int64_t>(1, shape_.hidden / shape_.heads);
    // The newer blocks have groups of heads, the first ones a single head of keys and values.
    const std::string_view groups = either("num_kv_heads", "n_head_kv");
    const auto given = size(file, groups);
    const bool is_new = flag(file, "new_decoder_architecture", false);
    const bool is_single = flag(file, "multi_query", true);
    shape_.key_value_heads = is_new && given        ? given->value
                             : !is_new && is_single ? 1
                                                    : shape_.heads;
    report_rest(file, groups, shape_.key_value_heads, heads, shape_.heads);
    const auto norms = file.count("num_ln_in_parallel_attn", 1, 2);
    if (flag(file, "parallel_attn", true) || is_new) {
      const bool has_both = is_new && (!norms || norms->value == 2);
      shape_.order = has_both ? BlockOrder::side_by_side : BlockOrder::shared_norm;
    }
    shape_.positions_in_scores = flag(file, "alibi", false);
    shape_.tied = tied(file, family.tied);
    set_plain_mlp(flag(file, "bias", false));
  }

  /// Two matrices in an MLP, norms with biases; `biases`: linear layers have some, too.
  void set_plain_mlp(bool biases) {
    shape_.gated = false;
    shape_.layer_norm = true;
    if (!biases) return;
    shape_.attention_input_bias = true;
    shape_.attention_output_bias = true;
    shape_.feed_forward_bias = true;
  }

  /// Reads the keys that families with plain MLPs have of their own.
  void read_plain_mlp(SectionReader& file, const Family& family) {
    const bool is_phi = family.name == "phi";
    set_plain_mlp(is_phi || (family.name == "starcoder2" && flag(file, "use_bias", true)));
    if (is_phi) {
      shape_.order = BlockOrder::shared_norm;
      shape_.head_bias = true;
      shape_.query_key_norm = flag(file, "qk_layernorm", false);
    }
    if (family.name == "gpt_neox") {
      shape_.feed_forward_bias = true;
      if (flag(file, "use_parallel_residual", true)) shape_.order = BlockOrder::side_by_side;
    }
  }

  void read_rotary(SectionReader& file, const Family& family) {
    shape_.hidden = needed(file, "hidden_size");
    shape_.blocks = needed(file, "num_hidden_layers", kMaxLayers / 2 - 1);
    shape_.heads = needed(file, "num_attention_heads");
    shape_.vocabulary = needed(file, "vocab_size");
    if (const auto positions = size(file, "max_position_embeddings"))
      shape_.positions = positions->value;
    if (family.latent) {
      read_latent_attention(file, family);
    } else {
      read_attention(file, family);
    }
    shape_.feed_forward_bias = family.takes_mlp_bias && flag(file, "mlp_bias", false);
    if (family.plain) read_plain_mlp(file, family);
    shape_.tied = tied(file, family.tied);
    // In DeepSeek's files, null experts mean a dense model.
    if (family.experts.empty() || (family.latent && is_null(family.experts))) {
      shape_.feed_forward = needed(file, "intermediate_size");
      if (!family.experts.empty()) pass_over_experts(file);
    } else {
      read_experts(file, family);
    }
    lay_out_windows();
  }

  /// Marks the keys that have no meaning without experts as read.
  static void pass_over_experts(SectionReader& file) {
    for (const char* key : {"num_experts_per_tok", "moe_intermediate_size", "n_shared_experts",
                            "n_group", "topk_group", "first_k_dense_replace", "moe_layer_freq"})
      file.child(key);
  }

  void read_attention(SectionReader& file, const Family& family) {
    const auto groups = size(file, "num_key_value_heads");
    const bool one_each = family.key_value_heads == 0 || is_null("num_key_value_heads");
    shape_.key_value_heads = groups     ? groups->value
                             : one_each ? shape_.heads
                                        : family.key_value_heads;
    report_rest(file, "num_key_value_heads", shape_.key_value_heads, "num_attention_heads",
                shape_.heads);
    const auto head_dim = size(file, "head_dim");
    if (head_dim) {
      shape_.head_dim = head_dim->value;
    } else if (family.head_dim > 0 && !is_null("head_dim")) {
      shape_.head_dim = family.head_dim;
    } else {
      report_rest(file, "num_attention_heads", shape_.heads, "hidden_size", shape_.hidden);
      shape_.head_dim = std::max<std::int64_t>(1, shape_.hidden / shape_.heads);
    }
    const bool bias =
        family.takes_attention_bias && flag(file, "attention_bias", family.attention_bias);
    shape_.attention_input_bias = family.input_bias || bias;
    shape_.attention_output_bias = bias;
    shape_.query_key_norm = family.query_key_norm;
    if (family.query_key_norm) file.child("use_qk_norm");  // such models always have them
    const auto window = size(file, "sliding_window");
    if (family.window_switch && !flag(file, "use_sliding_window", false)) return;
    if (window) shape_.window = window->value;
    if (!window && !is_null("sliding_window") && family.window > 0) shape_.window = family.window;
    if (family.window_switch && shape_.window) read_first_full(file);
  }

  /// Qwen: the first blocks see all tokens.
  void read_first_full(SectionReader& file) {
    constexpr std::int64_t usual = 28;
    const auto first = file.count("max_window_layers", 0, kMaxLayers);
    full_first_ = first ? first->value : usual;
  }

  /// Gives the blocks in front no window, where others have one.
  void lay_out_windows() {
    if (!full_first_ || !shape_.window || !problems_.empty()) return;
    const BlockShape sliding = shape_;
    BlockShape full = shape_;
    full.window.reset();
    const std::vector<bool> sparse = std::exchange(shape_.sparse, {});
    lay_out(shape_, [&](std::int64_t i) {
      const bool is_full = i < *full_first_;
      const BlockShape& own = is_full ? full : sliding;
      const bool is_dense = !sparse.empty() && !sparse[static_cast<std::size_t>(i)];
      return BlockKind{is_full ? "" : "sliding_",
                       is_dense ? dense_block(own, shape_.feed_forward) : own};
    });
  }

  void read_latent_attention(SectionReader& file, const Family& family) {
    LatentAttention latent;
    const auto rank = size(file, "q_lora_rank");
    if (!is_null("q_lora_rank"))
      file.require("q_lora_rank", "null where queries are not compressed");
    latent.query_rank = rank ? rank->value : 0;
    latent.key_value_rank = needed(file, "kv_lora_rank");
    latent.plain = needed(file, "qk_nope_head_dim");
    latent.rotated = needed(file, "qk_rope_head_dim");
    latent.value = needed(file, "v_head_dim");
    shape_.latent = latent;
    shape_.key_value_heads = shape_.heads;
    shape_.head_dim = latent.plain + latent.rotated;
    for (const char* key : {"num_key_value_heads", "head_dim"}) file.child(key);  // not used there
    const bool bias = family.takes_attention_bias && flag(file, "attention_bias", false);
    shape_.attention_input_bias = bias;
    shape_.attention_output_bias = bias;
    if (const auto modules = file.count("num_nextn_predict_layers", 0, kMaxLayers))
      shape_.further_predictions = modules->value;
  }

  void read_experts(SectionReader& file, const Family& family) {
    shape_.experts = needed(file, family.experts);
    shape_.experts_per_token = needed(file, "num_experts_per_tok");
    if (problems_.empty() && shape_.experts_per_token > shape_.experts) {
      file.error(file.mark_of("num_experts_per_tok"),
                 fmt::format("num_experts_per_tok is {}, but {} is {}", shape_.experts_per_token,
                             family.experts, shape_.experts));
    }
    shape_.feed_forward = needed(file, "intermediate_size");
    if (family.name == "mixtral") {
      shape_.expert_feed_forward = shape_.feed_forward;
      return;
    }
    shape_.expert_feed_forward = needed(file, "moe_intermediate_size");
    if (family.latent) return read_deepseek_experts(file, family);
    const auto step = size(file, "decoder_sparse_step");
    std::vector<std::int64_t> dense;
    if (file.has("mlp_only_layers"))
      dense = file.counts("mlp_only_layers", 0, kMaxLayers).value_or(dense);
    if (!problems_.empty() || (dense.empty() && (!step || step->value == 1))) return;
    // Qwen3-MoE: block i has experts where i is not in mlp_only_layers and (i + 1) is a multiple of
    // decoder_sparse_step.
    for (std::int64_t i = 0; i < shape_.blocks; ++i) {
      shape_.sparse.push_back(std::find(dense.begin(), dense.end(), i) == dense.end() &&
                              (i + 1) % (step ? step->value : 1) == 0);
    }
  }

  /// DeepSeek: blocks from first_k_dense_replace on have experts where moe_layer_freq divides their
  /// number. Beside them they have a dense MLP with the width of n_shared_experts experts.
  void read_deepseek_experts(SectionReader& file, const Family& family) {
    const auto shared = file.count("n_shared_experts", 0, kLargestDimension);
    const auto first = file.count("first_k_dense_replace", 0, kMaxLayers);
    const auto step = size(file, "moe_layer_freq");
    if (!problems_.empty()) return;
    const auto without = [&](std::string_view key, std::int64_t otherwise) {
      return is_null(key) ? 0 : otherwise;
    };
    shape_.shared_feed_forward =
        (shared ? shared->value : without("n_shared_experts", family.shared_experts)) *
        shape_.expert_feed_forward;
    const std::int64_t dense =
        first ? first->value : without("first_k_dense_replace", family.dense_first);
    for (std::int64_t i = 0; i < shape_.blocks; ++i)
      shape_.sparse.push_back(i >= dense && i % (step ? step->value : 1) == 0);
    read_expert_groups(file, family);
  }

  /// DeepSeek: a token uses experts of topk_group of the n_group groups. In DeepSeek-V2 this holds
  /// only where topk_method says so.
  void read_expert_groups(SectionReader& file, const Family& family) {
    constexpr std::int64_t max = 65'536;
    if (family.expert_groups == 0) {
      const auto method = file.text("topk_method");
      if (!method || method->value != "group_limited_greedy") {
        for (const char* key : {"n_group", "topk_group"}) file.child(key);
        return;
      }
      file.require("n_group", "topk_method is group_limited_greedy");
      file.require("topk_group", "topk_method is group_limited_greedy");
    }
    const auto groups = size(file, "n_group", max);
    const auto chosen = size(file, "topk_group", max);
    if (!problems_.empty() || is_null("n_group") || is_null("topk_group")) return;  // no limit
    const std::int64_t all = groups ? groups->value : family.expert_groups;
    const std::int64_t some = chosen ? chosen->value : family.groups_per_token;
    const std::int64_t candidates = some * (shape_.experts / all);
    if (shape_.experts % all == 0 && some <= all && shape_.experts_per_token <= candidates) {
      shape_.expert_groups = all;
      shape_.groups_per_token = some;
    } else if (groups || chosen) {
      report_groups(file, family, all, some);
    }  // else the defaults belong to a larger model
  }

  void report_groups(SectionReader& file, const Family& family, std::int64_t groups,
                     std::int64_t chosen) {
    const bool both = file.has("n_group") && file.has("topk_group");
    const std::string help = both ? ""
                                  : fmt::format("without them n_group is {} and topk_group {}",
                                                family.expert_groups, family.groups_per_token);
    const auto refuse = [&](std::string_view key, std::string_view other, std::string message) {
      file.error(file.mark_of(file.has(key) ? key : other), std::move(message), help);
    };
    if (shape_.experts % groups != 0) {
      refuse("n_group", "topk_group",
             fmt::format("n_group is {}, which does not divide {}, {}", groups, family.experts,
                         shape_.experts));
    } else if (chosen > groups) {
      refuse("topk_group", "n_group",
             fmt::format("topk_group is {}, but n_group is {}", chosen, groups));
    } else {
      refuse("topk_group", "n_group",
             fmt::format("topk_group is {}: so many of {} groups have {} experts, but "
                         "num_experts_per_tok is {}",
                         chosen, groups, chosen * (shape_.experts / groups),
                         shape_.experts_per_token));
    }
  }

  const std::map<std::string, Mark, std::less<>>& nulls_;  ///< Keys that are null, and places.
  Diagnostics& problems_;
  TransformerShape& shape_;
  std::optional<std::int64_t> full_first_{};  ///< Blocks in front without the others' window.
};

}  // namespace

void read_first_family(SectionReader& file, std::string_view family,
                       const std::map<std::string, Mark, std::less<>>& nulls,
                       TransformerShape& shape, Diagnostics& problems) {
  const auto* const found = std::find_if(kFamilies.begin(), kFamilies.end(),
                                         [&](const Family& known) { return known.name == family; });
  PLUMBLINE_CHECK(found != kFamilies.end(), family);
  ConfigReader(nulls, problems, shape).read(file, *found);
}

}  // namespace plumbline
