// Transformers in fp8, and those that predict further tokens, against sums made by hand.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "models/import/transformer_profile.h"
#include "tests/support/text_source.h"
#include "tests/support/transformers.h"

namespace plumbline::test {
namespace {

const std::vector<LayerCosts>& costs_of(const TransformerProfile& profile) {
  return profile.model.profile.measurements[0].layers;
}

std::int64_t parameters_of(const TransformerProfile& profile) {
  return profile.totals.parameters.value();
}

/// DeepSeek's shape, which predicts so many further tokens.
std::string predicting(int modules) {
  std::string config = kDeepSeek;
  config.insert(config.rfind('}'), ", \"num_nextn_predict_layers\": " + std::to_string(modules));
  return config;
}

std::string refused(const std::string& config, const TransformerOptions& options) {
  const auto profile = transformer_profile("test", shape_of(config), options);
  REQUIRE_FALSE(profile);
  return profile.problems().front().message;
}

TEST_CASE("in fp8 linear layers keep their inputs in a byte a number, and nothing else does") {
  TransformerOptions options = tokens(16);
  options.split_blocks = true;
  options.fp8_linear = true;
  const TransformerProfile llama = profile_of(kLlama, options);
  const std::vector<LayerCosts>& layers = costs_of(llama);
  constexpr std::int64_t t = 16;
  CHECK(layers[0].activation.count == 2 * t * 64);
  // Behind the norm; queries, keys and values; sums of the softmax; what is projected, which
  // attention keeps as it is, besides; the output.
  CHECK(layers[1].activation.count == t * (64 + 2 * (64 + 2 * 32) + 4 * 4 + 3 * 64 + 2 * 64));
  // Behind the norm; gate, its activation and up; their product; the output.
  CHECK(layers[2].activation.count == t * (64 + 2 * 3 * 128 + 128 + 2 * 64));
  CHECK(layers[5].activation.count == t * (2 * 64 + 4 * 100));
  CHECK(layers[1].output.count == 2 * t * 64);
  CHECK(layers[1].selective->activation.count == t * 64);
  CHECK(layers[2].selective->activation.count == t * (64 + 2 * 128 + 128));

  // Experts keep their tokens and the products within; the router's memory is as before.
  const TransformerProfile moe = profile_of(kQwenMoe, options);
  CHECK(costs_of(moe)[2].activation.count ==
        t * (2 * 32 + 4 * 8 + 2 * (32 + 2 * 3 * 24 + 24 + 2 * 32) + 2 * 32));
  // Shared experts take what is behind the norm in fp8, besides.
  const TransformerProfile shared = profile_of(kDeepSeek, options);
  CHECK(costs_of(shared)[4].activation.count ==
        t * (2 * 32 + 4 * 8 + 2 * (32 + 2 * 3 * 24 + 24 + 2 * 32) + 32 + 2 * 3 * 48 + 48 + 2 * 32));
  // Compressed tokens before and behind their norms; queries, keys and values of 12, 12 and 6.
  CHECK(costs_of(shared)[1].activation.count ==
        t * (32 + 3 * 12 + 2 * (10 + 4) + 10 + 2 * 4 * (12 + 12 + 6) + 4 * 4 + 3 * 4 * 6 + 2 * 32));
}

TEST_CASE("in fp8 are all products with weights but those of the head and the routers") {
  for (const std::string& config : {kLlama, kGpt2, kQwenMoe, kDeepSeek}) {
    CAPTURE(config);
    TransformerOptions options = tokens(16);
    options.split_blocks = true;
    const TransformerProfile plain = profile_of(config, options);
    options.fp8_linear = true;
    const TransformerProfile fast = profile_of(config, options);
    CHECK(parameters_of(fast) == parameters_of(plain));
    for (std::size_t i = 0; i < costs_of(plain).size(); ++i) {
      const std::string& kind = plain.model.graph.layers()[i].kind;
      CAPTURE(kind);
      const LayerWork& before = *costs_of(plain)[i].work;
      const LayerWork& after = *costs_of(fast)[i].work;
      CHECK(before.forward.flops == after.forward.flops);
      CHECK(before.backward_input.flops == after.backward_input.flops);
      CHECK(before.forward.fp8_flops.count == 0);
      // The backward for the weights has those alone.
      const std::int64_t router = kind == "moe" ? 2 * 16 * 32 * 8 : 0;
      const std::int64_t products =
          kind == "head" || kind == "embedding" ? 0 : before.backward_weight.flops.count - router;
      for (const PassWork* pass : {&after.forward, &after.backward_input, &after.backward_weight})
        CHECK(pass->fp8_flops.count == products);
    }
  }
  // Heads that are made again are products, scores are not.
  TransformerOptions options = tokens(16);
  options.split_blocks = true;
  options.fp8_linear = true;
  options.flash_attention = false;
  const Selective latent = *costs_of(profile_of(kDeepSeek, options))[1].selective;
  CHECK(latent.work->flops.count - latent.work->fp8_flops.count == 2 * 16 * 16 * 4 * 12);
  options.dtype = NumberFormat::fp8;
  CHECK(refused(kLlama, options) == "--fp8-linear with --dtype fp8");
}

TEST_CASE("tokens go to experts in fp8 and come back as they are, gradients the other way around") {
  for (const Dispatch dispatch : {Dispatch::per_expert, Dispatch::per_server}) {
    TransformerOptions options = tokens(16);
    options.expert_parallel = 4;
    options.devices_per_server = 2;
    options.dispatch = dispatch;
    options.fp8_linear = true;
    const TransformerProfile plain = profile_of(kDeepSeek, options);
    options.fp8_dispatch = true;
    const TransformerProfile fast = profile_of(kDeepSeek, options);
    const LayerWork& before = *costs_of(plain)[2].work;
    const LayerWork& after = *costs_of(fast)[2].work;
    // 1 + 2 of 2 + 2 bytes per number are left, to the byte.
    const auto is_less = [](Bytes now, Bytes then) {
      return std::abs(4 * now.count - 3 * then.count) <= 4 && now.count > 0;
    };
    for (const auto pass : {&LayerWork::forward, &LayerWork::backward_input}) {
      CHECK(is_less((after.*pass).link_traffic, (before.*pass).link_traffic));
      CHECK(is_less((after.*pass).network_traffic, (before.*pass).network_traffic));
    }
    CHECK(after.backward_weight == before.backward_weight);
  }
  TransformerOptions alone = tokens(16);
  alone.fp8_dispatch = true;
  CHECK(refused(kDeepSeek, alone) == "--fp8-dispatch without --fp8-linear");
  alone.fp8_linear = true;
  CHECK(refused(kLlama, alone) == "--fp8-dispatch of a model without experts");
}

TEST_CASE("a module that predicts further tokens is a projection, a block and the head once more") {
  TransformerOptions options = tokens(16);
  options.split_blocks = false;
  for (const int modules : {1, 3}) {
    CAPTURE(modules);
    options.mtp = false;
    const TransformerProfile without = profile_of(predicting(modules), options);
    options.mtp = true;
    const TransformerProfile with = profile_of(predicting(modules), options);
    REQUIRE(with.model.graph.size() == without.model.graph.size() + modules);
    constexpr std::int64_t t = 16;
    constexpr std::int64_t projection = 2 * 32 * 32;
    const std::size_t last = costs_of(without).size() - 2;  // the block in front of the head
    const LayerCosts& block = costs_of(without)[last];
    const std::int64_t of_block = without.model.graph.layers()[last].parameters.count / 2;
    for (int i = 0; i < modules; ++i) {
      const Layer& layer = with.model.graph.layers()[last + 1 + i];
      const LayerCosts& costs = costs_of(with)[last + 1 + i];
      CHECK(layer.name == "mtp_" + std::to_string(i));
      CHECK(layer.kind == "mtp");
      CHECK(layer.parameters.count == 2 * (of_block + 3 * 32 + projection + 50 * 32));
      CHECK(costs.work->forward.flops.count ==
            block.work->forward.flops.count + 2 * t * projection);
      CHECK(costs.work->backward_weight.flops.count ==
            block.work->backward_weight.flops.count + 2 * t * projection);
      // An embedding, it and what came before behind their norms, projected; behind the last norm.
      CHECK(costs.activation.count == block.activation.count + 2 * t * 32 * 5);
      CHECK(costs.output.count == 2 * t * 32 * (i + 2));
    }
    const LayerCosts& head = costs_of(with).back();
    const LayerCosts& alone = costs_of(without).back();
    CHECK(head.work->forward.flops.count == (modules + 1) * alone.work->forward.flops.count);
    CHECK(head.activation.count == alone.activation.count + modules * 4 * t * 50);
    CHECK(with.model.graph.layers().back().parameters ==
          without.model.graph.layers().back().parameters);
    // The embedding's copies are no parameters of their own.
    CHECK(parameters_of(with) ==
          parameters_of(without) + modules * (of_block + 3 * 32 + projection));
    CHECK(with.uncounted.size() + 1 == without.uncounted.size());
  }
  CHECK(refused(kLlama, options) == "--mtp of a model without modules that predict further tokens");
}

TEST_CASE("devices of a tensor-parallel group share a module that predicts further tokens") {
  TransformerOptions options = tokens(16);
  options.mtp = true;
  const TransformerProfile whole = profile_of(predicting(1), options);
  options.tensor_parallel = 2;
  const TransformerProfile shared = profile_of(predicting(1), options);
  options.sequence_parallel = true;
  const TransformerProfile by_tokens = profile_of(predicting(1), options);
  CHECK(parameters_of(shared) == parameters_of(whole));
  const std::size_t block = costs_of(whole).size() - 3;
  constexpr std::int64_t tensor = 2 * 16 * 32;  // all tokens, as wide as between blocks
  const auto more = [&](const TransformerProfile& profile, PassWork LayerWork::*pass) {
    return ((*costs_of(profile)[block + 1].work).*pass).link_traffic.count -
           ((*costs_of(profile)[block].work).*pass).link_traffic.count;
  };
  CHECK(more(whole, &LayerWork::forward) == 0);
  // An all-reduce sends both halves, a gather one: of two devices half of the bytes each.
  CHECK(more(shared, &LayerWork::forward) == tensor + tensor / 2);
  CHECK(more(shared, &LayerWork::backward_input) == 2 * tensor);
  CHECK(more(by_tokens, &LayerWork::forward) == 2 * tensor);
  CHECK(more(by_tokens, &LayerWork::backward_input) == 2 * tensor);
  const auto flops = [&](const TransformerProfile& profile, std::size_t layer) {
    return costs_of(profile)[layer].work->forward.flops.count;
  };
  CHECK(2 * (flops(shared, block + 1) - flops(shared, block)) ==
        flops(whole, block + 1) - flops(whole, block));
}

TEST_CASE("a module that predicts further tokens moves its weights, what it keeps and its rows") {
  constexpr std::int64_t tensor = 2 * 16 * 32;  // of all tokens
  struct Moved {
    std::int64_t forward, input, weight;
    bool operator==(const Moved&) const = default;
  };
  const auto more = [](const LayerCosts& layer, const LayerCosts& than) {
    const LayerWork& a = *layer.work;
    const LayerWork& b = *than.work;
    return Moved{a.forward.memory_traffic.count - b.forward.memory_traffic.count,
                 a.backward_input.memory_traffic.count - b.backward_input.memory_traffic.count,
                 a.backward_weight.memory_traffic.count - b.backward_weight.memory_traffic.count};
  };
  TransformerOptions options = tokens(16);
  options.mtp = true;
  // More than its block: three norms and the projection, five tensors that are kept, its input and
  // the embedding's rows; for the weights the gradient of the table of 50.
  const TransformerProfile alone = profile_of(predicting(1), options);
  const std::size_t block = costs_of(alone).size() - 3;
  constexpr std::int64_t weights = 2 * (3 * 32 + 2 * 32 * 32);
  CHECK(more(costs_of(alone)[block + 1], costs_of(alone)[block]) ==
        Moved{weights + 2 * 5 * tensor + 2 * tensor, weights + 3 * 5 * tensor,
              weights + 2 * 5 * tensor + 2 * 50 * 32});

  // Each of two devices has half of the tokens between products, of the projection's columns and of
  // the table; all tokens are gathered or added up four times, around the head twice.
  options.tensor_parallel = 2;
  options.sequence_parallel = true;
  const TransformerProfile shared = profile_of(predicting(1), options);
  constexpr std::int64_t half = 2 * (3 * 32 + 2 * 32 * 16);
  CHECK(more(costs_of(shared)[block + 1], costs_of(shared)[block]) ==
        Moved{half + 5 * tensor + tensor + 4 * tensor, half + 3 * 5 * tensor / 2 + 4 * tensor,
              half + 5 * tensor + 2 * 25 * 32 + 4 * tensor});
  options.mtp = false;
  const TransformerProfile without = profile_of(predicting(1), options);
  constexpr std::int64_t logits = 4 * 16 * 25;
  CHECK(more(costs_of(shared).back(), costs_of(without).back()) ==
        Moved{2 * logits + 2 * tensor, 3 * logits + 2 * tensor, 2 * logits + 2 * tensor});
}

TEST_CASE("cross entropy in ops of its own keeps the logits beside their softmax's logarithms") {
  for (const std::int64_t tensor : {1, 2}) {
    CAPTURE(tensor);
    TransformerOptions options = tokens(1024);
    options.tensor_parallel = tensor;
    const LayerCosts usual = costs_of(profile_of(kLlama, options)).back();
    options.fused_loss = true;
    const LayerCosts fused = costs_of(profile_of(kLlama, options)).back();
    options.fused_loss = false;
    const LayerCosts apart = costs_of(profile_of(kLlama, options)).back();
    const std::int64_t logits = 1024 * 100 / tensor;
    CHECK(fused.activation == usual.activation);
    CHECK(fused.temporary == usual.temporary);
    CHECK(apart.activation - fused.activation == Bytes{2 * logits});
    // In bf16 the gradients of the matrix, of logits and of inputs; two gradients in fp32.
    CHECK(fused.temporary.count == 2 * (64 * 100 / tensor + logits + 1024 * 64));
    CHECK(apart.temporary.count == 2 * 4 * logits);
    CHECK(apart.work->forward.flops == fused.work->forward.flops);
  }
}

TEST_CASE("a published model's module has about the parameters that it is known by") {
  // 11.5 B besides embedding and head (the file on weights in the model's repository).
  const std::string config =
      R"({"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432,
          "moe_intermediate_size": 2048, "n_routed_experts": 256, "num_experts_per_tok": 8,
          "n_shared_experts": 1, "first_k_dense_replace": 3, "num_hidden_layers": 61,
          "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536,
          "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
          "v_head_dim": 128, "vocab_size": 129280, "num_nextn_predict_layers": 1})";
  TransformerOptions options = tokens(4096);
  const std::int64_t without = parameters_of(profile_of(config, options));
  options.mtp = true;
  const std::int64_t module = parameters_of(profile_of(config, options)) - without;
  // One more block, a projection of 2 x 7168 numbers to 7168, three norms.
  CHECK(module == 256 * 3 * 7168 * 2048LL + 3 * 7168 * 2048 + 7168 * 256 + 187'107'328 + 2 * 7168 +
                      2 * 7168 * 7168 + 3 * 7168);
  CHECK(static_cast<double>(module) == doctest::Approx(11.5e9).epsilon(0.01));
}

}  // namespace
}  // namespace plumbline::test
