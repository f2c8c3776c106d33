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

TEST_CASE("what settings leave out has no slot") {
  CHECK(dense_slots(layer_of(Linear{3, true}, {{2}})).bias == 1);
  CHECK(dense_slots(layer_of(Linear{3, false}, {{2}})).bias == kNoSlot);
  CHECK(lstm_slots(layer_of(Lstm{4, true}, {{3, 4}})).hidden != kNoSlot);
  CHECK(lstm_slots(layer_of(Lstm{4, false}, {{3, 4}})).hidden == kNoSlot);
  CHECK(head_slots(layer_of(Head{5, true, true}, {{4}})).norm);
  CHECK_FALSE(head_slots(layer_of(Head{5, false, true}, {{4}})).norm);
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
