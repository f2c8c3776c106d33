// Models as networks that run: the same layers and parameters, and what no kind of layer computes.
//
// SPDX-License-Identifier: MIT
#include "models/import/transformer_network.h"

#include <doctest/doctest.h>

#include <string>
#include <variant>
#include <vector>

#include "tests/support/transformers.h"

namespace plumbline::test {
namespace {

NetworkOptions options_of(std::int64_t sequence, std::int64_t layers = 0, std::int64_t parts = 1,
                          std::int64_t tensor_parallel = 1) {
  return {.sequence = sequence,
          .dtype = ElementType::fp32,
          .layers = layers,
          .scale = {parts},
          .tensor_parallel = tensor_parallel};
}

TransformerNetwork network_of(const std::string& config, const NetworkOptions& options) {
  auto made = transformer_network("test", shape_of(config), options);
  REQUIRE_MESSAGE(made, (made ? "" : to_text(made.problems())));
  return *std::move(made);
}

/// All errors, a line each.
std::string errors_of(const std::string& config, const NetworkOptions& options) {
  const auto made = transformer_network("test", shape_of(config), options);
  if (made) return "no error";
  std::string text;
  for (const Diagnostic& problem : made.problems()) text += problem.message + "\n";
  return text;
}

const std::string kQwen3 =
    R"({"model_type": "qwen3", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 100,
        "hidden_act": "silu", "rope_theta": 1000000, "tie_word_embeddings": false})";
const std::string kQwen2 =
    R"({"model_type": "qwen2", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100,
        "hidden_act": "silu", "tie_word_embeddings": false})";
const std::string kMistral =
    R"({"model_type": "mistral", "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "vocab_size": 100, "sliding_window": 16})";

TEST_CASE("a network has the parameters of its model") {
  // GPT-2's head is tied to its embedding: the network has the table twice.
  for (const std::string& config : {kLlama, kQwen3, kQwen2, kMistral, kGpt2}) {
    CAPTURE(config);
    const std::int64_t twice = config == kGpt2 ? 100 * 64 : 0;
    const TransformerProfile profile = profile_of(config, tokens(128));
    REQUIRE(profile.totals.parameters.is_exact());
    CHECK(network_of(config, options_of(128)).network.parameter_count() ==
          profile.totals.parameters.value() + twice);
  }
}

TEST_CASE("a network's products are those of its model") {
  // The model counts the half of attention that a causal mask leaves; all else is the same.
  for (const std::string& config : {kLlama, kQwen3, kQwen2}) {
    CAPTURE(config);
    const std::int64_t sequence = 128;
    const Network network = network_of(config, options_of(sequence)).network;
    double products = 0;
    double widths = 0;  // of the context, all blocks together
    for (const NetworkLayer& layer : network.layers) {
      if (std::holds_alternative<Embedding>(layer.settings)) continue;
      for (const Parameter& parameter : layer.parameters) {
        if (parameter.shape.extents.size() == 2)
          products += 2.0 * static_cast<double>(parameter.shape.elements() * sequence);
      }
      if (const auto* block = std::get_if<AttentionBlock>(&layer.settings))
        widths += static_cast<double>(block->heads * block->head_size);
    }
    const double squares = 4.0 * static_cast<double>(sequence * sequence) * widths;
    const double told = profile_of(config, tokens(sequence)).totals.forward_flops;
    CHECK(told == doctest::Approx(products + squares / 2).epsilon(1e-9));
  }
}

TEST_CASE("each family becomes its blocks") {
  CHECK(network_of(kQwen3, options_of(32)).yaml ==
        "# qwen3, from its config.json.\n"
        "version: 1\n"
        "kind: network\n"
        "name: test\n"
        "dtype: fp32\n"
        "input: {tokens: 32, vocabulary: 100}\n"
        "layers:\n"
        "  - {kind: embedding, features: 64}\n"
        "  - repeat: 3\n"
        "    layers:\n"
        "      - {kind: attention_block, heads: 4, kv_heads: 2, head_size: 32, norm: rms_norm, "
        "bias: false, qk_norm: true, rotary: 1000000}\n"
        "      - {kind: mlp_block, hidden: 96, activation: silu, gated: true, norm: rms_norm, "
        "bias: false}\n"
        "  - {kind: head, norm: rms_norm}\n");
  const auto attention = [](const std::string& config, std::int64_t sequence) {
    return std::get<AttentionBlock>(
        network_of(config, options_of(sequence)).network.layers[1].settings);
  };
  CHECK(attention(kQwen2, 32).bias == AttentionBias::qkv);
  CHECK(attention(kMistral, 32).window == 16);
  CHECK(attention(kMistral, 16).window == 0);  // it reaches all
  CHECK(attention(kMistral, 32).rotary == 10000);
  const AttentionBlock gpt2 = attention(kGpt2, 32);
  CHECK(gpt2.rotary == 0);
  CHECK(gpt2.bias == AttentionBias::all);
  CHECK(gpt2.norm == NormKind::layer_norm);
  const TransformerNetwork gpt2_network = network_of(kGpt2, options_of(32));
  CHECK(std::get<Embedding>(gpt2_network.network.layers[0].settings).positions);
  const auto mlp = std::get<MlpBlock>(gpt2_network.network.layers[2].settings);
  CHECK(mlp == MlpBlock{256});
  CHECK(gpt2_network.notes ==
        std::vector<std::string>{
            "the model ties its head to the embedding; here each has a table, which is 6400 "
            "parameters more",
            "the table of positions has 32 rows, not 128"});
  CHECK(errors_of(kGpt2, options_of(129)) ==
        "--sequence is 129, but the model has 128 positions\n");
}

TEST_CASE("the first blocks, a part of the widths, a rank's part") {
  const TransformerNetwork few = network_of(kQwen3, options_of(32, 2));
  CHECK(few.network.layers.size() == 6);
  CHECK(few.yaml.starts_with("# qwen3, from its config.json: 2 of 3 blocks.\n"));

  const TransformerNetwork narrow = network_of(kQwen3, options_of(32, 1, 2));
  const auto& attention = std::get<AttentionBlock>(narrow.network.layers[1].settings);
  CHECK(attention.heads == 2);
  CHECK(attention.kv_heads == 1);
  CHECK(attention.head_size == 32);
  CHECK(narrow.network.layers[1].input == Shape{{32, 32}});
  CHECK(std::get<MlpBlock>(narrow.network.layers[2].settings).hidden == 48);
  CHECK(std::get<Head>(narrow.network.layers[3].settings).classes == 50);

  const TransformerNetwork rank = network_of(kQwen3, options_of(32, 1, 1, 2));
  const auto& part = std::get<AttentionBlock>(rank.network.layers[1].settings);
  CHECK(part.heads == 2);
  CHECK(part.kv_heads == 1);
  CHECK(rank.network.layers[1].input == Shape{{32, 64}});
  CHECK(std::get<MlpBlock>(rank.network.layers[2].settings).hidden == 48);
  CHECK(std::get<Head>(rank.network.layers[3].settings).classes == 50);
  CHECK(rank.notes == std::vector<std::string>{"what the ranks of a tensor-parallel group send "
                                               "each other is not in it"});
  // Two ranks have what one has, but for the norms, which both have, and the scales of heads.
  const std::int64_t whole = network_of(kQwen3, options_of(32, 1)).network.parameter_count();
  const std::int64_t norms = 3 * 64 + 2 * 32;
  CHECK(2 * rank.network.parameter_count() == whole + norms);

  const TransformerNetwork quarter = network_of(kQwen3, options_of(32, 1, 1, 4));
  CHECK(std::get<AttentionBlock>(quarter.network.layers[1].settings).kv_heads == 1);
  CHECK(quarter.notes.back() ==
        "the model has 2 heads of keys and values, fewer than 4 parts: one is kept");
}

TEST_CASE("a vocabulary that nothing divides is padded") {
  std::string odd = kGpt2;
  odd.replace(odd.find("\"vocab_size\": 100"), 17, "\"vocab_size\": 101");
  const TransformerNetwork half = network_of(odd, options_of(128, 1, 2));
  CHECK(std::get<Embedding>(half.network.layers[0].settings).vocabulary == 51);
  CHECK(std::get<Head>(half.network.layers.back().settings).classes == 51);
  CHECK(half.notes.front() == "the vocabulary of 101 is padded to a multiple of 2");
}

TEST_CASE("what no kind of layer computes is an error, all at once") {
  CHECK(errors_of(kQwenMoe, options_of(32)) == "no kind of layer computes experts\n");
  CHECK(errors_of(kDeepSeek, options_of(32)) ==
        "no kind of layer computes latent attention (MLA)\nno kind of layer computes experts\n");
  std::string odd = kLlama;
  odd.insert(odd.size() - 1, R"(, "hidden_act": "quick_gelu")");
  CHECK(errors_of(odd, options_of(32)) == "no kind of layer computes the activation quick_gelu\n");
  CHECK(errors_of(kLlama, options_of(32, 3)) == "--layers is 3, but the model has 2 blocks\n");
  CHECK(errors_of(kLlama, options_of(32, 0, 3)) ==
        "--scale 1/3 does not divide the hidden size of 64\n"
        "--scale 1/3 does not divide the attention heads of 4\n"
        "--scale 1/3 does not divide the inner width of 128\n");
  // Four heads have no eighth part.
  CHECK(errors_of(kLlama, options_of(32, 0, 8))
            .find("--scale 1/8 does not divide the attention heads of 4\n") != std::string::npos);
  CHECK(errors_of(kLlama, options_of(32, 0, 1, 3)) ==
        "--tensor-parallel 3 does not divide the attention heads of 4\n"
        "--tensor-parallel 3 does not divide the inner width of 128\n");
}

TEST_CASE("what the file has beside the shape is told") {
  const auto notes = [](const std::string& more) {
    std::string config = kLlama;
    config.insert(config.size() - 1, more);
    return network_of(config, options_of(32)).notes;
  };
  CHECK(notes("").empty());
  CHECK(
      notes(R"(, "no_such_layers": [1, 0])") ==
      std::vector<std::string>{"config.json has a key that nothing here reads and that may change "
                               "what is computed: no_such_layers"});
  CHECK(notes(R"(, "attention_dropout": 0.1)") == std::vector<std::string>{"dropout is left out"});
  CHECK(notes(R"(, "partial_rotary_factor": 0.5)") ==
        std::vector<std::string>{"all of each head turns by its position, not a part of it"});
  CHECK(notes(R"(, "quantization_config": {"bits": 4})") ==
        std::vector<std::string>{"quantization_config of config.json is not counted"});
}

TEST_CASE("a part is 1, or one over a whole number") {
  CHECK(read_fraction("1")->parts == 1);
  CHECK(read_fraction("1/8")->parts == 8);
  for (const char* text : {"", "2", "1/0", "1/", "1/-2", "2/3", "0.5", "1/8x", "1/99999999"}) {
    CAPTURE(text);
    CHECK_FALSE(read_fraction(text));
  }
}

TEST_CASE("facts of positions and activations are read") {
  const auto facts = [](const std::string& more) {
    std::string config = kLlama;
    config.insert(config.size() - 1, more);
    return shape_of(config).facts;
  };
  CHECK(facts("").rotary_base == 0);
  CHECK(facts(R"(, "rope_theta": 500000.0)").rotary_base == 500000);
  CHECK(facts(R"(, "rope_parameters": {"rope_theta": 7e6, "rope_type": "default"})").rotary_base ==
        7e6);
  CHECK(facts(R"(, "partial_rotary_factor": 0.5)").partly_rotated);
  CHECK_FALSE(facts(R"(, "partial_rotary_factor": 1.0)").partly_rotated);
  CHECK(facts(R"(, "hidden_act": "silu")").activation == "silu");
}

}  // namespace
}  // namespace plumbline::test
