// Tables of keys, and one function per kind of note.
//
// SPDX-License-Identifier: MIT
#include "models/import/config_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/real_text.h"
#include "base/some_of.h"

namespace plumbline {
namespace {

/// A key of dropout, and the tensors that it drops.
struct DropoutKey {
  std::string_view name;
  bool attention, residual, embedding;
};

constexpr std::array kDropoutKeys = {
    DropoutKey{"attn_pdrop", true, false, false},
    DropoutKey{"resid_pdrop", false, true, false},
    DropoutKey{"embd_pdrop", false, false, true},
    DropoutKey{"attention_dropout", true, false, false},
    DropoutKey{"attention_probs_dropout_prob", true, false, false},
    DropoutKey{"attn_dropout", true, false, false},
    DropoutKey{"hidden_dropout", false, true, true},
    DropoutKey{"hidden_dropout_prob", false, true, true},
    DropoutKey{"dropout", false, true, true},
    DropoutKey{"resid_dropout", false, true, false},
    DropoutKey{"residual_dropout", false, true, false},
    DropoutKey{"embd_dropout", false, false, true},
    DropoutKey{"embed_dropout", false, false, true},
    DropoutKey{"embedding_dropout", false, false, true},
};

/// The dropout keys of a family's configuration class in Hugging Face Transformers, and their rate.
struct UsualDropout {
  std::vector<std::string> keys;
  double rate = 0;
};

UsualDropout usual_dropout(std::string_view family) {
  if (family == "gpt2") return {{"attn_pdrop", "resid_pdrop", "embd_pdrop"}, 0.1};
  if (family == "phi") return {{"attention_dropout", "resid_pdrop", "embd_pdrop"}, 0};
  if (family == "starcoder2")
    return {{"attention_dropout", "residual_dropout", "embedding_dropout"}, 0};
  if (family == "falcon" || family == "gpt_neox")
    return {{"attention_dropout", "hidden_dropout"}, 0};
  return {{"attention_dropout"}, 0};
}

// Keys of Hugging Face Transformers' PretrainedConfig and of the families' classes, sorted by name.
// The list is over 80 lines long because every line is a key.
constexpr std::array<std::string_view, 110> kFreeKeys = {
    "activation",
    "activation_function",
    "architectures",
    "attention_multiplier",
    "attribute_map",
    "auto_map",
    "aux_loss_alpha",
    "bad_words_ids",
    "base_model_pp_plan",
    "base_model_tp_plan",
    "begin_suppress_tokens",
    "bos_token_id",
    "chunk_size_feed_forward",
    "classifier_dropout",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "early_stopping",
    "embedding_multiplier",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "ep_size",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "hidden_act",
    "hidden_activation",
    "id2label",
    "initializer_range",
    "is_decoder",
    "label2id",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "length_penalty",
    "logits_scaling",
    "max_length",
    "max_new_tokens",
    "max_window_layers",
    "min_length",
    "n_ctx",
    "no_repeat_ngram_size",
    "norm_eps",
    "norm_epsilon",
    "norm_topk_prob",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_return_sequences",
    "original_max_position_embeddings",
    "output_router_logits",
    "output_scores",
    "pad_token_id",
    "partial_rotary_factor",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "qk_head_dim",
    "remove_invalid_values",
    "repetition_penalty",
    "residual_multiplier",
    "return_dict",
    "return_dict_in_generate",
    "rms_norm_eps",
    "rope_interleave",
    "rope_local_base_freq",
    "rope_parameters",
    "rope_percent",
    "rope_percentage",
    "rope_scaling",
    "rope_theta",
    "rotary_emb_base",
    "rotary_pct",
    "routed_scaling_factor",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "router_z_loss_coef",
    "scale_attn_by_inverse_layer_idx",
    "scale_attn_weights",
    "scoring_func",
    "sep_token_id",
    "seq_aux",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "time_step_floor",
    "time_step_limit",
    "time_step_max",
    "time_step_min",
    "tokenizer_class",
    "top_k",
    "top_p",
    "topk_method",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "transformers_weights",
    "typical_p",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
    "use_return_dict",
};

static_assert(std::is_sorted(kFreeKeys.begin(), kFreeKeys.end()));

constexpr std::array kActivationKeys = {"activation", "activation_function", "hidden_act",
                                        "hidden_activation"};

/// Functions of one number each, as Hugging Face Transformers names them, and gated ones of
/// families whose gates count, sorted by name. Others may need a gate.
constexpr std::array<std::string_view, 22> kActivations = {"gelu",
                                                           "gelu_10",
                                                           "gelu_accurate",
                                                           "gelu_fast",
                                                           "gelu_new",
                                                           "gelu_python",
                                                           "gelu_python_tanh",
                                                           "gelu_pytorch_tanh",
                                                           "laplace",
                                                           "leaky_relu",
                                                           "linear",
                                                           "mish",
                                                           "quick_gelu",
                                                           "relu",
                                                           "relu2",
                                                           "relu6",
                                                           "sigmoid",
                                                           "silu",
                                                           "situ",
                                                           "swigluoai",
                                                           "swish",
                                                           "tanh"};

static_assert(std::is_sorted(kActivations.begin(), kActivations.end()));

/// Whether a key switches nothing on: false, 0, or without content.
bool is_off(const YamlNode& value) {
  switch (value.kind) {
    case YamlNode::Kind::null:
      return true;
    case YamlNode::Kind::sequence:
      return value.items.empty();
    case YamlNode::Kind::map:
      return value.entries.empty();
    case YamlNode::Kind::scalar:
      break;
  }
  return value.text.empty() || value.text == "false" || value.text == "0" || value.text == "0.0";
}

/// Whether every block attends to all earlier tokens or to a window of them. The window's size is
/// another key.
bool is_plain_attention(const YamlNode& types) {
  return std::all_of(types.items.begin(), types.items.end(), [](const YamlNode& type) {
    return type.text == "full_attention" || type.text == "sliding_attention";
  });
}

DropoutRates read_dropout(SectionReader& file, Diagnostics& problems) {
  DropoutRates rates;
  const auto take = [](std::optional<double>& rate, double value) {
    rate = std::max(rate.value_or(0), value);
  };
  for (const DropoutKey& key : kDropoutKeys) {
    const YamlNode* node = file.child(key.name);
    if (!node) continue;
    const auto value = read_real(*node, std::string(key.name), 1, problems);
    if (!value) continue;
    if (key.attention) take(rates.attention, *value);
    if (key.residual) take(rates.residual, *value);
    if (key.embedding) take(rates.embedding, *value);
  }
  return rates;
}

/// A number without error: rotary positions cost the same whatever their constants.
std::optional<double> number_in(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::scalar) return std::nullopt;
  const RealText read = real_at_front(node.text);
  if (read.used == 0 || read.used != node.text.size() || read.out_of_range) return std::nullopt;
  return read.value;
}

void take_rotation(std::string_view key, const YamlNode& node, ConfigFacts& facts) {
  const bool is_base = key == "rope_theta" || key == "rotary_emb_base";
  const bool is_share = key == "partial_rotary_factor" || key == "rotary_pct";
  if (!is_base && !is_share) return;
  const auto value = number_in(node);
  if (is_base && value && *value >= 1) facts.rotary_base = *value;
  if (is_share && value && *value < 1) facts.partly_rotated = true;
}

/// The base of rotary positions and whether they turn whole heads, from the file or from its
/// rope_parameters.
void read_rotation(SectionReader& file, std::string_view family, ConfigFacts& facts) {
  if (const YamlNode* parameters = file.child("rope_parameters")) {
    for (const YamlNode::Entry& entry : parameters->entries)
      take_rotation(entry.key, entry.value, facts);
  }
  constexpr std::array usual = {"gpt_neox", "phi", "stablelm"};  // a half, or a fourth, of a head
  const bool is_told = file.has("partial_rotary_factor") || file.has("rotary_pct");
  if (!is_told && std::find(usual.begin(), usual.end(), family) != usual.end())
    facts.partly_rotated = true;
  for (const char* key : {"rope_theta", "rotary_emb_base", "partial_rotary_factor", "rotary_pct"}) {
    if (const YamlNode* node = file.child(key)) take_rotation(key, *node, facts);
  }
}

/// Adds notes on dropout that is assumed, and on masks that are not kept.
void add_dropout_notes(const TransformerShape& shape, const TransformerOptions& options,
                       std::vector<std::string>& notes) {
  const DropoutRates rates = dropout_of(shape, options);
  const ConfigFacts& facts = shape.facts;
  const bool is_given = options.dropout || (options.attention_dropout && options.hidden_dropout);
  if (!is_given && !facts.absent_dropout.empty()) {
    const bool one = facts.absent_dropout.size() == 1;
    notes.push_back(fmt::format("config.json has no {}: {} as 0{} ({} sets {})",
                                some_of(facts.absent_dropout, 7), one ? "it counts" : "they count",
                                facts.usual_dropout > 0
                                    ? fmt::format(", though transformers takes {:g} for {}",
                                                  facts.usual_dropout, shape.family)
                                    : "",
                                options.names->dropout, one ? "it" : "them"));
  }
  if (rates.attention.value_or(0) > 0 && options.flash_attention)
    notes.emplace_back(
        "flash attention keeps no mask of its dropout: the backward draws the same numbers again");
}

/// Adds notes on facts of the file that neither the shape nor the numbers cover.
void add_file_notes(const TransformerShape& shape, const TransformerOptions& options,
                    std::vector<std::string>& notes) {
  const ConfigFacts& facts = shape.facts;
  const bool is_long = facts.dtype == "float32" || facts.dtype == "fp32";
  if (is_long && !options.dtype_given && bytes_of(options.dtype) != 4)
    notes.push_back(
        fmt::format("config.json has {} {}, and numbers are taken to be {}: {} says "
                    "otherwise",
                    facts.dtype_key, facts.dtype, name_of(options.dtype), options.names->dtype));
  if (facts.quantized && !options.fp8_linear && options.dtype != NumberFormat::fp8)
    notes.push_back(fmt::format(
        "quantization_config of config.json is not counted: all numbers are {} ({}, {})",
        name_of(options.dtype), options.names->dtype, options.names->fp8_linear));
  for (const std::string& note : facts.notes) notes.push_back(note);
  if (!facts.unread.empty())
    notes.push_back(
        fmt::format("config.json has {} that nothing here reads and that may change "
                    "costs: {}",
                    facts.unread.size() == 1 ? "a key" : "keys", some_of(facts.unread, 7)));
}

}  // namespace

bool changes_no_cost(std::string_view key) {
  return std::binary_search(kFreeKeys.begin(), kFreeKeys.end(), key) ||
         (key.starts_with('_') && !key.starts_with("_attn"));
}

ConfigFacts read_config_facts(SectionReader& file, std::string_view family, Diagnostics& problems) {
  ConfigFacts facts;
  facts.dropout = read_dropout(file, problems);
  const UsualDropout usual = usual_dropout(family);
  facts.usual_dropout = usual.rate;
  const std::array rates = {facts.dropout.attention, facts.dropout.residual,
                            facts.dropout.embedding};
  for (std::size_t i = 0; i < usual.keys.size(); ++i) {
    if (!rates[i]) facts.absent_dropout.push_back(usual.keys[i]);
  }
  for (const char* key : {"torch_dtype", "dtype"}) {
    const YamlNode* node = file.child(key);
    if (!node || node->kind != YamlNode::Kind::scalar) continue;
    facts.dtype_key = key;
    facts.dtype = node->text;
  }
  for (const char* key : {"quantization_config", "quantization"}) {
    const YamlNode* node = file.child(key);
    if (node && !is_off(*node)) facts.quantized = true;
  }
  read_rotation(file, family, facts);
  const std::vector<std::string> open = file.unread();
  const bool is_open = std::find(open.begin(), open.end(), "layer_types") != open.end();
  if (is_open && !is_plain_attention(*file.child("layer_types")))
    facts.unread.emplace_back("layer_types");
  for (const char* key : kActivationKeys) {
    const YamlNode* node = file.child(key);
    if (node && node->kind == YamlNode::Kind::scalar) facts.activation = node->text;
    if (node && !std::binary_search(kActivations.begin(), kActivations.end(), node->text))
      facts.unread.emplace_back(key);
  }
  for (const std::string& key : file.unread()) {
    if (!changes_no_cost(key) && !is_off(*file.child(key))) facts.unread.push_back(key);
  }
  return facts;
}

std::vector<std::string> config_notes(const TransformerShape& shape,
                                      const TransformerOptions& options) {
  std::vector<std::string> notes;
  add_dropout_notes(shape, options, notes);
  add_file_notes(shape, options, notes);
  return notes;
}

}  // namespace plumbline
