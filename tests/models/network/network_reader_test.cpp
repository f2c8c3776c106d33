// Files of networks: what their keys say, and every error of the format.
//
// SPDX-License-Identifier: MIT
#include "models/network/network_reader.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/support/text_source.h"

namespace plumbline {
namespace {

Network network_of(const std::string& text) {
  const auto network = parse_network(test::text_source("n.network.yaml", text));
  REQUIRE_MESSAGE(network, (network ? "" : to_text(network.problems())));
  return *network;
}

/// A network of these layers over this input.
Network small_network(const std::string& input, const std::string& layers) {
  return network_of("version: 1\nkind: network\ninput: " + input + "\nlayers:\n" + layers);
}

/// Everything wrong in a document, as "line: message (help)" in the order of the lines.
std::string errors_of(const std::string& text) {
  const auto network = parse_network(test::text_source("n.network.yaml", text));
  if (network) return "no error";
  Diagnostics problems = network.problems();
  std::stable_sort(problems.begin(), problems.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return a.mark.line < b.mark.line;
  });
  std::string told;
  for (const Diagnostic& problem : problems) {
    told += std::to_string(problem.mark.line) + ": " + problem.message +
            (problem.help.empty() ? "\n" : " (" + problem.help + ")\n");
  }
  return told;
}

/// The errors of a network whose layers start in line 5.
std::string errors_in(const std::string& input, const std::string& layers) {
  return errors_of("version: 1\nkind: network\ninput: " + input + "\nlayers:\n" + layers);
}

TEST_CASE("a file's keys arrive in the settings") {
  const Network network = network_of(R"(version: 1
kind: network
dtype: bf16
input: {shape: [4, 20, 20]}
layers:
  - {kind: conv2d, name: stem, channels: 8, kernel: 5, stride: 2, padding: 2, bias: false}
  - {kind: max_pool, kernel: 3, stride: 1, padding: 1}
  - {kind: max_pool, kernel: 4}
  - {kind: residual_block, channels: 9, stride: 2}
  - {kind: flatten}
  - {kind: linear, features: 6, bias: false}
  - {kind: mlp_block, hidden: 5}
  - {kind: head, classes: 3, norm: false, bias: true}
)");
  CHECK(network.name == "n");  // of n.network.yaml
  CHECK(network.element == ElementType::bf16);
  CHECK(!network.input.vocabulary);
  REQUIRE(network.layers.size() == 8);
  CHECK(network.layers[0].name == "stem");
  const auto& conv = std::get<Conv2d>(network.layers[0].settings);
  CHECK(conv.channels == 8);
  CHECK(conv.kernel == 5);
  CHECK(conv.stride == 2);
  CHECK(conv.padding == 2);
  CHECK(!conv.bias);
  CHECK(std::get<MaxPool>(network.layers[1].settings).stride == 1);
  CHECK(std::get<MaxPool>(network.layers[1].settings).padding == 1);
  CHECK(std::get<MaxPool>(network.layers[2].settings).stride == 4);  // the kernel's
  CHECK(network.layers[2].name == "max_pool_1");
  CHECK(std::get<ResidualBlock>(network.layers[3].settings).stride == 2);
  CHECK(std::get<MlpBlock>(network.layers[6].settings).hidden == 5);
  CHECK(!std::get<Linear>(network.layers[5].settings).bias);
  CHECK(std::get<Head>(network.layers[7].settings).classes == 3);
  CHECK(std::get<Head>(network.layers[7].settings).bias);

  const Network sequence = small_network("{tokens: 8, vocabulary: 11}",
                                         "  - {kind: embedding, features: 6}\n"
                                         "  - {kind: lstm, hidden: 6, residual: true}\n"
                                         "  - {kind: attention_block, heads: 3, causal: false}\n"
                                         "  - {kind: attention_block}\n"
                                         "  - {kind: head, classes: 4}\n");
  CHECK(sequence.element == ElementType::fp32);
  CHECK(std::get<Lstm>(sequence.layers[1].settings).residual);
  CHECK(!std::get<AttentionBlock>(sequence.layers[2].settings).causal);
  CHECK(std::get<AttentionBlock>(sequence.layers[3].settings).heads == 1);
  CHECK(std::get<Head>(sequence.layers[4].settings).classes == 4);
}

AttentionBlock attention_of(const std::string& keys) {
  const Network network =
      small_network("{shape: [16, 24]}", "  - {kind: attention_block" + keys + "}\n");
  return std::get<AttentionBlock>(network.layers.front().settings);
}

MlpBlock mlp_of(const std::string& keys) {
  const Network network = small_network("{shape: [16, 24]}", "  - {kind: mlp_block" + keys + "}\n");
  return std::get<MlpBlock>(network.layers.front().settings);
}

Head head_of(const std::string& keys) {
  const Network network =
      small_network("{shape: [16, 24]}", "  - {kind: head, classes: 3" + keys + "}\n");
  return std::get<Head>(network.layers.front().settings);
}

TEST_CASE("the keys of today's language models arrive in the settings") {
  // Absent keys are as they were before there were any.
  CHECK(attention_of("") == AttentionBlock{.heads = 1, .kv_heads = 1, .head_size = 24});
  CHECK(attention_of(", heads: 4, kv_heads: 2") ==
        AttentionBlock{.heads = 4, .kv_heads = 2, .head_size = 6});
  CHECK(attention_of(", heads: 5, head_size: 7") ==
        AttentionBlock{.heads = 5, .kv_heads = 5, .head_size = 7});
  CHECK(attention_of(", norm: rms_norm").norm == NormKind::rms_norm);
  CHECK(attention_of(", norm: layer_norm").norm == NormKind::layer_norm);
  CHECK(attention_of(", bias: true").bias == AttentionBias::all);
  CHECK(attention_of(", bias: false").bias == AttentionBias::none);
  CHECK(attention_of(", bias: qkv").bias == AttentionBias::qkv);
  CHECK(attention_of(", qk_norm: true").qk_norm);
  CHECK(!attention_of(", qk_norm: false").qk_norm);
  CHECK(attention_of(", rotary: 10000").rotary == 10000);
  CHECK(attention_of(", rotary: 1").rotary == 1);
  CHECK(attention_of(", rotary: 1.5e6").rotary == 1.5e6);
  CHECK(attention_of(", causal: false, rotary: 10").rotary == 10);
  CHECK(attention_of(", window: 1").window == 1);
  CHECK(attention_of(", window: 1000").window == 1000);
  CHECK(attention_of(", heads: 6, causal: true, kv_heads: 3, head_size: 10, norm: rms_norm, bias: "
                     "qkv, qk_norm: true, rotary: 500000, window: 9") ==
        AttentionBlock{.heads = 6,
                       .causal = true,
                       .kv_heads = 3,
                       .head_size = 10,
                       .norm = NormKind::rms_norm,
                       .bias = AttentionBias::qkv,
                       .qk_norm = true,
                       .rotary = 500'000,
                       .window = 9});

  CHECK(mlp_of("") == MlpBlock{.hidden = 96});
  CHECK(mlp_of(", activation: gelu") == MlpBlock{.hidden = 96});
  CHECK(mlp_of(", activation: silu").activation == Activation::silu);
  CHECK(mlp_of(", activation: relu").activation == Activation::relu);
  CHECK(mlp_of(", norm: rms_norm").norm == NormKind::rms_norm);
  CHECK(mlp_of(", gated: true").gated);
  CHECK(mlp_of(", bias: true").bias);
  CHECK(!mlp_of(", bias: false").bias);
  CHECK(mlp_of(", hidden: 7, activation: silu, gated: true, norm: rms_norm, bias: false") ==
        MlpBlock{.hidden = 7,
                 .activation = Activation::silu,
                 .gated = true,
                 .norm = NormKind::rms_norm,
                 .bias = false});

  CHECK(head_of("").norm);
  CHECK(head_of("").norm_kind == NormKind::layer_norm);
  CHECK(head_of(", norm: true").norm);
  CHECK(!head_of(", norm: false").norm);
  CHECK(head_of(", norm: layer_norm").norm);
  CHECK(head_of(", norm: rms_norm").norm);
  CHECK(head_of(", norm: rms_norm").norm_kind == NormKind::rms_norm);
  CHECK(small_network("{shape: [16, 24]}", "  - {kind: rms_norm}\n").layers.front().name ==
        "rms_norm_0");
}

TEST_CASE("settings of attention that are wrong are told") {
  const auto error = [](const std::string& keys) {
    return errors_in("{shape: [16, 24]}", "  - {kind: attention_block, " + keys + "}\n");
  };
  const std::string serves = " (each head of keys and values serves as many heads of queries)\n";
  CHECK(error("heads: 4, kv_heads: 3") ==
        "5: layers[0].kv_heads is 3, which does not divide heads: 4" + serves);
  CHECK(error("heads: 4, kv_heads: 8") ==
        "5: layers[0].kv_heads is 8, which does not divide heads: 4" + serves);
  CHECK(error("kv_heads: 2") ==
        "5: layers[0].kv_heads is 2, which does not divide heads: 1" + serves);
  for (const std::string key : {"kv_heads", "head_size", "window"}) {
    CHECK(error(key + ": 0") ==
          "5: layers[0]." + key + " is 0, which is not between 1 and 1000000000\n");
  }
  const std::string odd =
      ", but the input in line 3 is [16, 24] (numbers turn in pairs: change heads or head_size, or "
      "take rotary out)\n";
  CHECK(error("heads: 8, rotary: 10000") ==
        "5: layers[0] 'attention_block_0' takes heads of an even size for its rotary positions, "
        "not of 3" +
            odd);
  CHECK(error("heads: 4, head_size: 5, rotary: 10000") ==
        "5: layers[0] 'attention_block_0' takes heads of an even size for its rotary positions, "
        "not of 5" +
            odd);
  CHECK(error("heads: 8, qk_norm: true") == "no error");
  const std::string order =
      "5: layers[0].window is 4, but causal is false: no token is before another (a window is of "
      "the tokens before: leave one of the two out)\n";
  CHECK(error("causal: false, window: 4") == order);
  const std::string base =
      ", which is not at least 1 (the base of the angles, such as 10000; absent = no rotary "
      "positions)\n";
  CHECK(error("rotary: 0.5") == "5: layers[0].rotary is 0.5" + base);
  CHECK(error("rotary: 0") == "5: layers[0].rotary is 0" + base);
  CHECK(error("rotary: -3") == "5: layers[0].rotary is '-3', which is negative\n");
  CHECK(error("rotary: 1e16") == "5: layers[0].rotary is 1e+16, which is above 1000000000000000\n");
  CHECK(error("rotary: true") == "5: layers[0].rotary is 'true', which is not a number\n");
  CHECK(error("qk_norm: rms_norm") ==
        "5: layers[0].qk_norm is 'rms_norm', which is neither true nor false\n");
  // What is wrong in several ways is told in all of them.
  CHECK(error("heads: 4, kv_heads: 3, rotary: 0.25, causal: false, window: 4") ==
        "5: layers[0].kv_heads is 3, which does not divide heads: 4" + serves +
            "5: layers[0].rotary is 0.25" + base + order);
}

TEST_CASE("words that are no activation, norm or bias are told") {
  const auto error = [](const std::string& layer) {
    return errors_in("{shape: [16, 24]}", "  - {kind: " + layer + "}\n");
  };
  CHECK(error("mlp_block, activation: tanh") ==
        "5: layers[0].activation is 'tanh', which is no activation (one of gelu, silu, relu)\n");
  CHECK(error("mlp_block, activation: sillu") ==
        "5: layers[0].activation is 'sillu', which is no activation (did you mean 'silu'?)\n");
  for (const std::string kind : {"attention_block", "mlp_block"}) {
    for (const std::string word : {"true", "false", "batch"}) {
      CHECK(error(kind + ", norm: " + word) ==
            "5: layers[0].norm is '" + word +
                "', which is no norm (one of layer_norm, rms_norm)\n");
    }
    CHECK(error(kind + ", norm: rmsnrm") ==
          "5: layers[0].norm is 'rmsnrm', which is no norm (did you mean 'rms_norm'?)\n");
  }
  CHECK(error("head, classes: 3, norm: batch").starts_with("5: layers[0].norm is 'batch', which "));
  for (const std::string word : {"qk", "none", "all"}) {
    CHECK(error("attention_block, bias: " + word)
              .starts_with("5: layers[0].bias is '" + word + "', which is neither true nor false"));
  }
  // Only attention has queries, keys and values.
  for (const std::string kind : {"mlp_block", "linear, features: 3", "head, classes: 3"}) {
    CHECK(error(kind + ", bias: qkv") ==
          "5: layers[0].bias is 'qkv', which is neither true nor false\n");
  }
  CHECK(error("mlp_block, gated: silu") ==
        "5: layers[0].gated is 'silu', which is neither true nor false\n");
}

TEST_CASE("keys of today's language models are those of their kinds alone") {
  const auto error = [](const std::string& layer) {
    return errors_in("{shape: [16, 24]}", "  - {kind: " + layer + "}\n");
  };
  const std::string help = " (take it out, or change the kind)\n";
  CHECK(error("rms_norm, norm: rms_norm") ==
        "5: layers[0].norm is a key of attention_block, mlp_block, head, not of rms_norm" + help);
  CHECK(error("rms_norm, bias: false") ==
        "5: layers[0].bias is a key of linear, attention_block, mlp_block, head, conv2d, not of "
        "rms_norm" +
            help);
  for (const std::string key :
       {"kv_heads: 2", "head_size: 4", "qk_norm: true", "rotary: 10000", "window: 4"}) {
    const std::string name = key.substr(0, key.find(':'));
    CHECK(error("mlp_block, " + key) ==
          "5: layers[0]." + name + " is a key of attention_block, not of mlp_block" + help);
  }
  for (const std::string key : {"activation: silu", "gated: true"}) {
    const std::string name = key.substr(0, key.find(':'));
    CHECK(error("attention_block, " + key) ==
          "5: layers[0]." + name + " is a key of mlp_block, not of attention_block" + help);
  }
  CHECK(error("lstm, hidden: 24, head_size: 4, kv_heads: 2") ==
        "5: layers[0].head_size is a key of attention_block, not of lstm" + help +
            "5: layers[0].kv_heads is a key of attention_block, not of lstm" + help);
}

TEST_CASE("names count through the network, and given ones count their repeats, outermost first") {
  const Network network = small_network("{shape: [4]}",
                                        "  - {kind: linear, features: 4}\n"
                                        "  - repeat: 2\n"
                                        "    layers:\n"
                                        "      - {kind: linear, features: 4, name: wide}\n"
                                        "      - repeat: 3\n"
                                        "        layers:\n"
                                        "          - {kind: relu, name: act}\n"
                                        "      - {kind: linear, features: 4}\n");
  std::string names;
  for (const NetworkLayer& layer : network.layers) names += layer.name + " ";
  CHECK(names ==
        "linear_0 wide_0 act_0_0 act_0_1 act_0_2 linear_2 wide_1 act_1_0 act_1_1 act_1_2 "
        "linear_4 ");
}

TEST_CASE("the example networks are read and are small, but for those that are for GPUs") {
  struct Example {
    const char* name;
    std::size_t layers;
    std::int64_t parameters;
    double max_flops;  ///< For a forward of 8 samples.
  };
  const std::vector<Example> examples = {
      // 8 x (1024 x 1024 + 1024) + 1024 x 10 + 10
      {"mlp", 17, 8 * 1'049'600 + 10'250, 2e9},
      // words and positions 128 x (2048 + 64), a block 12 x 128^2 + 13 x 128, norm 256, head
      {"gpt-small", 10, 270'336 + 4 * 198'272 + 256 + 262'144, 2e9},
      // 32 x 27 + 32, 32 x 288 + 32, 64 x 288 + 64, 64 x 576 + 64, 128 x 576 + 128,
      // 128 x 1152 + 128; 2048 x 256 + 256, 256 x 10 + 10
      {"vgg-small", 19, 896 + 9'248 + 18'496 + 36'928 + 73'856 + 147'584 + 524'544 + 2'570, 2e9},
      // 16 x 27 and 32; 2 x (2 x 16 x 144 + 64); 32 x 144 + 32 x 288 + 512 + 192, 2 x 32 x 288 +
      // 128; 64 x 288 + 64 x 576 + 2048 + 384, 2 x 64 x 576 + 256; 64 x 10 + 10
      {"resnet-small", 12, 432 + 32 + 2 * 4'672 + 14'528 + 18'560 + 57'728 + 73'984 + 650, 2e9},
      // 4096 x 128; 8 x (2 x 512 x 128 + 512); 4096 x 128 + 4096
      {"gnmt-lstm", 10, 524'288 + 8 * 131'584 + 528'384, 2e9},
      // words and positions 768 x (50304 + 1024), a block 12 x 768^2 + 13 x 768, norm 1536, head
      {"gpt2", 26, 39'419'904 + 12 * 7'087'872 + 1'536 + 38'633'472, 3e12},
      // 8 x (4096 x 4096 + 4096) + 4096 x 1000 + 1000
      {"mlp-wide", 17, 8 * 16'781'312 + 4'097'000, 3e9},
  };
  for (const Example& example : examples) {
    CAPTURE(example.name);
    const auto network =
        read_network(std::string("examples/networks/") + example.name + ".network.yaml");
    REQUIRE_MESSAGE(network, (network ? "" : to_text(network.problems())));
    CHECK(network->name == example.name);
    CHECK(network->layers.size() == example.layers);
    CHECK(network->parameter_count() == example.parameters);
    double flops = 0;
    for (const NetworkLayer& layer : network->layers) flops += layer.forward_flops;
    CHECK(8 * flops < example.max_flops);
  }
}

TEST_CASE("a break in the chain names both layers and is told once") {
  const std::string images = "{shape: [16, 16, 16]}";
  CHECK(errors_in(images,
                  "  - {kind: relu}\n"
                  "  - {kind: flatten}\n"
                  "  - {kind: attention_block, heads: 4}\n"
                  "  - {kind: conv2d, channels: 4}\n"
                  "  - {kind: head, classes: 10}\n") ==
        "7: layers[2] 'attention_block_0' takes [tokens, features], but 'flatten_0' in line 6 "
        "makes [4096] (sequences come from an embedding or input: {shape: [tokens, features]})\n");
  CHECK(errors_in(images, "  - {kind: lstm, hidden: 4}\n") ==
        "5: layers[0] 'lstm_0' takes [tokens, features], but the input in line 3 is "
        "[16, 16, 16] (pictures go through conv2d or residual_block, then flatten and linear)\n");
  CHECK(errors_in(images, "  - {kind: relu}\n  - {kind: head, classes: 10}\n") ==
        "6: layers[1] 'head_0' takes [features] or [tokens, features], but 'relu_0' in line 5 "
        "makes [16, 16, 16] (put a flatten between)\n");
  CHECK(errors_in(images, "  - {kind: mlp_block, name: wide}\n") ==
        "5: layers[0] 'wide' takes [features] or [tokens, features], but the input in line 3 is "
        "[16, 16, 16] (put a flatten between)\n");
  for (const char* kind :
       {"conv2d, channels: 3", "max_pool", "batch_norm", "residual_block, channels: 3"}) {
    const std::string name = std::string(kind).substr(0, std::string(kind).find(','));
    CHECK(errors_in("{shape: [4, 8]}", std::string("  - {kind: ") + kind + "}\n") ==
          "5: layers[0] '" + name +
              "_0' takes [channels, height, width], but the input in line 3 is [4, 8] "
              "(pictures come from input: {shape: [channels, height, width]})\n");
  }
  CHECK(errors_in("{shape: [4, 8]}",
                  "  - repeat: 3\n"
                  "    layers:\n"
                  "      - {kind: linear, features: 9}\n"
                  "      - {kind: lstm, hidden: 8}\n"
                  "      - {kind: lstm, hidden: 9, residual: true}\n") ==
        "9: layers[0].layers[2] 'lstm_1' takes [tokens, 9] for its residual, but 'lstm_0' in "
        "line 8 makes [4, 8] (say hidden: 8 or residual: false)\n");
  CHECK(errors_in("{shape: [4, 8]}", "  - {kind: attention_block, heads: 3}\n") ==
        "5: layers[0] 'attention_block_0' takes features that its 3 heads divide, but the input "
        "in line 3 is [4, 8] (every head gets an equal part of the features; else say "
        "head_size)\n");
  const std::string shrink =
      " (make the kernel smaller or the padding larger, or take out a layer before that shrinks "
      "the picture)\n";
  CHECK(
      errors_in("{shape: [3, 8, 4]}", "  - {kind: conv2d, channels: 4, kernel: 7, padding: 1}\n") ==
      "5: layers[0] 'conv2d_0' takes [channels, height, width] of at least 7 x 7 with its "
      "padding of 1, but the input in line 3 is [3, 8, 4]" +
          shrink);
  CHECK(errors_in("{shape: [3, 8, 8]}", "  - repeat: 4\n    layers: [{kind: max_pool}]\n") ==
        "6: layers[0].layers[0] 'max_pool_3' takes [channels, height, width] of at least 2 x 2, "
        "but 'max_pool_2' in line 6 makes [3, 1, 1]" +
            shrink);
  CHECK(errors_in("{shape: [1000000000]}", "  - {kind: linear, features: 1000000000}\n") ==
        "5: layers[0] 'linear_0' has more than 2^53 parameters (layers of this size cannot be "
        "run: make an extent smaller)\n");
  CHECK(errors_in("{shape: [38000000]}",
                  "  - repeat: 7\n    layers: [{kind: linear, features: 38000000}]\n") ==
        "6: the layers have more than 2^53 parameters\n");
}

TEST_CASE("ids go into an embedding at the start, and a head is the end") {
  CHECK(errors_in("{tokens: 8, vocabulary: 100}", "  - {kind: linear, features: 4}\n") ==
        "5: layers[0] 'linear_0' takes numbers, but the input in line 3 is token ids (an "
        "embedding makes numbers of token ids: put one first)\n");
  CHECK(errors_in("{shape: [8]}", "  - {kind: embedding, features: 4}\n") ==
        "5: layers[0] 'embedding_0' takes token ids, but the input in line 3 is [8] (an "
        "embedding stands first, after input: {tokens, vocabulary})\n");
  CHECK(errors_in("{tokens: 8, vocabulary: 100}",
                  "  - {kind: embedding, features: 4}\n  - {kind: embedding, features: 4}\n") ==
        "6: layers[1] 'embedding_1' takes token ids, but 'embedding_0' in line 5 makes [8, 4] "
        "(an embedding stands first, after input: {tokens, vocabulary})\n");
  CHECK(errors_in("{shape: [8]}",
                  "  - {kind: head, classes: 3}\n  - {kind: linear, features: 4}\n") ==
        "5: layers[0] 'head_0' is a head, but 'linear_0' in line 6 follows it (a head makes the "
        "loss and ends a network)\n");
  CHECK(errors_in("{shape: [8]}", "  - repeat: 3\n    layers: [{kind: head, classes: 3}]\n") ==
        "6: layers[0].layers[0] 'head_0' is a head, but 'head_1' in line 6 follows it (a head "
        "makes the loss and ends a network)\n");
  CHECK(errors_in("{shape: [8]}", "  - {kind: head}\n") ==
        "5: layers[0].classes is missing (it may be absent only where the input is token ids)\n");
}

TEST_CASE("two layers of one name are told once, with both lines") {
  CHECK(errors_in("{shape: [8]}", "  - {kind: relu, name: a}\n  - {kind: gelu, name: a}\n") ==
        "6: a second layer is named 'a' (the first is on line 5)\n");
  CHECK(errors_in("{shape: [8]}", "  - {kind: gelu, name: relu_0}\n  - {kind: relu}\n") ==
        "6: a second layer is named 'relu_0' (the first is on line 5; a name that is absent "
        "is <kind>_<number>)\n");
  CHECK(errors_in("{shape: [8]}",
                  "  - repeat: 4\n"
                  "    layers:\n"
                  "      - {kind: relu, name: a}\n"
                  "      - {kind: gelu, name: a}\n") ==
        "8: a second layer is named 'a_0' (the first is on line 7)\n");
  CHECK(errors_in("{shape: [8]}", "  - {kind: relu, name: ''}\n") ==
        "5: layers[0].name has 0 bytes, which is not between 1 and 200\n");
}

TEST_CASE("kinds and keys that are not known are told with what is near") {
  const std::string input = "{shape: [8]}";
  CHECK(errors_in(input, "  - {kind: lineal, features: 4}\n") ==
        "5: layers[0].kind is 'lineal', which is no kind of layer (did you mean 'linear'?)\n");
  CHECK(errors_in(input, "  - {kind: dropout}\n") ==
        "5: layers[0].kind is 'dropout', which is no kind of layer (one of linear, relu, gelu, "
        "layer_norm, rms_norm, attention_block, mlp_block, embedding, head, conv2d, max_pool, "
        "batch_norm, flatten, residual_block, lstm)\n");
  CHECK(errors_in(input, "  - {name: a}\n") ==
        "5: layers[0].kind is missing (or give repeat and layers)\n");
  CHECK(errors_in(input, "  - relu\n") ==
        "5: layers[0] is 'relu', where a map of keys is wanted\n");
  CHECK(
      errors_in(input, "  - {kind: relu, bias: true}\n") ==
      "5: layers[0].bias is a key of linear, attention_block, mlp_block, head, conv2d, not of relu "
      "(take it out, or change the kind)\n");
  CHECK(errors_in(input, "  - {kind: linear, featurs: 4, features: 4}\n") ==
        "5: unknown key 'layers[0].featurs' (did you mean 'features'?)\n");
  CHECK(errors_in(input, "  - {kind: linear}\n") == "5: layers[0].features is missing\n");
  CHECK(errors_in(input, "  - {kind: linear, features: 0}\n") ==
        "5: layers[0].features is 0, which is not between 1 and 1000000000\n");
  CHECK(errors_in(input, "  - {kind: linear, features: 4, bias: 1}\n") ==
        "5: layers[0].bias is '1', which is neither true nor false\n");
  CHECK(errors_in("{shape: [3, 8, 8]}", "  - {kind: max_pool, padding: 2}\n") ==
        "5: layers[0].padding is 2, which is not below the kernel of 2 (a window of nothing but "
        "padding has no maximum)\n");
  CHECK(errors_in("{shape: [3, 8, 8]}", "  - {kind: max_pool, kernel: 0, padding: 2}\n") ==
        "5: layers[0].kernel is 0, which is not between 1 and 1000000000\n");
  for (const char* kind : {"embedding", "conv2d", "residual_block", "lstm"}) {
    CHECK(errors_in(input, std::string("  - {kind: ") + kind + "}\n").find(" is missing") !=
          std::string::npos);
  }
}

TEST_CASE("repeats that are wrong are told, also when written out") {
  const std::string input = "{shape: [8]}";
  CHECK(errors_in(input, "  - repeat: 0\n    layers: [{kind: relu}]\n") ==
        "5: layers[0].repeat is 0, which is not between 1 and 10000\n");
  CHECK(errors_in(input, "  - repeat: 2\n    layers: []\n") ==
        "6: layers[0].layers is an empty list\n");
  CHECK(errors_in(input, "  - {repeat: 2}\n") ==
        "5: layers[0].layers is missing (the layers that repeat)\n");
  CHECK(errors_in(input, "  - {layers: [{kind: relu}]}\n") ==
        "5: layers[0].repeat is missing (only layers that repeat are a list of their own)\n");
  CHECK(errors_in(input, "  - {repeat: 2, layers: [{kind: relu}], name: a}\n") ==
        "5: unknown key 'layers[0].name' (known here: layers, repeat)\n");
  CHECK(errors_in(input, "  - repeat: 5000\n    layers: [{kind: relu}, {kind: gelu}]\n") ==
        "no error");
  CHECK(errors_in(input,
                  "  - repeat: 5000\n    layers: [{kind: relu}, {kind: gelu}]\n"
                  "  - {kind: relu}\n") ==
        "4: layers holds 10001 layers, repeats written out, which is more than 10000\n");
  std::string deep = "{kind: relu}";
  for (int i = 0; i < 20; ++i) deep = "{repeat: 10000, layers: [" + deep + "]}";
  CHECK(errors_in(input, "  - " + deep + "\n") ==
        "4: layers holds over 2^53 layers, repeats written out, which is more than 10000\n");
}

TEST_CASE("what is wrong at the top of a network is told at once, without the chain") {
  CHECK(errors_of("version: 2\nkind: profile\ndtype: fp16\ncolour: red\n") ==
        "1: version is 2, but only 1 is read here\n"
        "1: input is missing (such as {shape: [3, 32, 32]} or {tokens: 128, vocabulary: 8192})\n"
        "1: layers is missing\n"
        "2: kind is 'profile', where a network is wanted (a network says kind: network)\n"
        "3: dtype is 'fp16', which is no type of elements (one of fp32, tf32, bf16)\n"
        "4: unknown key 'colour' (known here: dtype, input, kind, layers, name, version)\n");
  CHECK(errors_of("input: {shape: [4]}\nlayers: []\n") ==
        "1: version is missing\n1: kind is missing (a network says kind: network)\n");
  const std::string relu = "  - {kind: relu}\n";
  CHECK(errors_in("{}", relu) == "3: input.shape is missing (or give tokens and vocabulary)\n");
  CHECK(errors_in("[8]", relu) == "3: input is a list, where a map of keys is wanted\n");
  CHECK(errors_in("{tokens: 8}", relu) == "3: input.vocabulary is missing\n");
  CHECK(errors_in("{vocabulary: 8}", relu) == "3: input.tokens is missing\n");
  CHECK(errors_in("{shape: [8], tokens: 8, vocabulary: 9}", relu) ==
        "3: input gives a shape beside token ids (numbers have a shape; ids have tokens and a "
        "vocabulary)\n");
  CHECK(errors_in("{shape: []}", relu) ==
        "3: input.shape has 0 extents, which is not between 1 and 3 ([features], [tokens, "
        "features] or [channels, height, width])\n");
  CHECK(errors_in("{shape: [8, 0]}", relu) ==
        "3: input.shape[1] is 0, which is not between 1 and 1000000000\n");
  CHECK(errors_in("{shape: [1000000, 1000000, 1000000]}", relu) ==
        "3: input.shape holds more than 2^53 numbers\n");
  CHECK(errors_in("{shap: [8]}", relu).find("did you mean 'shape'?") != std::string::npos);
}

TEST_CASE("faults in several layers are told at once, and none for what follows from them") {
  CHECK(errors_in("{shape: [8]}",
                  "  - {kind: lineal}\n"
                  "  - {kind: conv2d, channels: 3}\n"
                  "  - {kind: linear, features: -1}\n"
                  "  - repeat: two\n"
                  "    layers:\n"
                  "      - {kind: head, classes: 3, heads: 2}\n"
                  "  - {kind: relu}\n") ==
        "5: layers[0].kind is 'lineal', which is no kind of layer (did you mean 'linear'?)\n"
        "7: layers[2].features is '-1', which is negative\n"
        "8: layers[3].repeat is 'two', which is not a whole number\n"
        "10: layers[3].layers[0].heads is a key of attention_block, not of head (take it out, or "
        "change the kind)\n"
        "10: layers[3].layers[0] 'head_0' is a head, but 'relu_0' in line 11 follows it (a head "
        "makes the loss and ends a network)\n");
}

TEST_CASE("a network file that is not there is told by its name") {
  const auto network = read_network("examples/networks/missing.network.yaml");
  REQUIRE(!network);
  CHECK(network.problems().front().fault == Fault::file);
  CHECK(network.problems().front().message == "cannot be read: No such file or directory");
}

}  // namespace
}  // namespace plumbline
