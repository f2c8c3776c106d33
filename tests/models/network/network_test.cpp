// Networks: what each kind of layer makes, keeps and costs.
//
// SPDX-License-Identifier: MIT
#include "models/network/network.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "models/network/network_reader.h"
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

NetworkLayer derived(const LayerSettings& settings, std::vector<std::int64_t> shape) {
  const auto layer = derive_layer(settings, {{std::move(shape)}, std::nullopt}, {});
  REQUIRE_MESSAGE(layer, (layer ? "" : to_text(layer.problems())));
  return *layer;
}

std::string refusal_of(const LayerSettings& settings, const NetworkInput& input) {
  const auto layer = derive_layer(settings, input, {});
  return layer ? "" : layer.problems().front().message;
}

std::string text_of(const std::vector<Parameter>& parameters) {
  std::string text;
  for (const Parameter& parameter : parameters) {
    text += parameter.name + " " + to_text(parameter.shape) +
            (parameter.with_input ? " with input\n" : "\n");
  }
  return text;
}

std::string text_of(const std::vector<KeptTensor>& tensors) {
  std::string text;
  for (const KeptTensor& tensor : tensors) {
    text += tensor.name + " " + to_text(tensor.shape) + (tensor.per_sample ? "" : " of the batch") +
            (tensor.statistic ? " statistic\n" : "\n");
  }
  return text;
}

TEST_CASE("GPT-2 small has its known number of parameters") {
  const Network network = small_network("{tokens: 1024, vocabulary: 50257}",
                                        "  - {kind: embedding, features: 768, positions: true}\n"
                                        "  - repeat: 12\n"
                                        "    layers:\n"
                                        "      - {kind: attention_block, heads: 12}\n"
                                        "      - {kind: mlp_block}\n"
                                        "  - {kind: head}\n");
  REQUIRE(network.layers.size() == 26);
  // 50257 x 768 words and 1024 x 768 positions.
  CHECK(network.layers[0].parameter_count() == 38'597'376 + 786'432);
  // Norm 2 x 768, qkv 768 x 2304 + 2304, projection 768 x 768 + 768.
  CHECK(network.layers[1].parameter_count() == 1'536 + 1'771'776 + 590'592);
  // Norm 2 x 768, up 768 x 3072 + 3072, down 3072 x 768 + 768.
  CHECK(network.layers[2].parameter_count() == 1'536 + 2'362'368 + 2'360'064);
  // The published 124,439,808 shares the head's matrix with the words; here it is one of its own.
  CHECK(network.parameter_count() == 124'439'808 + 50'257 * 768);
  CHECK(std::get<Head>(network.layers[25].settings).classes == 50'257);
  CHECK(std::get<MlpBlock>(network.layers[2].settings).hidden == 3072);
  CHECK(std::get<Embedding>(network.layers[0].settings).vocabulary == 50'257);
  CHECK(network.layers[0].name == "embedding_0");
  CHECK(network.layers[23].name == "attention_block_11");
  CHECK(network.layers[25].name == "head_0");
}

TEST_CASE("VGG-16 has its known number of parameters") {
  std::string layers;
  for (const auto& [channels, count] : {std::pair{64, 2}, std::pair{128, 2}, std::pair{256, 3},
                                        std::pair{512, 3}, std::pair{512, 3}}) {
    layers += "  - repeat: " + std::to_string(count) + "\n    layers:\n";
    layers += "      - {kind: conv2d, channels: " + std::to_string(channels) + ", padding: 1}\n";
    layers += "      - {kind: relu}\n";
    layers += "  - {kind: max_pool}\n";
  }
  layers +=
      "  - {kind: flatten}\n"
      "  - repeat: 2\n"
      "    layers: [{kind: linear, features: 4096}, {kind: relu}]\n"
      "  - {kind: head, classes: 1000, norm: false, bias: true}\n";
  const Network network = small_network("{shape: [3, 224, 224]}", layers);
  // Simonyan and Zisserman 2014, configuration D: convolutions 14,714,688, linears
  // 25088 x 4096 + 4096 and 4096 x 4096 + 4096, head 4096 x 1000 + 1000.
  CHECK(network.parameter_count() == 14'714'688 + 102'764'544 + 16'781'312 + 4'097'000);
  CHECK(network.parameter_count() == 138'357'544);
  double multiply_adds = 0;
  for (const NetworkLayer& layer : network.layers) multiply_adds += layer.backward_weight_flops / 2;
  // Its 15.5 G multiply-adds: convolutions 15,346,630,656, linears and head 123,633,664; W also
  // makes the gradient of the 1000 logits again, 2 each.
  CHECK(multiply_adds == 15'346'630'656.0 + 123'633'664.0 + 1000.0);
}

TEST_CASE("ResNet-18 has its known number of parameters before the classifier") {
  std::string layers =
      "  - {kind: conv2d, channels: 64, kernel: 7, stride: 2, padding: 3, bias: false}\n"
      "  - {kind: batch_norm}\n"
      "  - {kind: relu}\n"
      "  - {kind: max_pool, kernel: 3, stride: 2, padding: 1}\n"
      "  - {kind: residual_block, channels: 64}\n"
      "  - {kind: residual_block, channels: 64}\n";
  for (const char* channels : {"128", "256", "512"}) {
    layers += std::string("  - {kind: residual_block, stride: 2, channels: ") + channels + "}\n";
    layers += std::string("  - {kind: residual_block, channels: ") + channels + "}\n";
  }
  const Network network = small_network("{shape: [3, 224, 224]}", layers);
  CHECK(to_text(network.layers[0].output) == "[64, 112, 112]");
  CHECK(to_text(network.layers[3].output) == "[64, 56, 56]");
  CHECK(to_text(network.layers.back().output) == "[512, 7, 7]");
  // 64 x 3 x 7 x 7 and 2 x 64.
  CHECK(network.layers[0].parameter_count() + network.layers[1].parameter_count() == 9'408 + 128);
  // Two of 64 x 64 x 9 and two norms.
  CHECK(network.layers[4].parameter_count() == 2 * 36'864 + 4 * 64);
  // 64 x 128 x 9, 128 x 128 x 9, the shortcut 64 x 128, three norms.
  CHECK(network.layers[6].parameter_count() == 73'728 + 147'456 + 8'192 + 6 * 128);
  // He et al. 2016 as published in torchvision: 11,689,512 less 512 x 1000 + 1000.
  CHECK(network.parameter_count() == 11'689'512 - 513'000);
}

TEST_CASE("a linear costs two FLOPs for each multiply-add, forward and twice backward") {
  const NetworkLayer layer = derived(Linear{20, true}, {7, 10});
  CHECK(to_text(layer.output) == "[7, 20]");
  CHECK(text_of(layer.parameters) == "weight [20, 10]\nbias [20]\n");
  CHECK(text_of(layer.kept).empty());
  CHECK(text_of(layer.left_for_weights).empty());
  CHECK(layer.splits);
  CHECK(layer.parameter_count() == 220);
  CHECK(layer.forward_flops == 2 * 7 * 10 * 20);
  CHECK(layer.backward_input_flops == 2 * 7 * 10 * 20);
  CHECK(layer.backward_weight_flops == 2 * 7 * 10 * 20);
  CHECK(text_of(derived(Linear{20, false}, {10}).parameters) == "weight [20, 10]\n");
  CHECK(to_text(derived(Linear{20, false}, {2, 3, 10}).output) == "[2, 3, 20]");
}

TEST_CASE("element-wise layers keep the shape, hold nothing and do not split") {
  for (const auto& [settings, forward, backward] :
       {std::tuple<LayerSettings, double, double>{Relu{}, 1, 1}, {Gelu{}, 8, 14}}) {
    const NetworkLayer layer = derived(settings, {3, 4, 5});
    CHECK(to_text(layer.output) == "[3, 4, 5]");
    CHECK(layer.parameters.empty());
    CHECK(layer.kept.empty());
    CHECK(layer.left_for_weights.empty());
    CHECK(!layer.splits);
    CHECK(layer.forward_flops == forward * 60);
    CHECK(layer.backward_input_flops == backward * 60);
    CHECK(layer.backward_weight_flops == 0);
  }
}

TEST_CASE("a layer norm keeps mean and reciprocal deviation of every row") {
  const NetworkLayer layer = derived(LayerNorm{}, {3, 4, 5});
  CHECK(to_text(layer.output) == "[3, 4, 5]");
  CHECK(text_of(layer.parameters) == "scale [5]\nshift [5]\n");
  CHECK(text_of(layer.kept) == "mean [3, 4] statistic\nrstd [3, 4] statistic\n");
  CHECK(layer.left_for_weights.empty());
  CHECK(layer.splits);
  CHECK(layer.forward_flops == 8 * 60);
  CHECK(layer.backward_input_flops == 11 * 60);
  CHECK(layer.backward_weight_flops == 3 * 60);
  CHECK(text_of(derived(LayerNorm{}, {5}).kept) == "mean [] statistic\nrstd [] statistic\n");
}

TEST_CASE("an attention block keeps no probabilities") {
  const NetworkLayer layer = derived(AttentionBlock{2, true}, {16, 8});
  CHECK(to_text(layer.output) == "[16, 8]");
  CHECK(text_of(layer.parameters) ==
        "norm.scale [8]\nnorm.shift [8]\nqkv.weight [24, 8]\nqkv.bias [24]\n"
        "projection.weight [8, 8]\nprojection.bias [8]\n");
  CHECK(text_of(layer.kept) ==
        "norm.mean [16] statistic\nnorm.rstd [16] statistic\nnorm.output [16, 8]\n"
        "qkv [16, 24]\nlogsumexp [2, 16] statistic\ncontext [16, 8]\n");
  CHECK(text_of(layer.left_for_weights) == "qkv.gradient [16, 24]\nnorm.output_gradient [16, 8]\n");
  CHECK(layer.splits);
  // Products 2 x 16 x (8 x 24 + 8 x 8); core 4 and 10 x 16 x 16 x 8; norm 8, 11, 3 and the
  // residual 1, 1 for each of 128 numbers.
  CHECK(layer.forward_flops == 8'192 + 8'192 + 9 * 128);
  CHECK(layer.backward_input_flops == 8'192 + 20'480 + 12 * 128);
  CHECK(layer.backward_weight_flops == 8'192 + 3 * 128);
  CHECK(derived(AttentionBlock{2, false}, {16, 8}).forward_flops == layer.forward_flops);
}

TEST_CASE("an mlp block keeps what it has before and after the gelu") {
  const NetworkLayer layer = derived(MlpBlock{12}, {6, 4});
  CHECK(to_text(layer.output) == "[6, 4]");
  CHECK(text_of(layer.parameters) ==
        "norm.scale [4]\nnorm.shift [4]\nup.weight [12, 4]\nup.bias [12]\n"
        "down.weight [4, 12]\ndown.bias [4]\n");
  CHECK(text_of(layer.kept) ==
        "norm.mean [6] statistic\nnorm.rstd [6] statistic\nnorm.output [6, 4]\n"
        "hidden [6, 12]\nactivated [6, 12]\n");
  CHECK(text_of(layer.left_for_weights) ==
        "hidden.gradient [6, 12]\nnorm.output_gradient [6, 4]\n");
  CHECK(layer.splits);
  // Products 2 x 2 x 6 x 4 x 12; gelu 8, 14 for 72; norm 8, 11, 3 and residual 1, 1 for 24.
  CHECK(layer.forward_flops == 1'152 + 8 * 72 + 9 * 24);
  CHECK(layer.backward_input_flops == 1'152 + 14 * 72 + 12 * 24);
  CHECK(layer.backward_weight_flops == 1'152 + 3 * 24);
  CHECK(std::get<MlpBlock>(derived(MlpBlock{}, {6, 4}).settings).hidden == 16);
  CHECK(text_of(derived(MlpBlock{12}, {4}).kept) ==
        "norm.mean [] statistic\nnorm.rstd [] statistic\nnorm.output [4]\nhidden [12]\n"
        "activated [12]\n");
}

// Layers of today's language models.

TEST_CASE("an rms norm keeps the factor of every row") {
  const NetworkLayer layer = derived(RmsNorm{}, {3, 4, 5});
  CHECK(to_text(layer.output) == "[3, 4, 5]");
  CHECK(text_of(layer.parameters) == "scale [5]\n");
  CHECK(text_of(layer.kept) == "rstd [3, 4] statistic\n");
  CHECK(layer.left_for_weights.empty());
  CHECK(layer.splits);
  CHECK(layer.forward_flops == 4 * 60);
  CHECK(layer.backward_input_flops == 8 * 60);
  CHECK(layer.backward_weight_flops == 2 * 60);
  CHECK(text_of(derived(RmsNorm{}, {5}).kept) == "rstd [] statistic\n");
}

TEST_CASE("an attention block's heads may share keys, and need not fill the features") {
  const NetworkLayer layer = derived(AttentionBlock{.heads = 4,
                                                    .kv_heads = 2,
                                                    .head_size = 6,
                                                    .norm = NormKind::rms_norm,
                                                    .bias = AttentionBias::qkv,
                                                    .qk_norm = true,
                                                    .rotary = 10000,
                                                    .window = 5},
                                     {16, 8});
  CHECK(to_text(layer.output) == "[16, 8]");
  // Queries 24, keys and values 12 each.
  CHECK(text_of(layer.parameters) ==
        "norm.scale [8]\nqkv.weight [48, 8]\nqkv.bias [48]\n"
        "queries.scale [6] with input\nkeys.scale [6] with input\nprojection.weight [8, 24]\n");
  CHECK(text_of(layer.kept) ==
        "norm.rstd [16] statistic\nnorm.output [16, 8]\nheads.rstd [16, 6] statistic\n"
        "heads.input [16, 36]\nqkv [16, 48]\nlogsumexp [4, 16] statistic\ncontext [16, 24]\n");
  CHECK(text_of(layer.left_for_weights) == "qkv.gradient [16, 48]\nnorm.output_gradient [16, 8]\n");
  CHECK(layer.splits);
  // Products 2 x 16 x (8 x 48 + 24 x 8); core 4 and 10 x 16 x 5 x 24, each token with the five
  // that it sees; norm 4, 8, 2 and the residual 1, 1 for each of 128 numbers; norms of heads 4, 10
  // and turns 3, 3 for 16 x 36.
  CHECK(layer.forward_flops == 18'432 + 7'680 + 5 * 128 + 7 * 576);
  CHECK(layer.backward_input_flops == 18'432 + 19'200 + 9 * 128 + 13 * 576);
  CHECK(layer.backward_weight_flops == 18'432 + 2 * 128);
}

TEST_CASE("each setting of an attention block changes only what is its own") {
  const auto block = [](const AttentionBlock& settings) { return derived(settings, {16, 8}); };
  const NetworkLayer plain = block({.heads = 2});

  const NetworkLayer shared = block({.heads = 2, .kv_heads = 1});
  CHECK(text_of(shared.parameters) ==
        "norm.scale [8]\nnorm.shift [8]\nqkv.weight [16, 8]\nqkv.bias [16]\n"
        "projection.weight [8, 8]\nprojection.bias [8]\n");
  // Two of four heads of qkv are gone, with 2 x 16 x 8 x 8 of the product.
  CHECK(shared.forward_flops == plain.forward_flops - 2'048);

  const NetworkLayer narrow = block({.heads = 2, .head_size = 2});
  CHECK(text_of(narrow.kept) ==
        "norm.mean [16] statistic\nnorm.rstd [16] statistic\nnorm.output [16, 8]\n"
        "qkv [16, 12]\nlogsumexp [2, 16] statistic\ncontext [16, 4]\n");
  CHECK(to_text(narrow.output) == "[16, 8]");

  const NetworkLayer normed = block({.heads = 2, .norm = NormKind::rms_norm});
  CHECK(text_of(normed.kept) ==
        "norm.rstd [16] statistic\nnorm.output [16, 8]\nqkv [16, 24]\n"
        "logsumexp [2, 16] statistic\ncontext [16, 8]\n");
  CHECK(normed.forward_flops == plain.forward_flops - 4 * 128);
  CHECK(normed.backward_input_flops == plain.backward_input_flops - 3 * 128);
  CHECK(normed.backward_weight_flops == plain.backward_weight_flops - 128);

  const NetworkLayer unbiased = block({.heads = 2, .bias = AttentionBias::none});
  CHECK(text_of(unbiased.parameters) ==
        "norm.scale [8]\nnorm.shift [8]\nqkv.weight [24, 8]\nprojection.weight [8, 8]\n");
  CHECK(unbiased.forward_flops == plain.forward_flops);

  const NetworkLayer turned = block({.heads = 2, .rotary = 500});
  CHECK(text_of(turned.parameters) == text_of(plain.parameters));
  CHECK(text_of(turned.kept) == text_of(plain.kept));
  CHECK(turned.forward_flops == plain.forward_flops + 3 * 256);
  CHECK(turned.backward_input_flops == plain.backward_input_flops + 3 * 256);
  CHECK(turned.backward_weight_flops == plain.backward_weight_flops);

  const NetworkLayer windowed = block({.heads = 2, .window = 3});
  CHECK(text_of(windowed.kept) == text_of(plain.kept));
  // 4 and 10 x 16 x 8 for each of the 13 tokens that are no longer seen.
  CHECK(windowed.forward_flops == plain.forward_flops - 13 * 512);
  CHECK(windowed.backward_input_flops == plain.backward_input_flops - 13 * 1'280);
  CHECK(block({.heads = 2, .window = 16}).forward_flops == plain.forward_flops);
  CHECK(block({.heads = 2, .window = 17}).forward_flops == plain.forward_flops);
}

TEST_CASE("what an attention block leaves open is filled in") {
  const auto settings_of = [](const AttentionBlock& settings) {
    return std::get<AttentionBlock>(derived(settings, {16, 12}).settings);
  };
  CHECK(settings_of({.heads = 3}) == AttentionBlock{.heads = 3, .kv_heads = 3, .head_size = 4});
  CHECK(settings_of({.heads = 6, .kv_heads = 2, .rotary = 9}) ==
        AttentionBlock{.heads = 6, .kv_heads = 2, .head_size = 2, .rotary = 9});
  CHECK(settings_of({.heads = 5, .head_size = 7}) ==
        AttentionBlock{.heads = 5, .kv_heads = 5, .head_size = 7});
  // Said or left open, it is the same layer.
  const NetworkLayer open = derived(AttentionBlock{.heads = 3}, {16, 12});
  const NetworkLayer said =
      derived(AttentionBlock{.heads = 3, .kv_heads = 3, .head_size = 4}, {16, 12});
  CHECK(text_of(open.parameters) == text_of(said.parameters));
  CHECK(text_of(open.kept) == text_of(said.kept));
  CHECK(open.forward_flops == said.forward_flops);
}

TEST_CASE("the widths of attention are those of its heads") {
  const AttentionWidths widths = attention_widths({.heads = 6, .kv_heads = 2, .head_size = 5}, 16);
  CHECK(widths.queries() == 30);
  CHECK(widths.keys() == 10);
  CHECK(widths.qkv() == 50);
  CHECK(widths.sharing() == 3);
  const AttentionWidths open = attention_widths({.heads = 4}, 16);
  CHECK(open.kv_heads == 4);
  CHECK(open.head_size == 4);
  CHECK(open.sharing() == 1);
  CHECK(open.qkv() == 48);
}

TEST_CASE("a gated mlp block makes twice as many numbers and keeps half of them again") {
  const NetworkLayer layer = derived(MlpBlock{.hidden = 12,
                                              .activation = Activation::silu,
                                              .gated = true,
                                              .norm = NormKind::rms_norm,
                                              .bias = false},
                                     {6, 4});
  CHECK(to_text(layer.output) == "[6, 4]");
  CHECK(text_of(layer.parameters) == "norm.scale [4]\nup.weight [24, 4]\ndown.weight [4, 12]\n");
  CHECK(text_of(layer.kept) ==
        "norm.rstd [6] statistic\nnorm.output [6, 4]\nhidden [6, 24]\nactivated [6, 12]\n");
  CHECK(text_of(layer.left_for_weights) ==
        "hidden.gradient [6, 24]\nnorm.output_gradient [6, 4]\n");
  CHECK(layer.splits);
  // Products 2 x 6 x (4 x 24 + 12 x 4); silu 4, 8 and gate 1, 2 for 72; norm 4, 8, 2 and residual
  // 1, 1 for 24.
  CHECK(layer.forward_flops == 1'728 + 5 * 72 + 5 * 24);
  CHECK(layer.backward_input_flops == 1'728 + 10 * 72 + 9 * 24);
  CHECK(layer.backward_weight_flops == 1'728 + 2 * 24);
  const auto open = std::get<MlpBlock>(derived(MlpBlock{.gated = true}, {6, 4}).settings);
  CHECK(open == MlpBlock{.hidden = 16, .gated = true});
  CHECK(open.up() == 32);
  CHECK(text_of(derived(MlpBlock{.hidden = 3, .gated = true}, {4}).parameters) ==
        "norm.scale [4]\nnorm.shift [4]\nup.weight [6, 4]\nup.bias [6]\ndown.weight [4, 3]\n"
        "down.bias [4]\n");
}

TEST_CASE("the activation of an mlp block is the only difference in its FLOPs") {
  const NetworkLayer gelu = derived(MlpBlock{12}, {6, 4});
  for (const auto& [activation, forward, backward] :
       {std::tuple{Activation::silu, 4, 8}, std::tuple{Activation::relu, 1, 1}}) {
    const NetworkLayer layer = derived(MlpBlock{.hidden = 12, .activation = activation}, {6, 4});
    CHECK(text_of(layer.parameters) == text_of(gelu.parameters));
    CHECK(text_of(layer.kept) == text_of(gelu.kept));
    CHECK(layer.forward_flops == gelu.forward_flops - (8 - forward) * 72);
    CHECK(layer.backward_input_flops == gelu.backward_input_flops - (14 - backward) * 72);
    CHECK(layer.backward_weight_flops == gelu.backward_weight_flops);
  }
}

TEST_CASE("a head may begin with an rms norm") {
  const NetworkLayer layer = derived(Head{.classes = 10, .norm_kind = NormKind::rms_norm}, {6, 4});
  CHECK(text_of(layer.parameters) == "norm.scale [4]\nweight [10, 4]\n");
  CHECK(text_of(layer.kept) ==
        "norm.rstd [6] statistic\nnorm.output [6, 4]\nprobabilities [6, 10]\n");
  CHECK(text_of(layer.left_for_weights) == "norm.output_gradient [6, 4]\n");
  // Product 2 x 6 x 4 x 10; loss 5, 2, 2 for 60; norm 4, 8, 2 for 24.
  CHECK(layer.forward_flops == 480 + 5 * 60 + 4 * 24);
  CHECK(layer.backward_input_flops == 480 + 2 * 60 + 8 * 24);
  CHECK(layer.backward_weight_flops == 480 + 2 * 60 + 2 * 24);
}

TEST_CASE("a Llama of one layer has the parameters that its shapes say") {
  // Touvron et al. 2023: no biases, rms norms, gated silu, rotary positions.
  const Network network = small_network(
      "{tokens: 2048, vocabulary: 32000}",
      "  - {kind: embedding, features: 4096}\n"
      "  - {kind: attention_block, heads: 32, norm: rms_norm, bias: false, rotary: 10000}\n"
      "  - {kind: mlp_block, hidden: 11008, activation: silu, gated: true, norm: rms_norm, "
      "bias: false}\n"
      "  - {kind: head, norm: rms_norm}\n");
  REQUIRE(network.layers.size() == 4);
  CHECK(network.layers[0].parameter_count() == 131'072'000);
  CHECK(network.layers[1].parameter_count() + network.layers[2].parameter_count() == 202'383'360);
  CHECK(network.layers[3].parameter_count() == 4'096 + 131'072'000);
  // With 32 such layers these are the published 6,738,415,616.
  CHECK(network.parameter_count() + 31 * 202'383'360LL == 6'738'415'616);
}

TEST_CASE("an embedding turns ids into rows, and its I does nothing") {
  const NetworkInput ids{{{6}}, 100};
  const auto plain = derive_layer(Embedding{0, 4, false}, ids, {});
  REQUIRE(plain);
  CHECK(to_text(plain->input) == "[6]");
  CHECK(to_text(plain->output) == "[6, 4]");
  CHECK(text_of(plain->parameters) == "weight [100, 4]\n");
  CHECK(plain->kept.empty());
  CHECK(plain->left_for_weights.empty());
  CHECK(plain->splits);
  CHECK(plain->forward_flops == 0);
  CHECK(plain->backward_input_flops == 0);
  CHECK(plain->backward_weight_flops == 24);
  const auto placed = derive_layer(Embedding{0, 4, true}, ids, {});
  REQUIRE(placed);
  CHECK(text_of(placed->parameters) == "weight [100, 4]\npositions [6, 4]\n");
  CHECK(placed->forward_flops == 24);
  CHECK(placed->backward_input_flops == 0);
  CHECK(placed->backward_weight_flops == 48);
}

TEST_CASE("a head makes one number of a sample and keeps the probabilities") {
  const NetworkLayer layer = derived(Head{10, true, false}, {6, 4});
  CHECK(to_text(layer.output) == "[]");
  CHECK(layer.output.elements() == 1);
  CHECK(text_of(layer.parameters) == "norm.scale [4]\nnorm.shift [4]\nweight [10, 4]\n");
  CHECK(text_of(layer.kept) ==
        "norm.mean [6] statistic\nnorm.rstd [6] statistic\nnorm.output [6, 4]\n"
        "probabilities [6, 10]\n");
  CHECK(text_of(layer.left_for_weights) == "norm.output_gradient [6, 4]\n");
  CHECK(layer.splits);
  // Product 2 x 6 x 4 x 10; loss 5, 2, 2 for 60; norm 8, 11, 3 for 24.
  CHECK(layer.forward_flops == 480 + 5 * 60 + 8 * 24);
  CHECK(layer.backward_input_flops == 480 + 2 * 60 + 11 * 24);
  CHECK(layer.backward_weight_flops == 480 + 2 * 60 + 3 * 24);
  const NetworkLayer plain = derived(Head{10, false, true}, {4});
  CHECK(text_of(plain.parameters) == "weight [10, 4]\nbias [10]\n");
  CHECK(text_of(plain.kept) == "probabilities [10]\n");
  CHECK(plain.left_for_weights.empty());
}

TEST_CASE("a convolution costs two FLOPs for each tap of each output") {
  const NetworkLayer layer = derived(Conv2d{5, 3, 2, 1, true}, {2, 8, 9});
  CHECK(to_text(layer.output) == "[5, 4, 5]");  // (8 + 2 - 3) / 2 + 1 = 4, (9 + 2 - 3) / 2 + 1 = 5
  CHECK(text_of(layer.parameters) == "weight [5, 2, 3, 3]\nbias [5]\n");
  CHECK(layer.kept.empty());
  CHECK(layer.left_for_weights.empty());
  CHECK(layer.splits);
  CHECK(layer.forward_flops == 2 * 100 * 2 * 9);
  CHECK(layer.backward_input_flops == 2 * 100 * 2 * 9);
  CHECK(layer.backward_weight_flops == 2 * 100 * 2 * 9);
  CHECK(text_of(derived(Conv2d{5, 1, 1, 0, false}, {2, 8, 9}).parameters) ==
        "weight [5, 2, 1, 1]\n");
  CHECK(to_text(derived(Conv2d{5, 8, 1, 0, false}, {2, 8, 9}).output) == "[5, 1, 2]");
}

TEST_CASE("a max pool compares every number in a window, and again backward") {
  const NetworkLayer layer = derived(MaxPool{3, 2, 1}, {2, 8, 9});
  CHECK(to_text(layer.output) == "[2, 4, 5]");
  CHECK(layer.parameters.empty());
  CHECK(layer.kept.empty());
  CHECK(!layer.splits);
  CHECK(layer.forward_flops == 40 * 9);
  CHECK(layer.backward_input_flops == 40 * 10);
  CHECK(layer.backward_weight_flops == 0);
}

TEST_CASE("a batch norm has the gradients of its parameters with that of the input") {
  const NetworkLayer layer = derived(BatchNorm{}, {3, 4, 5});
  CHECK(to_text(layer.output) == "[3, 4, 5]");
  CHECK(text_of(layer.parameters) == "scale [3] with input\nshift [3] with input\n");
  CHECK(text_of(layer.kept) ==
        "mean [3] of the batch statistic\nrstd [3] of the batch statistic\n");
  CHECK(layer.left_for_weights.empty());
  CHECK(!layer.splits);
  CHECK(layer.forward_flops == 8 * 60);
  CHECK(layer.backward_input_flops == 11 * 60);
  CHECK(layer.backward_weight_flops == 0);
}

TEST_CASE("a flatten only changes the shape") {
  const NetworkLayer layer = derived(Flatten{}, {3, 4, 5});
  CHECK(to_text(layer.output) == "[60]");
  CHECK(!layer.splits);
  CHECK(layer.forward_flops == 0);
  CHECK(layer.backward_input_flops == 0);
  CHECK(to_text(derived(Flatten{}, {7}).output) == "[7]");
}

TEST_CASE("a residual block has a shortcut of its own only where the shape changes") {
  const NetworkLayer same = derived(ResidualBlock{4, 1}, {4, 6, 6});
  CHECK(to_text(same.output) == "[4, 6, 6]");
  CHECK(text_of(same.parameters) ==
        "conv1.weight [4, 4, 3, 3]\nnorm1.scale [4] with input\nnorm1.shift [4] with input\n"
        "conv2.weight [4, 4, 3, 3]\nnorm2.scale [4] with input\nnorm2.shift [4] with input\n");
  CHECK(text_of(same.kept) ==
        "conv1 [4, 6, 6]\nnorm1.mean [4] of the batch statistic\n"
        "norm1.rstd [4] of the batch statistic\nrelu1 [4, 6, 6]\nconv2 [4, 6, 6]\n"
        "norm2.mean [4] of the batch statistic\nnorm2.rstd [4] of the batch statistic\n");
  CHECK(text_of(same.left_for_weights) == "conv1.gradient [4, 6, 6]\nconv2.gradient [4, 6, 6]\n");
  CHECK(same.splits);
  // 144 numbers: convolutions 2 x 2 x 144 x 36; two norms 8, 11; two relus 1, 1; one sum 1, 1.
  CHECK(same.forward_flops == 20'736 + (16 + 2 + 1) * 144);
  CHECK(same.backward_input_flops == 20'736 + (22 + 2 + 1) * 144);
  CHECK(same.backward_weight_flops == 20'736);

  const NetworkLayer halved = derived(ResidualBlock{8, 2}, {4, 7, 6});
  CHECK(to_text(halved.output) == "[8, 4, 3]");  // (7 - 1) / 2 + 1 = 4, (6 - 1) / 2 + 1 = 3
  CHECK(text_of(halved.parameters) ==
        "conv1.weight [8, 4, 3, 3]\nnorm1.scale [8] with input\nnorm1.shift [8] with input\n"
        "conv2.weight [8, 8, 3, 3]\nnorm2.scale [8] with input\nnorm2.shift [8] with input\n"
        "shortcut.weight [8, 4, 1, 1]\nshortcut_norm.scale [8] with input\n"
        "shortcut_norm.shift [8] with input\n");
  CHECK(text_of(halved.kept) ==
        "conv1 [8, 4, 3]\nnorm1.mean [8] of the batch statistic\n"
        "norm1.rstd [8] of the batch statistic\nrelu1 [8, 4, 3]\nconv2 [8, 4, 3]\n"
        "norm2.mean [8] of the batch statistic\nnorm2.rstd [8] of the batch statistic\n"
        "shortcut [8, 4, 3]\nshortcut_norm.mean [8] of the batch statistic\n"
        "shortcut_norm.rstd [8] of the batch statistic\n");
  CHECK(text_of(halved.left_for_weights) ==
        "conv1.gradient [8, 4, 3]\nconv2.gradient [8, 4, 3]\nshortcut.gradient [8, 4, 3]\n");
  // 96 numbers: convolutions 2 x 96 x (36 + 72 + 4); three norms; two relus; one sum, over the
  // 168 numbers of the input on the way back.
  CHECK(halved.forward_flops == 21'504 + (24 + 2 + 1) * 96);
  CHECK(halved.backward_input_flops == 21'504 + (33 + 2) * 96 + 168);
  CHECK(halved.backward_weight_flops == 21'504);
  CHECK(derived(ResidualBlock{4, 2}, {4, 6, 6}).parameters.size() == 9);
  CHECK(derived(ResidualBlock{5, 1}, {4, 6, 6}).parameters.size() == 9);
}

TEST_CASE("an lstm keeps gates and cells, and with a residual what it had before the sum") {
  const NetworkLayer layer = derived(Lstm{5, false}, {6, 4});
  CHECK(to_text(layer.output) == "[6, 5]");
  CHECK(text_of(layer.parameters) == "input.weight [20, 4]\nhidden.weight [20, 5]\nbias [20]\n");
  CHECK(text_of(layer.kept) == "gates [6, 20]\ncells [6, 5]\n");
  CHECK(text_of(layer.left_for_weights) == "gates.gradient [6, 20]\n");
  CHECK(layer.splits);
  // Products 2 x 6 x 20 x (4 + 5); the cell 12, 20 for 30 numbers.
  CHECK(layer.forward_flops == 2'160 + 12 * 30);
  CHECK(layer.backward_input_flops == 2'160 + 20 * 30);
  CHECK(layer.backward_weight_flops == 2'160);
  const NetworkLayer residual = derived(Lstm{4, true}, {6, 4});
  CHECK(text_of(residual.kept) == "gates [6, 16]\ncells [6, 4]\nhidden [6, 4]\n");
  CHECK(residual.forward_flops == 2.0 * 6 * 16 * 8 + 13 * 24);
}

TEST_CASE("bytes follow the type of elements, and statistics stay in fp32") {
  Network network;
  const NetworkLayer layer = derived(AttentionBlock{2, true}, {16, 8});
  network.element = ElementType::fp32;
  CHECK(output_bytes(network, layer, 3) == Bytes{4 * 3 * 128});
  // Output, norm.output and context 128 each, qkv 384; statistics 16 + 16 + 32.
  CHECK(activation_bytes(network, layer, 3) == Bytes{3 * (4 * 768 + 4 * 64)});
  CHECK(left_bytes(network, layer, 3) == Bytes{3 * 4 * (384 + 128)});
  CHECK(parameter_bytes(network, layer) == Bytes{4 * (16 + 192 + 24 + 64 + 8)});
  network.element = ElementType::tf32;
  CHECK(activation_bytes(network, layer, 3) == Bytes{3 * (4 * 768 + 4 * 64)});
  network.element = ElementType::bf16;
  CHECK(output_bytes(network, layer, 3) == Bytes{2 * 3 * 128});
  CHECK(activation_bytes(network, layer, 3) == Bytes{3 * (2 * 768 + 4 * 64)});
  CHECK(left_bytes(network, layer, 3) == Bytes{3 * 2 * (384 + 128)});
  CHECK(parameter_bytes(network, layer) == Bytes{2 * (16 + 192 + 24 + 64 + 8)});
  // The statistics of a batch norm are there once for all samples.
  CHECK(activation_bytes(network, derived(BatchNorm{}, {3, 4, 5}), 7) ==
        Bytes{7 * 60 * 2 + 2 * 3 * 4});
}

TEST_CASE("bytes of a batch that no machine holds stop at 2^53 + 1") {
  Network network;
  const NetworkLayer layer = derived(Relu{}, {1'000'000'000});
  const Bytes beyond{(std::int64_t{1} << 53U) + 1};
  CHECK(output_bytes(network, layer, 1'000'000) == Bytes{4'000'000'000'000'000});
  CHECK(output_bytes(network, layer, 1'000'000'000'000'000) == beyond);
  CHECK(activation_bytes(network, layer, 1'000'000'000'000'000) == beyond);
}

TEST_CASE("a layer beyond 2^53 is refused, whatever it is that is too large") {
  const std::int64_t large = 1'000'000'000;
  const auto refusal = [](const LayerSettings& settings, std::vector<std::int64_t> shape) {
    return refusal_of(settings, {{std::move(shape)}, std::nullopt});
  };
  CHECK(refusal(Linear{large, true}, {large}) == "has more than 2^53 parameters");
  CHECK(refusal(Relu{}, {large, large, large}) == "handles more than 2^53 numbers for each sample");
  CHECK(refusal(Flatten{}, {large, large, large}) ==
        "handles more than 2^53 numbers for each sample");
  CHECK(refusal(MlpBlock{}, {std::int64_t{1} << 52U}) == "has more than 2^53 parameters");
  CHECK(refusal(AttentionBlock{1, true}, {100'000'000, 4}) ==
        "computes more than 2^53 FLOPs for each sample");
  CHECK(refusal(Conv2d{large, 3, 1, large, true}, {1, large, large}) ==
        "handles more than 2^53 numbers for each sample");
}

TEST_CASE("a shape that does not suit is told without names where only the layer is known") {
  CHECK(refusal_of(AttentionBlock{}, {{{4096}}, std::nullopt}) ==
        "takes [tokens, features], but gets [4096]");
  CHECK(refusal_of(RmsNorm{}, {{}, std::nullopt}) == "takes [..., features], but gets []");
  CHECK(refusal_of(AttentionBlock{.heads = 2, .rotary = 10}, {{{4, 6}}, std::nullopt}) ==
        "takes heads of an even size for its rotary positions, not of 3, but gets [4, 6]");
  CHECK(refusal_of(AttentionBlock{.head_size = 5, .rotary = 10}, {{{4, 6}}, std::nullopt}) ==
        "takes heads of an even size for its rotary positions, not of 5, but gets [4, 6]");
  CHECK(refusal_of(AttentionBlock{.heads = 4}, {{{4, 6}}, std::nullopt}) ==
        "takes features that its 4 heads divide, but gets [4, 6]");
  CHECK(refusal_of(AttentionBlock{.heads = 4, .head_size = 5}, {{{4, 6}}, std::nullopt}).empty());
  CHECK(refusal_of(Linear{3, true}, {{{16}}, 100}) == "takes numbers, but gets token ids");
  CHECK(refusal_of(Embedding{0, 8, false}, {{{16}}, std::nullopt}) ==
        "takes token ids, but gets [16]");
  CHECK(refusal_of(Linear{3, true}, {{}, std::nullopt}) == "takes [..., features], but gets []");
}

TEST_CASE("every kind has the name that files give it") {
  const std::vector<std::pair<std::string, LayerSettings>> kinds = {
      {"linear", Linear{}},       {"relu", Relu{}},
      {"gelu", Gelu{}},           {"layer_norm", LayerNorm{}},
      {"mlp_block", MlpBlock{}},  {"attention_block", AttentionBlock{}},
      {"embedding", Embedding{}}, {"head", Head{}},
      {"conv2d", Conv2d{}},       {"max_pool", MaxPool{}},
      {"flatten", Flatten{}},     {"residual_block", ResidualBlock{}},
      {"lstm", Lstm{}},           {"batch_norm", BatchNorm{}},
      {"rms_norm", RmsNorm{}}};
  CHECK(kinds.size() == std::variant_size_v<LayerSettings>);
  for (const auto& [name, settings] : kinds) CHECK(kind_name(settings) == name);
}

}  // namespace
}  // namespace plumbline
