// Two networks are the same where the same is computed, whatever their files look like.
//
// SPDX-License-Identifier: MIT
#include "models/network/network_content.h"

#include <doctest/doctest.h>

#include <set>

#include "models/network/network_reader.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

std::string content(const std::string& input, const std::string& layers) {
  const auto network = parse_network(
      text_source("n.network.yaml",
                  "version: 1\nkind: network\nname: n\ninput: " + input + "\nlayers:\n" + layers));
  REQUIRE_MESSAGE(network, (network ? "" : to_text(network.problems())));
  return network_content(*network);
}

TEST_CASE("the layout of a network's file does not count, its layers do") {
  const std::string repeated =
      content("{shape: [8]}", "  - repeat: 2\n    layers:\n      - {kind: relu}\n");
  CHECK(repeated == content("{shape: [8]}  # numbers", "  - {kind: relu}\n  - {kind: relu}\n"));
  CHECK(repeated == "n fp32 [8] 0\nrelu_0 relu  [8] [8]\nrelu_1 relu  [8] [8]\n");
  CHECK(repeated != content("{shape: [8]}", "  - {kind: relu}\n"));
  CHECK(content("{shape: [8]}", "  - {kind: linear, features: 4}\n") ==
        content("{shape: [8]}", "  - {kind: linear, features: 4, bias: true}\n"));
}

TEST_CASE("every setting of every kind of layer counts") {
  const std::string numbers = "{shape: [4, 8]}";
  const std::string image = "{shape: [4, 8, 8]}";
  const std::string ids = "{tokens: 4, vocabulary: 16}";
  const std::vector<std::pair<std::string, std::string>> layers = {
      {numbers, "linear, features: 4"},
      {numbers, "linear, features: 8"},
      {numbers, "linear, features: 4, bias: false"},
      {numbers, "relu"},
      {numbers, "gelu"},
      {numbers, "layer_norm"},
      {numbers, "attention_block, heads: 1"},
      {numbers, "attention_block, heads: 2"},
      {numbers, "attention_block, heads: 2, causal: false"},
      {numbers, "attention_block, heads: 2, kv_heads: 1"},
      {numbers, "attention_block, heads: 2, head_size: 2"},
      {numbers, "attention_block, heads: 2, head_size: 6"},
      {numbers, "attention_block, heads: 2, kv_heads: 1, head_size: 2"},
      {numbers, "attention_block, heads: 2, norm: rms_norm"},
      {numbers, "attention_block, heads: 2, bias: qkv"},
      {numbers, "attention_block, heads: 2, bias: false"},
      {numbers, "attention_block, heads: 2, qk_norm: true"},
      {numbers, "attention_block, heads: 2, rotary: 10000"},
      {numbers, "attention_block, heads: 2, rotary: 10000.5"},
      {numbers, "attention_block, heads: 2, window: 2"},
      {numbers, "attention_block, heads: 2, window: 3"},
      {numbers, "mlp_block"},
      {numbers, "mlp_block, hidden: 8"},
      {numbers, "mlp_block, activation: silu"},
      {numbers, "mlp_block, activation: relu"},
      {numbers, "mlp_block, gated: true"},
      {numbers, "mlp_block, gated: true, activation: silu"},
      {numbers, "mlp_block, norm: rms_norm"},
      {numbers, "mlp_block, bias: false"},
      {numbers, "rms_norm"},
      {numbers, "lstm, hidden: 8"},
      {numbers, "lstm, hidden: 4"},
      {numbers, "lstm, hidden: 8, residual: true"},
      {numbers, "head, classes: 2"},
      {numbers, "head, classes: 3"},
      {numbers, "head, classes: 2, norm: false"},
      {numbers, "head, classes: 2, bias: true"},
      {numbers, "head, classes: 2, norm: rms_norm"},
      {ids, "embedding, features: 8"},
      {ids, "embedding, features: 4"},
      {ids, "embedding, features: 8, positions: true"},
      {image, "conv2d, channels: 4, kernel: 3, padding: 1"},
      {image, "conv2d, channels: 8, kernel: 3, padding: 1"},
      {image, "conv2d, channels: 4, kernel: 1, padding: 0"},
      {image, "conv2d, channels: 4, kernel: 3, padding: 1, stride: 2"},
      {image, "conv2d, channels: 4, kernel: 3, padding: 1, bias: false"},
      {image, "max_pool"},
      {image, "max_pool, kernel: 3"},
      {image, "max_pool, kernel: 3, padding: 1"},
      {image, "max_pool, kernel: 3, stride: 1"},
      {image, "batch_norm"},
      {image, "flatten"},
      {image, "residual_block, channels: 4"},
      {image, "residual_block, channels: 8"},
      {image, "residual_block, channels: 4, stride: 2"},
  };
  std::set<std::string> contents;
  for (const auto& [input, layer] : layers)
    contents.insert(content(input, "  - {kind: " + layer + "}\n"));
  CHECK(contents.size() == layers.size());
}

/// What is told of a layer's settings, in front of its shapes.
std::string settings_in(const std::string& layer) {
  const std::string text = content("{shape: [4, 8]}", "  - {kind: " + layer + "}\n");
  const std::size_t from = text.find('\n') + 1;
  return text.substr(from, text.find(" [4, 8] ", from) - from);
}

TEST_CASE("settings that came later are not told where they are as before") {
  CHECK(settings_in("attention_block, heads: 2") ==
        "attention_block_0 attention_block heads 2 causal true");
  CHECK(settings_in("attention_block, heads: 2, causal: false") ==
        "attention_block_0 attention_block heads 2 causal false");
  CHECK(settings_in("mlp_block") == "mlp_block_0 mlp_block hidden 32");
  CHECK(settings_in("head, classes: 2") == "head_0 head classes 2 norm true bias false");
  CHECK(settings_in("head, classes: 2, norm: false") ==
        "head_0 head classes 2 norm false bias false");
  // Said as they are when they are absent.
  CHECK(settings_in("attention_block, heads: 2, kv_heads: 2, head_size: 4, norm: layer_norm, bias: "
                    "true, qk_norm: false") == settings_in("attention_block, heads: 2"));
  CHECK(settings_in("mlp_block, activation: gelu, gated: false, norm: layer_norm, bias: true") ==
        settings_in("mlp_block"));
  CHECK(settings_in("head, classes: 2, norm: layer_norm") == settings_in("head, classes: 2"));
}

TEST_CASE("settings that came later are told one after the other") {
  CHECK(settings_in("attention_block, heads: 4, kv_heads: 2, head_size: 6, norm: rms_norm, bias: "
                    "qkv, qk_norm: true, rotary: 10000, window: 3") ==
        "attention_block_0 attention_block heads 4 causal true kv_heads 2 head_size 6 rms_norm "
        "bias qkv qk_norm rotary 10000 window 3");
  CHECK(settings_in("attention_block, bias: false, rotary: 1.5") ==
        "attention_block_0 attention_block heads 1 causal true bias false rotary 1.5");
  CHECK(settings_in("mlp_block, activation: silu, gated: true, norm: rms_norm, bias: false") ==
        "mlp_block_0 mlp_block hidden 32 silu gated rms_norm bias false");
  CHECK(settings_in("head, classes: 2, norm: rms_norm") ==
        "head_0 head classes 2 norm true bias false rms_norm");
  CHECK(settings_in("rms_norm") == "rms_norm_0 rms_norm ");
}

TEST_CASE("the fingerprint is FNV-1a, 64 bits, of the content") {
  const auto network = parse_network(text_source(
      "n.network.yaml",
      "version: 1\nkind: network\nname: n\ninput: {shape: [8]}\nlayers:\n  - {kind: relu}\n"));
  REQUIRE(network);
  const std::string print = network_fingerprint(*network);
  CHECK(print == "53d48b75190325af");
  Network other = *network;
  other.name = "m";
  CHECK(network_fingerprint(other) != print);
}

}  // namespace
}  // namespace plumbline::test
