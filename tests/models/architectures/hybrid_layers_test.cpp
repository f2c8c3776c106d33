// Layers of models whose blocks differ: their FLOPs, two ways, and what passes between them.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/import/transformer_ops.h"
#include "models/import/transformer_profile.h"
#include "models/ops/layer_op.h"
#include "tests/support/transformers.h"

namespace plumbline {
namespace {

using test::profile_of;
using test::shape_of;
using test::tokens;

const std::string kMamba =
    R"({"model_type": "nemotron_h", "hidden_size": 32, "num_hidden_layers": 4, "vocab_size": 50,
        "hybrid_override_pattern": "ME*-", "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 8, "intermediate_size": 48, "mamba_num_heads": 8, "mamba_head_dim": 4,
        "n_groups": 2, "ssm_state_size": 16, "chunk_size": 16, "n_routed_experts": 8,
        "num_experts_per_tok": 2, "moe_intermediate_size": 24, "moe_latent_size": 16,
        "moe_shared_expert_intermediate_size": 40, "num_nextn_predict_layers": 1})";
const std::string kDelta =
    R"({"model_type": "qwen3_next", "hidden_size": 32, "num_hidden_layers": 4, "vocab_size": 50,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "num_experts": 8,
        "num_experts_per_tok": 2, "moe_intermediate_size": 24,
        "shared_expert_intermediate_size": 40, "linear_num_key_heads": 2,
        "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 16,
        "mtp_num_hidden_layers": 1})";
const std::string kLatentSparse =
    R"({"model_type": "deepseek_v32", "hidden_size": 32, "num_hidden_layers": 3, "vocab_size": 50,
        "num_attention_heads": 4, "intermediate_size": 48, "moe_intermediate_size": 24,
        "n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1,
        "first_k_dense_replace": 1, "q_lora_rank": 12, "kv_lora_rank": 10, "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 4, "v_head_dim": 6, "index_n_heads": 2, "index_head_dim": 8,
        "index_topk": 16, "num_nextn_predict_layers": 1, "indexer_types": ["full", "shared", "full"]})";
const std::string kCompressed =
    R"({"model_type": "deepseek_v4", "hidden_size": 32, "num_hidden_layers": 3, "vocab_size": 50,
        "num_attention_heads": 4, "head_dim": 8, "moe_intermediate_size": 24,
        "n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1, "q_lora_rank": 12,
        "o_lora_rank": 6, "o_groups": 2, "hc_mult": 4, "sliding_window": 8, "index_n_heads": 2,
        "index_head_dim": 8, "index_topk": 4, "compress_ratios": [0, 4, 16]})";
const std::string kKimi =
    R"({"model_type": "kimi_linear", "hidden_size": 32, "num_hidden_layers": 3, "vocab_size": 50,
        "num_attention_heads": 4, "intermediate_size": 48, "moe_intermediate_size": 24,
        "num_experts": 8, "num_experts_per_token": 2, "num_shared_experts": 1,
        "first_k_dense_replace": 1, "q_lora_rank": 12, "kv_lora_rank": 10, "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 4, "v_head_dim": 6, "mla_use_output_gate": true,
        "attn_res_block_size": 2, "routed_expert_hidden_size": 16,
        "linear_attn_config": {"num_heads": 4, "head_dim": 8, "kda_layers": [1, 2]}})";
const std::string kWindows =
    R"({"model_type": "mimo_v2_flash", "hidden_size": 32, "num_hidden_layers": 3,
        "vocab_size": 50, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12,
        "v_head_dim": 8, "swa_num_key_value_heads": 4, "swa_head_dim": 12, "swa_v_head_dim": 8,
        "sliding_window": 8, "intermediate_size": 48, "moe_intermediate_size": 24,
        "n_routed_experts": 8, "num_experts_per_tok": 2, "hybrid_layer_pattern": [0, 1, 1],
        "moe_layer_freq": [0, 1, 1]})";
const std::string kChunks =
    R"({"model_type": "llama4_text", "hidden_size": 32, "num_hidden_layers": 4, "vocab_size": 50,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
        "intermediate_size": 24, "intermediate_size_mlp": 48, "num_local_experts": 8,
        "num_experts_per_tok": 1, "attention_chunk_size": 24})";
const std::string kBlocks =
    R"({"model_type": "minimax_m3", "hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 50,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 24,
        "dense_intermediate_size": 48, "num_local_experts": 8, "num_experts_per_tok": 2,
        "moe_layer_freq": [0, 1], "sparse_attention_config": {"sparse_num_index_heads": 2,
        "sparse_index_dim": 8, "sparse_topk_blocks": 2, "sparse_block_size": 8,
        "sparse_attention_freq": [0, 1]}})";

const std::vector<std::string> kAll = {kMamba, kDelta,   kLatentSparse, kCompressed,
                                       kKimi,  kWindows, kChunks,       kBlocks};

std::vector<TransformerOptions> layouts() {
  std::vector<TransformerOptions> all;
  for (const std::int64_t tensor : {1, 2}) {
    for (const bool by_tokens : {false, true}) {
      for (const std::int64_t context : {1, 2}) {
        for (const std::int64_t experts : {1, 4}) {
          for (const bool flash : {true, false}) {
            for (const bool split : {false, true}) {
              TransformerOptions options = tokens(64, 2);
              options.tensor_parallel = tensor;
              options.sequence_parallel = by_tokens;
              options.context_parallel = context;
              options.expert_parallel = experts;
              options.flash_attention = flash;
              options.split_blocks = split;
              options.fp8_linear = split;
              all.push_back(options);
            }
          }
        }
      }
    }
  }
  return all;
}

TEST_CASE("layers of each mixer have as many FLOPs as their ops, in every layout that fits") {
  for (const std::string& config : kAll) {
    const TransformerShape shape = shape_of(config);
    CAPTURE(shape.family);
    int fitting = 0;
    for (TransformerOptions options : layouts()) {
      options.mtp = shape.further_predictions > 0;
      const auto profile = transformer_profile("m", shape, options);
      if (!profile) continue;
      ++fitting;
      const auto& layers = profile->model.profile.measurements.front().layers;
      for (std::size_t i = 0; i < layers.size(); ++i) {
        CAPTURE(profile->model.graph.layers()[i].name);
        const OpFlops flops = flops_of(*layers[i].ops);
        const LayerWork& work = *layers[i].work;
        REQUIRE(static_cast<double>(work.forward.flops.count) == flops.forward);
        REQUIRE(static_cast<double>(work.backward_input.flops.count) == flops.input);
        REQUIRE(static_cast<double>(work.backward_weight.flops.count) == flops.weights);
      }
    }
    CHECK(fitting >= 8);
  }
}

TEST_CASE("a token reaches the keys that a count of all pairs finds") {
  // Pairs of a token and those before it, its own as a half: the way in which all keys are half.
  const auto pairs = [](std::int64_t keys, std::int64_t window, bool by_chunk) {
    double sum = 0;
    for (std::int64_t i = 0; i < keys; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        const bool is_seen = window == 0 || (by_chunk ? j / window == i / window : i - j < window);
        if (is_seen) sum += i == j ? 0.5 : 1;
      }
    }
    return sum / static_cast<double>(keys);
  };
  for (const std::int64_t keys : {1, 7, 64}) {
    CHECK(mean_reach(keys, 0, false) == doctest::Approx(pairs(keys, 0, false)));
    CHECK(mean_reach(keys, 100, false) == doctest::Approx(pairs(keys, 0, false)));
    for (const std::int64_t chunk : {3, 5, 32})
      CHECK(mean_reach(keys, chunk, true) == doctest::Approx(pairs(keys, chunk, true)));
  }
  // A window's edge is a half, too: of 64 keys and a window of 8, 8 - 8 x 8 / 128.
  CHECK(mean_reach(64, 8, false) == 7.5);
  CHECK(pairs(64, 8, false) == doctest::Approx(7.5).epsilon(0.1));
}

TEST_CASE("a scan's products are those of its chunks") {
  // Mamba-2: per chunk and group scores, per chunk and head their sums and both ways of the state.
  const ScanOp mamba{.batch = 1,
                     .tokens = 32,
                     .heads = 8,
                     .key_heads = 2,
                     .key_size = 16,
                     .value_size = 4,
                     .chunk = 16,
                     .delta = false};
  const std::int64_t chunks = 2;
  const std::int64_t scores = 2 * 16 * 16 * 16, sums = 8 * 16 * 16 * 4,
                     states = 2 * 8 * 16 * 16 * 4;
  CHECK(32 * pairs_of_token(mamba) == chunks * (scores + sums + states));
  // The delta rule has scores of keys with keys besides, both products of its inverse, and what the
  // state holds under the keys.
  const ScanOp delta{.batch = 1,
                     .tokens = 32,
                     .heads = 4,
                     .key_heads = 4,
                     .key_size = 8,
                     .value_size = 16,
                     .chunk = 16,
                     .delta = true};
  const std::int64_t square = 16 * 16;
  CHECK(32 * pairs_of_token(delta) ==
        chunks * 4 * (3 * square * 8 + 2 * square * 16 + 3 * 16 * 8 * 16));
}

TEST_CASE("blocks of one mixer or one MLP are blocks, and cut as such") {
  const TransformerProfile profile = profile_of(kMamba, tokens(64));
  std::vector<std::string> kinds, names;
  for (const Layer& layer : profile.model.graph.layers()) {
    kinds.push_back(layer.kind);
    names.push_back(layer.name);
  }
  CHECK(kinds == std::vector<std::string>{"embedding", "mamba_block", "moe_block",
                                          "attending_block", "dense_block", "head"});
  CHECK(names[4] == "block_3");
  CHECK(shape_of(kMamba).block_layers(true) == 4);
  CHECK(shape_of(kDelta).block_layers(true) == 8);
}

TEST_CASE("an index is there in blocks that have their own, and keys are chosen in all") {
  const TransformerShape shape = shape_of(kLatentSparse);
  std::vector<int> indices, windows;
  const auto profile = profile_of(kLatentSparse, tokens(64));
  for (const LayerCosts& layer : profile.model.profile.measurements[0].layers) {
    int index = 0, window = 0;
    for (const LayerOp& op : layer.ops->ops) {
      if (std::holds_alternative<IndexOp>(op.shape)) ++index;
      if (const auto* attention = std::get_if<AttentionOp>(&op.shape))
        window = static_cast<int>(attention->window);
    }
    indices.push_back(index);
    windows.push_back(window);
  }
  CHECK(indices == std::vector<int>{0, 1, 0, 1, 0});
  CHECK(windows == std::vector<int>{0, 16, 16, 16, 0});
  // With no more tokens than are chosen, attention is that of DeepSeek-V3.
  for (const LayerOp& op : transformer_ops("attention", shape.of_kind(0), tokens(16)).ops) {
    if (const auto* attention = std::get_if<AttentionOp>(&op.shape)) {
      CHECK(attention->window == 0);
      CHECK(attention->key_heads == 4);
      CHECK(attention->query_size == 12);
    }
  }
}

TEST_CASE("residual streams go from layer to layer") {
  const TransformerProfile profile = profile_of(kCompressed, tokens(64));
  const auto& layers = profile.model.profile.measurements[0].layers;
  for (std::size_t i = 0; i + 1 < layers.size(); ++i)
    CHECK(layers[i].output.count == 4 * 2 * 64 * 32);
}

TEST_CASE("devices do not share samples where a state passes between tokens, or keys are chosen") {
  TransformerOptions options = tokens(64);
  options.context_parallel = 2;
  for (const std::string& config : {kMamba, kDelta, kLatentSparse, kCompressed, kKimi}) {
    const auto refused = transformer_profile("m", shape_of(config), options);
    REQUIRE_FALSE(refused);
    CHECK(refused.problems().front().message ==
          "--context-parallel is 2, and blocks of the model pass a state from token to token, or "
          "choose the keys of each");
  }
  CHECK(transformer_profile("m", shape_of(kWindows), options));
  TransformerOptions tensor = tokens(64);
  tensor.tensor_parallel = 4;
  const auto refused = transformer_profile("m", shape_of(kMamba), tensor);
  REQUIRE_FALSE(refused);
  CHECK(refused.problems().front().message ==
        "--tensor-parallel is 4, which does not divide the 2 heads of a scan's keys");
}

TEST_CASE("a window makes attention cheaper, and nothing else") {
  const TransformerShape with_window = shape_of(kWindows);
  TransformerShape without = with_window;
  for (BlockKind& kind : without.kinds) kind.block.window.reset();
  const auto forward = [](const TransformerShape& shape) {
    const auto profile = transformer_profile("m", shape, tokens(64));
    REQUIRE(profile);
    return profile->totals.forward_flops;
  };
  // Two blocks, 4 heads of 12 + 8 numbers: of 64 x 32 pairs, 64 x 7.5 are left.
  CHECK(forward(without) - forward(with_window) == 2 * 2 * 4 * (12 + 8) * 64 * (32 - 7.5));
}

}  // namespace
}  // namespace plumbline
