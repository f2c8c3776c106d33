// Families with plain MLPs: two matrices, no gate. Their sizes as published, and their blocks.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/import/transformer_ops.h"
#include "models/import/transformer_profile.h"
#include "tests/support/transformers.h"

namespace plumbline {
namespace {

using test::kFalcon;
using test::kNemotron;
using test::kNeoX;
using test::kPhi;
using test::kStarcoder;
using test::profile_of;
using test::shape_of;
using test::tokens;

std::int64_t parameters_of(const std::string& config) {
  return profile_of(config, tokens(128)).totals.parameters.value();
}

std::string with(std::string config, const std::string& keys) {
  config.insert(config.rfind('}'), ", " + keys);
  return config;
}

std::string without(std::string config, const std::string& text) {
  const std::size_t at = config.find(text);
  REQUIRE(at != std::string::npos);
  return config.erase(at, text.size());
}

TEST_CASE("nemotron has the parameters that its reports count") {
  // Parmar et al. 2024, "Nemotron-4 15B": 3.2 B of embeddings (with the head), 12.5 B others.
  const std::string keys =
      R"("model_type": "nemotron", "vocab_size": 256000, "num_key_value_heads": 8, )";
  const std::int64_t small = parameters_of(
      "{" + keys + R"("hidden_size": 6144, "intermediate_size": 24576, "num_hidden_layers": 32,
        "num_attention_heads": 48})");
  CHECK(static_cast<double>(small - 2LL * 256'000 * 6144) ==
        doctest::Approx(12.5e9).epsilon(0.005));
  // NVIDIA 2024, "Nemotron-4 340B", table 1: 9.4 B and 331.6 B.
  const std::int64_t large = parameters_of(
      "{" + keys + R"("hidden_size": 18432, "intermediate_size": 73728, "num_hidden_layers": 96,
        "num_attention_heads": 96})");
  CHECK(static_cast<double>(large - 2LL * 256'000 * 18432) ==
        doctest::Approx(331.6e9).epsilon(0.0005));
}

TEST_CASE("starcoder2-15b has the parameters of its published weights") {
  CHECK(parameters_of(
            R"({"model_type": "starcoder2", "hidden_size": 6144, "intermediate_size": 24576,
                "num_hidden_layers": 40, "num_attention_heads": 48, "num_key_value_heads": 4,
                "vocab_size": 49152, "tie_word_embeddings": false})") == 15'957'889'024);
}

TEST_CASE("gpt-neox-20b has the parameters that its makers count") {
  // Black et al. 2022, "GPT-NeoX-20B", and Biderman et al. 2023, "Pythia", table 1.
  const std::string keys = R"({"model_type": "gpt_neox", "max_position_embeddings": 2048, )";
  CHECK(
      parameters_of(keys + R"("hidden_size": 6144, "intermediate_size": 24576, "vocab_size": 50432,
        "num_hidden_layers": 44, "num_attention_heads": 64})") == 20'554'567'680);
  CHECK(
      parameters_of(keys + R"("hidden_size": 4096, "intermediate_size": 16384, "vocab_size": 50432,
        "num_hidden_layers": 32, "num_attention_heads": 32})") == 6'857'302'016);
}

TEST_CASE("phi-2 has the parameters of its published weights") {
  CHECK(parameters_of(
            R"({"model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240,
                "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
                "vocab_size": 51200})") == 2'779'683'840);
}

TEST_CASE("falcon has the parameters of its published weights, whichever names its keys have") {
  // The weights have the head beside the embedding, to which it is tied.
  const std::string seven = R"({"model_type": "falcon", "hidden_size": 4544, "vocab_size": 65024,
      "num_hidden_layers": 32, "num_attention_heads": 71, "multi_query": true,
      "parallel_attn": true})";
  const std::string old = R"({"model_type": "falcon", "n_embed": 4544, "vocab_size": 65024,
      "n_layer": 32, "n_head": 71})";
  CHECK(parameters_of(seven) + 65'024LL * 4544 == 7'217'189'760);
  CHECK(parameters_of(old) == parameters_of(seven));
  const std::string forty = R"({"model_type": "falcon", "hidden_size": 8192, "vocab_size": 65024,
      "num_hidden_layers": 60, "num_attention_heads": 128, "num_kv_heads": 8,
      "new_decoder_architecture": true})";
  CHECK(parameters_of(forty) + 65'024LL * 8192 == 41'835'970'560);
}

TEST_CASE("switches of falcon's blocks: heads, norms, positions, biases") {
  const TransformerShape usual = shape_of(kFalcon);
  CHECK(usual.key_value_heads == 2);
  CHECK(usual.order == BlockOrder::side_by_side);
  CHECK(shape_of(with(kFalcon, R"("num_ln_in_parallel_attn": 1)")).order ==
        BlockOrder::shared_norm);
  const std::string older = with(without(kFalcon, R"(,
        "new_decoder_architecture": true)"),
                                 R"("bias": true)");
  CHECK(shape_of(older).key_value_heads == 1);
  CHECK(shape_of(older).order == BlockOrder::shared_norm);
  CHECK(shape_of(older).feed_forward_bias);
  const TransformerShape plain =
      shape_of(with(older, R"("multi_query": false, "parallel_attn": false, "alibi": true)"));
  CHECK(plain.key_value_heads == 4);
  CHECK(plain.order == BlockOrder::sequential);
  CHECK(plain.positions_in_scores);
}

TEST_CASE("a plain MLP keeps what it multiplies and its activation, and attention groups heads") {
  TransformerOptions options = tokens(16);
  options.split_blocks = true;
  for (const std::string& config : {kNemotron, kStarcoder}) {
    const TransformerProfile profile = profile_of(config, options);
    const auto& layers = profile.model.profile.measurements[0].layers;
    // Behind the norm; queries, keys and values; sums of the softmax; the projection's input;
    // output.
    CHECK(layers[1].activation.count == 16 * (2 * (64 + (4 + 2 * 2) * 16 + 64 + 64) + 4 * 4));
    CHECK(layers[2].activation.count == 16 * 2 * (64 + 2 * 160 + 64));
    CHECK(layers[2].work->forward.flops.count == 2LL * 16 * 2 * 64 * 160);
  }
  const std::int64_t biases = (4 + 2 * 2) * 16 + 64 + 160 + 64;
  const std::int64_t of_block = 64 * 128 + 64 * 64 + 2 * 64 * 160 + 4 * 64;
  const auto block = [&](const std::string& config) {
    return profile_of(config, tokens(16)).model.graph.layers()[1].parameters.count / 2;
  };
  CHECK(block(kNemotron) == of_block);
  CHECK(block(kStarcoder) == of_block + biases);
  CHECK(block(with(kStarcoder, R"("use_bias": false)")) == of_block);
}

TEST_CASE("side by side, attention and MLP share their input, one sum, and maybe their norm") {
  const std::string sequential = with(kNeoX, R"("use_parallel_residual": false)");
  for (const std::int64_t tensor : {1, 2}) {
    for (const bool by_tokens : {false, true}) {
      if (by_tokens && tensor == 1) continue;
      CAPTURE(tensor);
      CAPTURE(by_tokens);
      TransformerOptions options = tokens(16);
      options.tensor_parallel = tensor;
      options.sequence_parallel = by_tokens;
      const auto block = [&](const std::string& config) {
        return profile_of(config, options).model.profile.measurements[0].layers[1];
      };
      const LayerCosts one_by_one = block(sequential);
      const LayerCosts both = block(kNeoX);
      const LayerCosts shared = block(kPhi);
      const std::int64_t hidden = 2 * 16 * 64 / (by_tokens ? tensor : 1);
      // Attention's sum need not be kept for a norm; with one norm, its output is kept once.
      CHECK(one_by_one.activation.count - both.activation.count == hidden);
      CHECK(both.activation.count - shared.activation.count == hidden);
      CHECK(both.work->forward.flops == one_by_one.work->forward.flops);
      CHECK(shared.work->forward.flops == one_by_one.work->forward.flops);
      // Two norms gather, or add gradients up, twice; sums are added up once for both.
      const auto sent = [](const LayerCosts& layer) {
        return layer.work->forward.link_traffic + layer.work->backward_input.link_traffic;
      };
      CHECK(4 * sent(both).count == 3 * sent(one_by_one).count);
      CHECK(2 * sent(shared).count == sent(one_by_one).count);
    }
  }
  TransformerOptions split = tokens(16);
  split.split_blocks = true;
  const auto refused = transformer_profile("m", shape_of(kPhi), split);
  REQUIRE_FALSE(refused);
  CHECK(refused.problems().front().message ==
        "--split-blocks of a model whose attention and MLP run side by side");
}

TEST_CASE("a family's own keys are read, and activations that may need a gate are told") {
  for (const std::string& config : {kNemotron, kStarcoder, kNeoX, kPhi, kFalcon}) {
    const TransformerShape shape = shape_of(config);
    CAPTURE(shape.family);
    CHECK(shape.facts.unread.empty());
    CHECK_FALSE(shape.gated);
    CHECK(shape_of(with(config, R"("hidden_activation": "geglu")")).facts.unread ==
          std::vector<std::string>{"hidden_activation"});
  }
  CHECK(shape_of(with(kPhi, R"("qk_layernorm": true)")).query_key_norm);
  // Scales and shifts of queries and keys.
  const auto parameters = [](const std::string& config) { return parameters_of(config); };
  CHECK(parameters(with(kPhi, R"("qk_layernorm": true)")) - parameters(kPhi) == 2 * 2 * 2 * 16);
}

}  // namespace
}  // namespace plumbline
