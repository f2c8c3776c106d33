// The ops of a layer against its derivation: two ways to the same FLOPs and the same traffic.
//
// SPDX-License-Identifier: MIT
#include "models/import/transformer_ops.h"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <vector>

#include "models/import/transformer_profile.h"
#include "models/profile/profile_reader.h"
#include "models/profile/profile_writer.h"
#include "tests/support/transformers.h"

namespace plumbline {
namespace {

using test::kDeepSeek;
using test::kFalcon;
using test::kGpt2;
using test::kLlama;
using test::kNemotron;
using test::kNeoX;
using test::kPhi;
using test::kQwenMoe;
using test::profile_of;
using test::shape_of;
using test::tokens;

/// With experts that are divided, too.
void add_divided(std::vector<TransformerOptions>& all) {
  const std::vector<TransformerOptions> whole = all;
  for (TransformerOptions options : whole) {
    if (options.expert_parallel == 1) continue;
    options.expert_tensor_parallel = 2;
    all.push_back(options);
  }
}

/// All ways to share a small model that fit its sizes.
std::vector<TransformerOptions> layouts(bool has_experts) {
  std::vector<TransformerOptions> all;
  for (const std::int64_t tensor : {1, 2}) {
    for (const bool by_tokens : {false, true}) {
      for (const std::int64_t context : {1, 2}) {
        for (const std::int64_t experts : {1, 4, 8}) {
          for (const bool flash : {true, false}) {
            for (const bool fp8 : {false, true}) {
              TransformerOptions options = tokens(64, 3);
              options.tensor_parallel = tensor;
              options.sequence_parallel = by_tokens;
              options.context_parallel = context;
              options.expert_parallel = experts;
              options.flash_attention = flash;
              options.fp8_linear = fp8;
              if (by_tokens && tensor == 1) continue;
              if (experts > 1 && !(has_experts && (tensor == 1 || by_tokens))) continue;
              all.push_back(options);
              if (context == 1) continue;
              options.context_exchange = ContextExchange::heads;
              all.push_back(options);
            }
          }
        }
      }
    }
  }
  add_divided(all);
  return all;
}

/// The bytes that exchanges of some kinds send in all, as the derivation counts them.
std::int64_t sent(const LayerOps& ops, std::set<ExchangeKind> kinds) {
  std::int64_t bytes = 0;
  for (const LayerOp& op : ops.ops) {
    const auto* exchange = std::get_if<ExchangeOp>(&op.shape);
    if (exchange && kinds.contains(exchange->kind))
      bytes += exchange->bytes + exchange->network_bytes;
  }
  return bytes;
}

struct Case {
  std::string config;
  TransformerOptions options;
};

template <class Check>
void each_layer(Check&& check, std::optional<RecomputeModules> modules = std::nullopt) {
  // DeepSeek's with two modules for further tokens.
  std::string further = kDeepSeek;
  further.insert(further.rfind('}'), R"(, "num_nextn_predict_layers": 2)");
  for (const std::string& config :
       {kLlama, kGpt2, kQwenMoe, kDeepSeek, further, kNemotron, kNeoX, kPhi, kFalcon}) {
    const TransformerShape shape = shape_of(config);
    for (TransformerOptions options : layouts(shape.has_experts())) {
      for (const bool split : {false, true}) {
        if (split && shape.is_parallel()) continue;
        options.split_blocks = split;
        options.mtp = shape.further_predictions > 0;
        options.recompute_modules = modules;
        for (const LayerDerivation& layer : derive_layers(shape, options)) {
          CAPTURE(shape.family);
          CAPTURE(layer.kind);
          CAPTURE(options.tensor_parallel);
          CAPTURE(options.sequence_parallel);
          CAPTURE(options.context_parallel);
          CAPTURE(name_of(options.context_exchange));
          CAPTURE(options.expert_parallel);
          CAPTURE(options.expert_tensor_parallel);
          CAPTURE(options.flash_attention);
          check(layer, transformer_ops(layer.kind, shape, options), options);
        }
      }
    }
  }
}

TEST_CASE("ops have the FLOPs that their layer's formulas give, in each pass") {
  int layers = 0;
  each_layer([&](const LayerDerivation& layer, const LayerOps& ops, const TransformerOptions&) {
    ++layers;
    const OpFlops flops = flops_of(ops);
    REQUIRE(flops.forward == static_cast<double>(forward_flops(layer).value()));
    REQUIRE(flops.input == static_cast<double>(input_flops(layer).value()));
    REQUIRE(flops.weights == static_cast<double>(weight_flops(layer).value()));
  });
  CHECK(layers > 500);
}

TEST_CASE("exchanges send what their layer's formulas say") {
  using enum ExchangeKind;
  each_layer([&](const LayerDerivation& layer, const LayerOps& ops,
                 const TransformerOptions& options) {
    const bool by_tokens = options.sequence_parallel;
    // The formulas of a module for further tokens gather the projection's columns in any case.
    const std::set<ExchangeKind> gathered =
        by_tokens ? std::set{gather_tokens, scatter_sums, scatter_rows} : std::set{scatter_sums};
    REQUIRE(sent(ops, gathered) == layer.gathered.value());
    REQUIRE(sent(ops, {add_sums, add_rows}) == layer.all_reduced.value());
    REQUIRE(sent(ops, {copy_tokens}) == layer.input_all_reduced.value());
    REQUIRE(sent(ops, {gather_keys}) == layer.keys_and_values.value.value());
    const std::int64_t samples = options.context_parallel;
    REQUIRE(sent(ops, {exchange_heads}) ==
            layer.exchanged_heads.value.value() / samples * (samples - 1));
    // All but an even share of the tokens goes to another device.
    const std::int64_t devices = options.expert_parallel;
    REQUIRE(sent(ops, {to_experts}) == layer.exchanged.value() / devices * (devices - 1));
    REQUIRE(sent(ops, {gather_rows, scatter_parts}) == layer.expert_gathered.value());
  });
}

TEST_CASE("blocks are recomputed, the embedding and the head are not") {
  each_layer([&](const LayerDerivation& layer, const LayerOps& ops, const TransformerOptions&) {
    REQUIRE(ops.is_block() == (layer.kind != "embedding" && layer.kind != "head"));
  });
}

TEST_CASE("what selective recomputation runs again has the FLOPs of the formulas") {
  each_layer(
      [&](const LayerDerivation& layer, const LayerOps& ops, const TransformerOptions& options) {
        LayerOps again{.dtype = ops.dtype, .ops = {}};
        for (const LayerOp& op : ops.ops) {
          if (op.again) again.ops.push_back(op);
        }
        // With scores kept, the formulas count their product alone, ops their sums, too.
        if (!options.flash_attention) return;
        REQUIRE(flops_of(again).forward == static_cast<double>(layer.recompute_flops.value()));
      });
}

TEST_CASE("modules that run again have the FLOPs and the traffic of their formulas") {
  using enum ExchangeKind;
  for (std::size_t i = 0; i < kRecomputeModules.size(); ++i) {
    CAPTURE(kRecomputeModules[i]);
    bool any = false;
    const auto check = [&](const LayerDerivation& layer, const LayerOps& ops,
                           const TransformerOptions& options) {
      LayerOps again{.dtype = ops.dtype, .ops = {}};
      for (const LayerOp& op : ops.ops) {
        if (op.again) again.ops.push_back(op);
      }
      any = any || !again.ops.empty();
      REQUIRE(again.ops.empty() == (recomputation(layer.kept).value() == 0));
      REQUIRE(flops_of(again).forward == static_cast<double>(layer.recompute_flops.value()));
      REQUIRE(sent(again, {gather_tokens, scatter_sums}) == layer.again_gathered.value());
      REQUIRE(sent(again, {add_sums}) == layer.again_all_reduced.value());
      REQUIRE(sent(again, {gather_keys}) == layer.again_keys_and_values.value());
      const std::int64_t samples = options.context_parallel;
      REQUIRE(sent(again, {exchange_heads}) ==
              layer.again_exchanged_heads.value() / samples * (samples - 1));
      REQUIRE(sent(again, {gather_rows, scatter_parts}) == layer.again_expert_gathered.value());
      const std::int64_t devices = options.expert_parallel;
      REQUIRE(sent(again, {to_experts}) == layer.again_exchanged.value() / devices * (devices - 1));
    };
    each_layer(check, RecomputeModules{static_cast<RecomputeModule>(i)});
    CHECK(any);
  }
}

TEST_CASE("groups that span servers say how many of them are neighbours") {
  const TransformerShape shape = shape_of(kLlama);
  TransformerOptions options = tokens(64, 3);
  options.tensor_parallel = 2;
  options.context_parallel = 4;
  options.devices_per_server = 4;
  const LayerOps ops = transformer_ops("block", shape, options);
  std::map<ExchangeKind, std::int64_t> near;
  for (const LayerOp& op : ops.ops) {
    if (const auto* exchange = std::get_if<ExchangeOp>(&op.shape))
      near[exchange->kind] = exchange->near;
  }
  CHECK(near.at(ExchangeKind::add_sums) == 2);     // all of them
  CHECK(near.at(ExchangeKind::gather_keys) == 2);  // two pairs in a server
}

TEST_CASE("devices that exchange heads attend over all tokens, each with heads of its own") {
  const TransformerShape shape = shape_of(kLlama);  // 4 heads, 2 of keys and values, of 16 numbers
  TransformerOptions options = tokens(64, 3);
  options.context_parallel = 4;
  options.context_exchange = ContextExchange::heads;
  options.devices_per_server = 2;
  const LayerOps ops = transformer_ops("block", shape, options);
  std::vector<ExchangeOp> exchanges;
  for (const LayerOp& op : ops.ops) {
    if (const auto* exchange = std::get_if<ExchangeOp>(&op.shape)) exchanges.push_back(*exchange);
    const auto* attention = std::get_if<AttentionOp>(&op.shape);
    if (!attention) continue;
    CHECK(attention->queries == 64);
    CHECK(attention->keys == 64);
    CHECK(attention->heads == 1);
    CHECK(attention->key_heads == 1);
  }
  // 48 tokens of a device, in bf16: 4 heads of queries, and 2 of keys and of values, each twice; 4
  // heads of what attention makes. A quarter goes to the neighbour, and half to the other server.
  const std::int64_t head = 2 * 48 * 16;
  const auto exchange_of = [](std::int64_t bytes) {
    return ExchangeOp{.kind = ExchangeKind::exchange_heads,
                      .devices = 4,
                      .near = 2,
                      .bytes = bytes / 4,
                      .network_bytes = bytes / 2};
  };
  REQUIRE(exchanges.size() == 2);
  CHECK(exchanges[0] == exchange_of((4 + 4 + 4) * head));
  CHECK(exchanges[1] == exchange_of(4 * head));
}

TEST_CASE("devices that divide an expert are neighbours, and of its tokens each gets a part") {
  TransformerOptions options = tokens(64);
  options.expert_parallel = 4;
  options.expert_tensor_parallel = 4;
  options.devices_per_server = 2;
  std::map<ExchangeKind, ExchangeOp> exchanges;
  std::vector<LinearOp> products;
  for (const LayerOp& op : transformer_ops("moe", shape_of(kQwenMoe), options).ops) {
    if (const auto* exchange = std::get_if<ExchangeOp>(&op.shape))
      exchanges[exchange->kind] = *exchange;
    if (const auto* linear = std::get_if<LinearOp>(&op.shape)) products.push_back(*linear);
  }
  // Two of eight servers have the same experts: no token stays in its server.
  const ExchangeOp& sent = exchanges.at(ExchangeKind::to_experts);
  CHECK(sent.devices == 4);
  CHECK(sent.near == 1);
  CHECK(sent.bytes == 0);
  CHECK(sent.network_bytes == 2 * 2 * 64 * 32 * 3 / 4);
  const ExchangeOp& gathered = exchanges.at(ExchangeKind::gather_rows);
  CHECK(gathered.devices == 4);
  CHECK(gathered.near == 2);
  CHECK(gathered.bytes == 4 * 2 * 2 * 64 * 32);
  // Behind the router: two experts a device, of 24 / 4 columns, with the tokens of four.
  REQUIRE(products.size() == 3);
  CHECK(products[1] == LinearOp{NumberFormat::bf16, 4 * 2 * 64, 2 * 6, 32, 2});
  CHECK(products[2] == LinearOp{NumberFormat::bf16, 4 * 2 * 64, 32, 6, 2});
}

TEST_CASE("a profile of any layout is written with its ops, and read back") {
  int profiles = 0;
  for (const std::string& config : {kLlama, kGpt2, kQwenMoe, kDeepSeek, kFalcon}) {
    const TransformerShape shape = shape_of(config);
    for (TransformerOptions options : layouts(shape.has_experts())) {
      for (const std::optional<std::int64_t> in_server : {std::optional<std::int64_t>{}, {2}}) {
        options.devices_per_server = in_server;
        options.fp8_dispatch = options.fp8_linear && options.expert_parallel > 1;
        options.fused_loss =
            options.flash_attention ? std::nullopt : std::optional(profiles % 2 == 0);
        const auto profile = transformer_profile("m", shape, options);
        if (!profile) continue;  // this model is not shared so
        ++profiles;
        const std::string text = profile_yaml(profile->model);
        const auto read = parse_profile(test::text_source("p.yaml", text));
        REQUIRE_MESSAGE(read, (read ? "" : to_text(read.problems())));
        const auto& made = profile->model.profile.measurements.front().layers;
        const auto& back = read->profile.measurements.front().layers;
        for (std::size_t i = 0; i < made.size(); ++i) {
          REQUIRE(*made[i].ops == *back[i].ops);
          REQUIRE(made[i].temporary == back[i].temporary);
        }
      }
    }
  }
  CHECK(profiles > 100);
}

TEST_CASE("layers of one kind share their ops") {
  const TransformerProfile profile = profile_of(kLlama, tokens(64));
  const auto& layers = profile.model.profile.measurements[0].layers;
  std::set<const LayerOps*> kinds;
  for (const LayerCosts& layer : layers) kinds.insert(layer.ops.get());
  CHECK(kinds.size() == 3);
  CHECK_FALSE(kinds.contains(nullptr));
}

}  // namespace
}  // namespace plumbline
