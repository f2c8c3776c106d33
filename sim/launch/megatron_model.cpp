// Chooses the family that has such blocks, and writes its keys.
//
// SPDX-License-Identifier: MIT
#include "sim/launch/megatron_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/quantity.h"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kOtherModel =
    "--model config.json gives the model in the place of these arguments";

/// The vocabularies of tokenizers that need no file: GPT-2's, and that of Llama 1 and 2.
struct KnownTokenizer {
  std::string_view type;
  std::int64_t vocabulary;
};
constexpr KnownTokenizer kTokenizers[] = {{"GPT2BPETokenizer", 50'257},
                                          {"Llama2Tokenizer", 32'000}};

class ModelReader {
 public:
  ModelReader(LaunchArguments& arguments, std::int64_t tensor)
      : arguments_(arguments), tensor_(tensor) {}

  std::optional<MegatronModel> read() {
    read_sizes();
    read_blocks();
    read_experts();
    if (failed_) return std::nullopt;
    choose();
    if (failed_) return std::nullopt;
    if (predictions_ > 0 && (latent_ || has_experts()))
      json_["num_nextn_predict_layers"] = predictions_;
    found_.shape = json_.dump(1) + '\n';
    found_.blocks = blocks_;
    return std::move(found_);
  }

 private:
  void refuse(std::string_view name, std::string message, std::string help = kOtherModel) {
    failed_ = true;
    arguments_.error(name, std::move(message), std::move(help));
  }

  std::int64_t needed(std::string_view name) {
    const auto value = arguments_.count(name, 1, 100'000'000);
    if (!value && !arguments_.has(name)) refuse(name, fmt::format("--{} is missing", name));
    failed_ = failed_ || !value;
    return value.value_or(1);
  }

  void read_sizes() {
    blocks_ = needed("num-layers");
    hidden_ = needed("hidden-size");
    heads_ = needed("num-attention-heads");
    const auto groups = arguments_.count("num-query-groups", 1);
    const bool grouped = arguments_.flag("group-query-attention");
    // Megatron-LM's groups count only with the flag; NeMo and Megatron-Bridge have no such flag.
    const bool by_command = arguments_.told("num-query-groups").starts_with("--");
    key_value_heads_ = groups && (grouped || !by_command) ? *groups : heads_;
    head_ = arguments_.count_or("kv-channels", std::max<std::int64_t>(1, hidden_ / heads_));
    positions_ = arguments_.count_or("max-position-embeddings", 0);
    read_vocabulary();
  }

  void read_vocabulary() {
    const std::string_view name = arguments_.either({"padded-vocab-size", "vocab-size"});
    auto size = arguments_.count(name, 1, 100'000'000);
    const std::string tokenizer = arguments_.word("tokenizer-type");
    if (!size) {
      for (const KnownTokenizer& known : kTokenizers) {
        if (tokenizer != known.type) continue;
        size = known.vocabulary;
        found_.notes.push_back(
            fmt::format("{} tokens are taken to be in the vocabulary of {}", *size, tokenizer));
      }
    }
    if (!size) {
      refuse(name, "the size of the vocabulary is not given",
             "--vocab-size 128256, the tokenizer's; or --model config.json");
      return;
    }
    const std::int64_t step = arguments_.count("make-vocab-size-divisible-by", 1).value_or(128);
    const std::int64_t padded = (*size + step * tensor_ - 1) / (step * tensor_) * step * tensor_;
    vocabulary_ = name == "padded-vocab-size" ? *size : padded;
    if (vocabulary_ != *size)
      found_.notes.push_back(
          fmt::format("the vocabulary of {} is padded to {}", *size, vocabulary_));
  }

  void read_blocks() {
    const std::string norm = lower_case(arguments_.word("normalization"));
    rms_norm_ = norm == "rmsnorm";
    layer_norm_is_moved_ = norm == "layernorm1p" || arguments_.flag("apply-layernorm-1p");
    const std::string activation = lower_case(arguments_.word("activation"));
    squared_ = arguments_.flag("squared-relu") || activation.find("squared") != std::string::npos;
    gated_ = arguments_.flag("swiglu") || arguments_.flag("gated-linear-unit") ||
             activation.find("glu") != std::string::npos;
    const std::string positions = lower_case(arguments_.word("position-embedding-type"));
    const bool rotary = arguments_.flag("use-rotary-position-embeddings");
    const bool none = arguments_.flag("no-position-embedding");
    learned_ = !rotary && !none && (positions.empty() || positions.starts_with("learned"));
    if (positions == "relative")
      refuse("position-embedding-type", "relative positions are in no config.json that is read");
    const std::string_view bias = arguments_.either({"add-bias-linear", "bias"});
    bias_ = !arguments_.flag("disable-bias-linear") && arguments_.flag_or(bias, true);
    query_bias_ = arguments_.flag("add-qkv-bias");
    query_norm_ = arguments_.flag("qk-layernorm");
    tied_ = !arguments_.flag("untie-embeddings-and-output-weights") &&
            arguments_.flag_or("share-embeddings-and-output-weights", true);
    feed_forward_ = arguments_.count("ffn-hidden-size", 1)
                        .value_or(gated_ ? (4 * hidden_ * 2 / 3 / 64) * 64 : 4 * hidden_);
    latent_ = arguments_.flag("multi-latent-attention");
    for (const char* other :
         {"window-size", "softmax-type", "linear-attention-freq", "hybrid-layer-pattern",
          "hybrid-override-pattern", "heterogeneous-layers-config-path"}) {
      if (arguments_.flag(other))
        refuse(other,
               fmt::format("{}: such blocks are not made of arguments", arguments_.told(other)));
    }
  }

  void read_experts() {
    const std::string_view name = arguments_.either({"num-experts", "num-moe-experts"});
    experts_ = arguments_.count_or(name, 0);
    per_token_ = arguments_.count_or("moe-router-topk", 2);
    expert_width_ = arguments_.count_or("moe-ffn-hidden-size", feed_forward_);
    shared_width_ = arguments_.count_or("moe-shared-expert-intermediate-size", 0);
    groups_ = arguments_.count_or("moe-router-num-groups", 0);
    groups_per_token_ = arguments_.count_or("moe-router-group-topk", 0);
    predictions_ = arguments_.count_or("mtp-num-layers", 0);
    if (latent_) {
      query_rank_ = arguments_.count_or("q-lora-rank", 0);
      key_rank_ = arguments_.count_or("kv-lora-rank", 512);
      plain_ = arguments_.count_or("qk-head-dim", 128);
      rotated_ = arguments_.count_or("qk-pos-emb-head-dim", 64);
      value_ = arguments_.count_or("v-head-dim", 128);
    }
    read_pattern();
  }

  /// --moe-layer-freq: a number, or a list that is an expression: [0]*3+[1]*58.
  void read_pattern() {
    std::string text;
    for (const std::string& part : arguments_.words("moe-layer-freq")) text += part + ' ';
    std::string whole = arguments_.word("moe-layer-freq");
    std::erase_if(whole, [](char c) { return c == ' ' || c == '(' || c == ')' || c == '\''; });
    if (whole.empty() || whole == "1") return;
    std::vector<std::int64_t> pattern;
    if (const auto step = parse_count(whole); step.value) {
      for (std::int64_t i = 0; i < std::min<std::int64_t>(blocks_, 100'000); ++i)
        pattern.push_back(*step.value > 0 && i % *step.value == 0 ? 1 : 0);
    } else if (!unroll(whole, pattern)) {
      return refuse("moe-layer-freq",
                    fmt::format("{} is '{}', which is no pattern",
                                arguments_.told("moe-layer-freq"), clipped(whole)),
                    "such as 2, or [0]*3+[1]*58");
    }
    const auto first = std::find(pattern.begin(), pattern.end(), 1);
    dense_first_ = first - pattern.begin();
    if (std::find(first, pattern.end(), 0) != pattern.end())
      return refuse("moe-layer-freq",
                    "blocks without experts between blocks with some are in no config.json that is "
                    "made of arguments");
    if (static_cast<std::int64_t>(pattern.size()) != blocks_)
      refuse("moe-layer-freq",
             fmt::format("{} is for {} blocks, but there are {}", arguments_.told("moe-layer-freq"),
                         pattern.size(), blocks_));
  }

  /// "[0]*3+[1]*58" and "[0,1,1]". Returns whether it is such a text.
  static bool unroll(const std::string& text, std::vector<std::int64_t>& pattern) {
    constexpr std::int64_t max = 100'000;
    for (std::size_t at = 0; at < text.size();) {
      if (text[at] == '+') ++at;
      const std::size_t close = text.find(']', at);
      if (at >= text.size() || text[at] != '[' || close == std::string::npos) return false;
      std::vector<std::int64_t> part;
      for (std::size_t i = at + 1; i < close; ++i) {
        if (text[i] == ',') continue;
        if (text[i] != '0' && text[i] != '1') return false;
        part.push_back(text[i] - '0');
      }
      at = close + 1;
      std::int64_t times = 1;
      if (at < text.size() && text[at] == '*') {
        const std::size_t end = std::min(text.find('+', at), text.size());
        const auto count = parse_count(text.substr(at + 1, end - at - 1));
        if (!count.value || *count.value > max) return false;
        times = *count.value;
        at = end;
      }
      for (std::int64_t i = 0; i < times; ++i)
        pattern.insert(pattern.end(), part.begin(), part.end());
      if (static_cast<std::int64_t>(pattern.size()) > max) return false;
    }
    return true;
  }

  bool has_experts() const { return experts_ > 0; }

  void choose() {
    if (has_experts() && !gated_)
      return refuse("num-experts", "experts without a gate are in no config.json that is read");
    if (gated_ && !rms_norm_)
      found_.notes.emplace_back(
          "norms are counted as RMSNorm: the biases of LayerNorm beside a gated MLP are not");
    if (learned_ && (gated_ || latent_ || has_experts()))
      found_.notes.emplace_back("the table of learned positions is not counted");
    if (latent_) return write_latent();
    if (has_experts()) return write_experts();
    if (squared_) return write_plain("nemotron");
    if (gated_) return write_dense();
    const bool even = key_value_heads_ == heads_ && head_ * heads_ == hidden_;
    if (learned_ && even && bias_) return write_gpt2();
    if (learned_) found_.notes.emplace_back("the table of learned positions is not counted");
    write_plain("starcoder2");
  }

  void add_common(const char* family) {
    json_["model_type"] = family;
    json_["hidden_size"] = hidden_;
    json_["num_hidden_layers"] = blocks_;
    json_["num_attention_heads"] = heads_;
    if (!latent_) {
      json_["num_key_value_heads"] = key_value_heads_;
      json_["head_dim"] = head_;
    }
    json_["intermediate_size"] = feed_forward_;
    json_["vocab_size"] = vocabulary_;
    if (positions_ > 0) json_["max_position_embeddings"] = positions_;
    json_["tie_word_embeddings"] = tied_;
  }

  void write_gpt2() {
    json_["model_type"] = "gpt2";
    json_["n_embd"] = hidden_;
    json_["n_layer"] = blocks_;
    json_["n_head"] = heads_;
    json_["n_inner"] = feed_forward_;
    json_["n_positions"] = positions_ > 0 ? positions_ : 1024;
    json_["vocab_size"] = vocabulary_;
    json_["tie_word_embeddings"] = tied_;
  }

  void write_plain(const char* family) {
    add_common(family);
    if (std::string_view(family) == "nemotron") {
      json_["attention_bias"] = bias_;
      json_["mlp_bias"] = bias_;
    } else {
      json_["use_bias"] = bias_;
      json_["sliding_window"] = nullptr;
    }
    if (query_bias_ && !bias_) found_.notes.emplace_back("biases of queries are not counted");
  }

  void write_dense() {
    if (query_norm_) {
      add_common("qwen3");
      json_["attention_bias"] = bias_;
    } else if (query_bias_ && !bias_) {
      add_common("qwen2");
    } else {
      add_common("llama");
      json_["attention_bias"] = bias_;
      json_["mlp_bias"] = bias_;
    }
  }

  void write_experts() {
    if (bias_) found_.notes.emplace_back("biases of linear layers beside experts are not counted");
    if (shared_width_ > 0 || dense_first_ > 0) {
      add_common("glm4_moe");
      json_["attention_bias"] = query_bias_;
      json_["use_qk_norm"] = query_norm_;
      return add_routed();
    }
    add_common(query_norm_ ? "qwen3_moe" : "mixtral");
    json_["num_experts_per_tok"] = per_token_;
    if (query_norm_) {
      json_["num_experts"] = experts_;
      json_["moe_intermediate_size"] = expert_width_;
    } else {
      json_["num_local_experts"] = experts_;
      json_["intermediate_size"] = expert_width_;
    }
    json_["sliding_window"] = nullptr;
  }

  void write_latent() {
    add_common("deepseek_v3");
    json_["q_lora_rank"] = query_rank_ > 0 ? Json(query_rank_) : Json(nullptr);
    json_["kv_lora_rank"] = key_rank_;
    json_["qk_nope_head_dim"] = plain_;
    json_["qk_rope_head_dim"] = rotated_;
    json_["v_head_dim"] = value_;
    if (has_experts()) return add_routed();
    json_["n_routed_experts"] = nullptr;
  }

  void add_routed() {
    if (shared_width_ % expert_width_ != 0)
      return refuse(
          "moe-shared-expert-intermediate-size",
          fmt::format("the shared experts are {} wide, which the experts' {} do not divide",
                      shared_width_, expert_width_));
    json_["n_routed_experts"] = experts_;
    json_["num_experts_per_tok"] = per_token_;
    json_["moe_intermediate_size"] = expert_width_;
    json_["n_shared_experts"] = shared_width_ / expert_width_;
    json_["first_k_dense_replace"] = dense_first_;
    const bool limits = groups_ > 0 && groups_per_token_ > 0;
    json_["n_group"] = limits ? groups_ : 1;
    json_["topk_group"] = limits ? groups_per_token_ : 1;
  }

  LaunchArguments& arguments_;
  std::int64_t tensor_;
  MegatronModel found_;
  Json json_ = Json::object();
  bool failed_ = false;
  std::int64_t blocks_ = 1, hidden_ = 1, heads_ = 1, key_value_heads_ = 1, head_ = 1;
  std::int64_t positions_ = 0, vocabulary_ = 1, feed_forward_ = 1;
  bool rms_norm_ = false, layer_norm_is_moved_ = false, squared_ = false, gated_ = false;
  bool learned_ = false, bias_ = true, query_bias_ = false, query_norm_ = false, tied_ = true;
  bool latent_ = false;
  std::int64_t experts_ = 0, per_token_ = 2, expert_width_ = 1, shared_width_ = 0;
  std::int64_t groups_ = 0, groups_per_token_ = 0, predictions_ = 0, dense_first_ = 0;
  std::int64_t query_rank_ = 0, key_rank_ = 0, plain_ = 0, rotated_ = 0, value_ = 0;
};

}  // namespace

std::optional<MegatronModel> read_megatron_model(LaunchArguments& arguments, std::int64_t tensor) {
  return ModelReader(arguments, tensor).read();
}

void pass_over_megatron_model(LaunchArguments& arguments) {
  for (const char* name : {"num-layers",
                           "hidden-size",
                           "num-attention-heads",
                           "num-query-groups",
                           "group-query-attention",
                           "kv-channels",
                           "max-position-embeddings",
                           "vocab-size",
                           "padded-vocab-size",
                           "tokenizer-type",
                           "make-vocab-size-divisible-by",
                           "normalization",
                           "apply-layernorm-1p",
                           "activation",
                           "squared-relu",
                           "swiglu",
                           "quick-geglu",
                           "gated-linear-unit",
                           "position-embedding-type",
                           "use-rotary-position-embeddings",
                           "no-position-embedding",
                           "add-bias-linear",
                           "bias",
                           "disable-bias-linear",
                           "add-qkv-bias",
                           "qk-layernorm",
                           "untie-embeddings-and-output-weights",
                           "share-embeddings-and-output-weights",
                           "ffn-hidden-size",
                           "multi-latent-attention",
                           "window-size",
                           "window-attn-skip-freq",
                           "softmax-type",
                           "linear-attention-freq",
                           "hybrid-layer-pattern",
                           "hybrid-override-pattern",
                           "heterogeneous-layers-config-path",
                           "num-experts",
                           "num-moe-experts",
                           "moe-router-topk",
                           "moe-ffn-hidden-size",
                           "moe-shared-expert-intermediate-size",
                           "moe-router-num-groups",
                           "moe-router-group-topk",
                           "moe-layer-freq",
                           "mtp-num-layers",
                           "q-lora-rank",
                           "kv-lora-rank",
                           "qk-head-dim",
                           "qk-pos-emb-head-dim",
                           "v-head-dim"})
    arguments.pass_over(name);
}

}  // namespace plumbline
