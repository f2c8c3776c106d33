// Transformers that are small enough to count by hand, and their profiles.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "models/architectures/huggingface.h"
#include "models/import/transformer_profile.h"
#include "tests/support/text_source.h"

namespace plumbline::test {

inline TransformerShape shape_of(const std::string& config) {
  auto shape = parse_huggingface(text_source("config.json", config));
  REQUIRE_MESSAGE(shape, (shape ? "" : to_text(shape.problems())));
  return *std::move(shape);
}

inline TransformerProfile profile_of(const std::string& config, const TransformerOptions& options) {
  auto profile = transformer_profile("test", shape_of(config), options);
  REQUIRE_MESSAGE(profile, (profile ? "" : to_text(profile.problems())));
  return *std::move(profile);
}

inline TransformerOptions tokens(std::int64_t sequence, std::int64_t batch = 1) {
  TransformerOptions options;
  options.sequence = sequence;
  options.batch = batch;
  return options;
}

inline const std::string kLlama =
    R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100})";
inline const std::string kGpt2 =
    R"({"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 128,
        "n_inner": null, "vocab_size": 100})";
inline const std::string kQwenMoe =
    R"({"model_type": "qwen3_moe", "hidden_size": 32, "intermediate_size": 96,
        "moe_intermediate_size": 24, "num_experts": 8, "num_experts_per_tok": 2, "head_dim": 16,
        "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 3,
        "mlp_only_layers": [1], "vocab_size": 50})";

/// Latent attention with compressed queries, and a dense block in front of two with experts.
inline const std::string kDeepSeek =
    R"({"model_type": "deepseek_v3", "hidden_size": 32, "intermediate_size": 96,
        "moe_intermediate_size": 24, "n_routed_experts": 8, "num_experts_per_tok": 2,
        "n_shared_experts": 2, "first_k_dense_replace": 1, "num_hidden_layers": 3,
        "num_attention_heads": 4, "q_lora_rank": 12, "kv_lora_rank": 10, "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 4, "v_head_dim": 6, "vocab_size": 50})";

/// Plain MLPs: with groups of heads, and with attention and MLP side by side behind two norms or
/// one.
inline const std::string kNemotron =
    R"({"model_type": "nemotron", "hidden_size": 64, "intermediate_size": 160, "vocab_size": 100,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "hidden_act": "relu2", "partial_rotary_factor": 0.5, "attention_dropout": 0})";
inline const std::string kStarcoder =
    R"({"model_type": "starcoder2", "hidden_size": 64, "intermediate_size": 160, "vocab_size": 100,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2})";
inline const std::string kNeoX =
    R"({"model_type": "gpt_neox", "hidden_size": 64, "intermediate_size": 160, "vocab_size": 100,
        "num_hidden_layers": 2, "num_attention_heads": 4, "rotary_pct": 0.25,
        "rotary_emb_base": 10000, "hidden_act": "gelu_fast"})";
inline const std::string kPhi =
    R"({"model_type": "phi", "hidden_size": 64, "intermediate_size": 160, "vocab_size": 100,
        "num_hidden_layers": 2, "num_attention_heads": 4})";
inline const std::string kFalcon =
    R"({"model_type": "falcon", "hidden_size": 64, "ffn_hidden_size": 160, "vocab_size": 100,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_kv_heads": 2,
        "new_decoder_architecture": true})";

}  // namespace plumbline::test
