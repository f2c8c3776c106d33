// Slots are where the names stand, and every tensor has one.
//
// SPDX-License-Identifier: MIT
#include "calibrate/training/layer_slots.h"

#include <doctest/doctest.h>

#include <string>

#include "base/bug.h"

namespace plumbline {
namespace {

NetworkLayer layer_of(const LayerSettings& settings, const Shape& input) {
  auto layer = derive_layer(settings, {input, std::nullopt}, {});
  REQUIRE(layer);
  return *std::move(layer);
}

TEST_CASE("a slot is where the name stands in the layer's list") {
  const NetworkLayer layer = layer_of(AttentionBlock{2, true}, {{4, 8}});
  const AttentionSlots slots = attention_slots(layer);
  CHECK(layer.parameters[slots.norm.norm.shift].name == "norm.shift");
  CHECK(layer.parameters[slots.qkv.weight].name == "qkv.weight");
  CHECK(layer.parameters[slots.projection.bias].name == "projection.bias");
  CHECK(layer.kept[slots.norm.norm.rstd].name == "norm.rstd");
  CHECK(layer.kept[slots.qkv_output].name == "qkv");
  CHECK(layer.kept[slots.context].name == "context");
  CHECK(layer.left_for_weights[slots.norm.output_gradient].name == "norm.output_gradient");
}

TEST_CASE("layers of today's language models have their slots") {
  const NetworkLayer norm = layer_of(RmsNorm{}, {{3, 4}});
  const NormSlots of_norm = norm_slots(norm);
  CHECK(norm.parameters[of_norm.scale].name == "scale");
  CHECK(norm.kept[of_norm.rstd].name == "rstd");
  CHECK(of_norm.shift == kNoSlot);
  CHECK(of_norm.mean == kNoSlot);

  const NetworkLayer attention = layer_of(AttentionBlock{.heads = 2,
                                                         .kv_heads = 1,
                                                         .norm = NormKind::rms_norm,
                                                         .bias = AttentionBias::qkv,
                                                         .qk_norm = true},
                                          {{4, 8}});
  const AttentionSlots slots = attention_slots(attention);
  CHECK(attention.parameters[slots.norm.norm.scale].name == "norm.scale");
  CHECK(slots.norm.norm.shift == kNoSlot);
  CHECK(slots.norm.norm.mean == kNoSlot);
  CHECK(attention.kept[slots.norm.norm.rstd].name == "norm.rstd");
  CHECK(attention.kept[slots.norm.output].name == "norm.output");
  CHECK(attention.parameters[slots.qkv.bias].name == "qkv.bias");
  CHECK(attention.parameters[slots.projection.weight].name == "projection.weight");
  CHECK(slots.projection.bias == kNoSlot);
  REQUIRE(slots.head_norm);
  CHECK(attention.parameters[slots.head_norm->queries_scale].name == "queries.scale");
  CHECK(attention.parameters[slots.head_norm->keys_scale].name == "keys.scale");
  CHECK(attention.kept[slots.head_norm->rstd].name == "heads.rstd");
  CHECK(attention.kept[slots.head_norm->input].name == "heads.input");
  CHECK(attention.kept[slots.qkv_output].name == "qkv");
  CHECK(attention.kept[slots.logsumexp].name == "logsumexp");
  CHECK(attention.left_for_weights[slots.qkv_gradient].name == "qkv.gradient");

  const NetworkLayer mlp =
      layer_of(MlpBlock{.gated = true, .norm = NormKind::rms_norm, .bias = false}, {{4}});
  const MlpSlots of_mlp = mlp_slots(mlp);
  CHECK(mlp.parameters[of_mlp.up.weight].name == "up.weight");
  CHECK(mlp.parameters[of_mlp.down.weight].name == "down.weight");
  CHECK(of_mlp.up.bias == kNoSlot);
  CHECK(of_mlp.down.bias == kNoSlot);
  CHECK(mlp.kept[of_mlp.hidden].name == "hidden");
  CHECK(mlp.kept[of_mlp.activated].name == "activated");
  CHECK(mlp.left_for_weights[of_mlp.hidden_gradient].name == "hidden.gradient");

  const NetworkLayer head = layer_of(Head{.classes = 3, .norm_kind = NormKind::rms_norm}, {{4}});
  const HeadSlots of_head = head_slots(head);
  REQUIRE(of_head.norm);
  CHECK(head.parameters[of_head.norm->norm.scale].name == "norm.scale");
  CHECK(of_head.norm->norm.shift == kNoSlot);
  CHECK(head.kept[of_head.probabilities].name == "probabilities");
}

TEST_CASE("what settings leave out has no slot") {
  CHECK(dense_slots(layer_of(Linear{3, true}, {{2}})).bias == 1);
  CHECK(dense_slots(layer_of(Linear{3, false}, {{2}})).bias == kNoSlot);
  CHECK(lstm_slots(layer_of(Lstm{4, true}, {{3, 4}})).hidden != kNoSlot);
  CHECK(lstm_slots(layer_of(Lstm{4, false}, {{3, 4}})).hidden == kNoSlot);
  CHECK(head_slots(layer_of(Head{5, true, true}, {{4}})).norm);
  CHECK_FALSE(head_slots(layer_of(Head{5, false, true}, {{4}})).norm);
  CHECK_FALSE(attention_slots(layer_of(AttentionBlock{}, {{3, 4}})).head_norm);
  const AttentionSlots plain =
      attention_slots(layer_of(AttentionBlock{.bias = AttentionBias::none}, {{3, 4}}));
  CHECK(plain.qkv.bias == kNoSlot);
  CHECK(plain.projection.bias == kNoSlot);
  CHECK(residual_slots(layer_of(ResidualBlock{8, 2}, {{4, 6, 6}})).shortcut);
  CHECK_FALSE(residual_slots(layer_of(ResidualBlock{4, 1}, {{4, 6, 6}})).shortcut);
}

TEST_CASE("a tensor that a kind lacks, or has beside what is known of it, is a bug") {
  NetworkLayer layer = layer_of(LayerNorm{}, {{4}});
  CHECK(layer.parameters[norm_slots(layer).scale].name == "scale");
  layer.kept.push_back(layer.kept.front());
  layer.kept.back().name = "another";
  CHECK_THROWS_AS(norm_slots(layer), Bug);
  layer.kept = {layer.kept.front()};
  CHECK_THROWS_AS(norm_slots(layer), Bug);
  CHECK_NOTHROW(check_no_slots(layer_of(Relu{}, {{4}})));
  CHECK_THROWS_AS(check_no_slots(layer), Bug);
}

}  // namespace
}  // namespace plumbline
