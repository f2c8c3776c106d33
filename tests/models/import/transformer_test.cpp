// Shapes from config.json, and the costs of their layers, against sums made by hand.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <utility>

#include "models/architectures/huggingface.h"
#include "models/import/transformer_profile.h"
#include "models/network/model_flops.h"
#include "models/profile/profile_reader.h"
#include "tests/support/text_source.h"
#include "tests/support/transformers.h"

namespace plumbline {
namespace {

using test::kDeepSeek;
using test::kGpt2;
using test::kLlama;
using test::kQwenMoe;
using test::profile_of;
using test::shape_of;
using test::tokens;

TEST_CASE("parameters are those that are counted by hand") {
  // Llama: 100 x 64 + 2 x (64 + 64 x 8 x 16 + 64 x 64 + 64 + 3 x 64 x 128) + 64 + 100 x 64
  CHECK(profile_of(kLlama, tokens(8)).totals.parameters.value() == 86'848);
  // GPT-2, inner 4 x 64: (100 + 128) x 64 + 2 x (128 + 64 x 192 + 192 + 64 x 64 + 64
  //   + 128 + 2 x 64 x 256 + 256 + 64) + 128; the head is tied
  CHECK(profile_of(kGpt2, tokens(8)).totals.parameters.value() == 114'688);
  // Qwen2 of one block, with biases of q, k and v, tied: 6400 + 64 + 8192 + 128 + 4096 + 64 + 24576
  //   + 64
  const TransformerProfile qwen2 = profile_of(
      R"({"model_type": "qwen2", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1,
          "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100,
          "tie_word_embeddings": true, "use_sliding_window": false, "sliding_window": 4})",
      tokens(8));
  CHECK(qwen2.totals.parameters.value() == 43'584);
  CHECK(qwen2.notes.size() == 3);  // the window is switched off: tied, no dropout, no state
  // Mixtral: experts as wide as intermediate_size. 3200 + 32 + 32 x 8 x 8 + 32 x 32 + 32 + 32 x 4
  //   + 4 x 3 x 32 x 48 + 32 + 3200, with 2 of 4 experts at work
  const TransformerProfile mixtral = profile_of(
      R"({"model_type": "mixtral", "hidden_size": 32, "intermediate_size": 48,
          "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2,
          "num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 100})",
      tokens(8));
  CHECK(mixtral.totals.parameters.value() == 28'128);
  CHECK(mixtral.totals.active_parameters.value() == 18'912);
}

TEST_CASE(
    "a published model of latent attention and experts has the parameters that it is known by") {
  // 671 B of which 37 B are active (DeepSeek-AI 2024, "DeepSeek-V3"); without the biases that
  // balance the routers, 58 x 256, which nothing trains by gradients.
  const TransformerTotals totals =
      profile_of(
          R"({"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432,
              "moe_intermediate_size": 2048, "n_routed_experts": 256, "num_experts_per_tok": 8,
              "n_shared_experts": 1, "first_k_dense_replace": 3, "num_hidden_layers": 61,
              "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536,
              "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
              "v_head_dim": 128, "vocab_size": 129280, "num_nextn_predict_layers": 1})",
          tokens(8))
          .totals;
  CHECK(totals.parameters.value() == 671'026'404'352);
  CHECK(totals.active_parameters.value() == 671'026'404'352 - 58LL * 248 * 3 * 7168 * 2048);
}

TEST_CASE("latent attention is counted matrix by matrix") {
  const TransformerProfile profile = profile_of(kDeepSeek, tokens(16));
  // 32 + 32 x 12 + 12 + 12 x 4 x 12 + 32 x (10 + 4) + 10 + 10 x 4 x (8 + 6) + 4 x 6 x 32 = 2790;
  // dense 32 + 3 x 32 x 96 = 9248; experts 32 + 32 x 8 + (8 + 2) x 3 x 32 x 24 = 23328.
  CHECK(profile.totals.parameters.value() == 1600 + 3 * 2790 + 9248 + 2 * 23'328 + 32 + 1600);
  CHECK(profile.totals.active_parameters.value() ==
        profile.totals.parameters.value() - 2 * 6 * 3 * 32 * 24);
  TransformerOptions options = tokens(16);
  options.split_blocks = true;
  const auto layers = profile_of(kDeepSeek, options).model.profile.measurements[0].layers;
  const LayerCosts& attention = layers[1];
  const std::int64_t matrices = 32 * 12 + 12 * 48 + 32 * 14 + 10 * 56 + 24 * 32;
  const std::int64_t scores = 16 * 16 * 4 * 12;
  const std::int64_t sums = 16 * 16 * 4 * 6;
  CHECK(attention.work->forward.flops.count == 2 * 16 * matrices + scores + sums);
  CHECK(attention.work->backward_input.flops.count == 2 * 16 * matrices + 3 * scores + 2 * sums);
  CHECK(attention.work->backward_weight.flops.count == 2 * 16 * matrices);
  // bf16: norm 32, compressed 2 x 12 and 2 x 10 + 4, heads 4 x (12 + 12 + 6), sums 2 each of 4
  // heads, projection 24, output 32.
  CHECK(attention.activation.count == 2 * 16 * (32 + 24 + 24 + 120 + 2 * 4 + 24 + 32));
  const LayerCosts& experts = layers[4];
  CHECK(experts.work->forward.flops.count == 2 * 16 * (32 * 8 + 2 * 3 * 32 * 24 + 2 * 3 * 32 * 24));
  // All experts are chosen: norm, router, eight and two as one; the input, and twice what is kept.
  CHECK(experts.work->forward.memory_traffic.count ==
        2 * (32 + 32 * 8 + 10 * 3 * 32 * 24) + 2 * 16 * 32 + 2 * experts.activation.count);
  options.flash_attention = false;
  const LayerCosts whole = profile_of(kDeepSeek, options).model.profile.measurements[0].layers[1];
  CHECK(whole.work->forward.flops.count == 2 * 16 * matrices + 2 * (scores + sums));
  CHECK(whole.work->backward_input.flops.count == 2 * 16 * matrices + 4 * (scores + sums));
}

TEST_CASE(
    "of latent attention a group shares what comes behind the compression, and biases are there if "
    "asked for") {
  const auto parameters = [](const std::string& config, std::int64_t group) {
    TransformerOptions options = tokens(16);
    options.split_blocks = true;
    options.tensor_parallel = group;
    return profile_of(config, options).model.graph.layers()[1].parameters.count / 2;
  };
  // Whole: norms 32 + 12 + 10 and the compressing matrices 384 + 448.
  const std::int64_t behind = 12 * 48 + 10 * 56 + 24 * 32;
  CHECK(parameters(kDeepSeek, 1) == 54 + 832 + behind);
  CHECK(parameters(kDeepSeek, 2) == 54 + 832 + behind / 2);
  std::string biased = kDeepSeek;
  biased.insert(1, R"("attention_bias": true, )");
  CHECK(parameters(biased, 1) == parameters(kDeepSeek, 1) + 12 + (10 + 4) + 32);
  const std::size_t at = biased.find("\"q_lora_rank\": 12");
  biased.replace(at, 17, "\"q_lora_rank\": null");
  CHECK(parameters(biased, 1) == 42 + 32 * 48 + 448 + 10 * 56 + 24 * 32 + (10 + 4) + 32);
  std::string silent = kDeepSeek;
  silent.erase(silent.find("\"q_lora_rank\": 12,"), 18);
  const auto missing = parse_huggingface(test::text_source("config.json", silent));
  REQUIRE_FALSE(missing);
  CHECK(missing.problems().front().message == "q_lora_rank is missing");
}

TEST_CASE("where experts stand in a deepseek model") {
  std::string config = kDeepSeek;
  config.replace(config.find("deepseek_v3"), 11, "deepseek_v2");
  config.insert(1, R"("moe_layer_freq": 2, )");
  config.replace(config.find("\"n_shared_experts\": 2,"), 22, "");
  config.replace(config.find("\"first_k_dense_replace\": 1,"), 27, "");
  const TransformerShape shape = shape_of(config);
  CHECK(shape.sparse == std::vector<bool>{true, false, true});
  CHECK(shape.shared_feed_forward == 2 * 24);  // as many as the family's configuration class has
  config.insert(1, R"("first_k_dense_replace": 7, )");
  CHECK_FALSE(shape_of(config).has_experts());
}

TEST_CASE("of which groups the experts of a token are in a deepseek model") {
  const auto groups = [](const TransformerShape& shape) {
    return std::pair{shape.expert_groups, shape.groups_per_token};
  };
  using Groups = std::pair<std::int64_t, std::int64_t>;
  const auto with = [](const std::string& more, bool second = false) {
    std::string config = kDeepSeek;
    if (second) config.replace(config.find("deepseek_v3"), 11, "deepseek_v2");
    return config.insert(1, more);
  };
  CHECK(groups(shape_of(kDeepSeek)) == Groups{8, 4});  // as its configuration class has it
  CHECK(groups(shape_of(with(R"("n_group": 4, "topk_group": 3, )"))) == Groups{4, 3});
  CHECK(groups(shape_of(with(R"("n_group": 1, "topk_group": 1, )"))) == Groups{1, 1});
  const std::string some = R"("n_group": 4, "topk_group": 2, )";
  CHECK(groups(shape_of(with(some, true))) == Groups{1, 1});
  CHECK(groups(shape_of(with(some + R"("topk_method": "greedy", )", true))) == Groups{1, 1});
  CHECK(groups(shape_of(with(some + R"("topk_method": "group_limited_greedy", )", true))) ==
        Groups{4, 2});
  CHECK(groups(shape_of(kQwenMoe)) == Groups{1, 1});
  // Defaults that are of a larger model.
  std::string small = kDeepSeek;
  small.replace(small.find("\"n_routed_experts\": 8"), 21, "\"n_routed_experts\": 6");
  CHECK(groups(shape_of(small)) == Groups{1, 1});

  const auto refused = [&](const std::string& more, bool second = false) {
    const auto shape = parse_huggingface(test::text_source("config.json", with(more, second)));
    REQUIRE_FALSE(shape);
    return shape.problems().front().message;
  };
  CHECK(refused(R"("n_group": 3, )") == "n_group is 3, which does not divide n_routed_experts, 8");
  CHECK(refused(R"("n_group": 2, "topk_group": 3, )") == "topk_group is 3, but n_group is 2");
  CHECK(refused(R"("n_group": 8, "topk_group": 1, )") ==
        "topk_group is 1: so many of 8 groups have 1 experts, but num_experts_per_tok is 2");
  CHECK(refused(R"("topk_method": "group_limited_greedy", )", true) == "n_group is missing");
}

TEST_CASE("of a gated MLP whose activation is fused three tensors are kept, not four") {
  TransformerOptions options = tokens(16);
  options.split_blocks = true;
  for (const std::string& config : {kLlama, kQwenMoe, kDeepSeek, kGpt2}) {
    CAPTURE(config);
    options.fused_swiglu = false;
    const TransformerProfile apart = profile_of(config, options);
    options.fused_swiglu = true;
    const TransformerProfile fused = profile_of(config, options);
    for (std::size_t i = 0; i < apart.model.graph.size(); ++i) {
      const std::string& kind = apart.model.graph.layers()[i].kind;
      CAPTURE(kind);
      const LayerCosts& before = apart.model.profile.measurements[0].layers[i];
      const LayerCosts& after = fused.model.profile.measurements[0].layers[i];
      // In bf16, of 16 tokens: 128 or 96 wide; of two experts 24 each, and DeepSeek's shared 48.
      std::int64_t tensor = 0;
      if (kind == "mlp" && config != kGpt2) tensor = 2 * 16 * (config == kLlama ? 128 : 96);
      if (kind == "moe") tensor = 2 * 16 * (2 * 24 + (config == kDeepSeek ? 48 : 0));
      // The outputs of two experts per token need not be kept either, but are written and read.
      const std::int64_t outputs = kind == "moe" ? 2 * 16 * 2 * 32 : 0;
      CHECK(before.activation.count - after.activation.count == tensor + outputs);
      const auto saved = [&](PassWork LayerWork::*pass) {
        return ((*before.work).*pass).memory_traffic.count -
               ((*after.work).*pass).memory_traffic.count;
      };
      CHECK(saved(&LayerWork::forward) == 2 * tensor);
      CHECK(saved(&LayerWork::backward_input) == 3 * tensor + outputs);
      CHECK(saved(&LayerWork::backward_weight) == 2 * tensor + outputs);
      CHECK(before.work->forward.flops == after.work->forward.flops);
      if (tensor == 0) continue;
      // Selective recomputation makes the product again, and no activation.
      CHECK(before.selective->activation.count - after.selective->activation.count == tensor);
      // It writes one tensor less, and of the two that a product is made of reads both.
      CHECK(before.selective->work->memory_traffic.count -
                after.selective->work->memory_traffic.count ==
            tensor);
    }
  }
}

TEST_CASE("the scores of latent attention are those of plain attention with heads as large") {
  // Heads of 16 numbers each for queries, keys and values; the matrices in front differ.
  TransformerOptions options = tokens(128);
  options.split_blocks = true;
  const auto plain = profile_of(kLlama, options).model.profile.measurements[0].layers[1];
  const auto latent =
      profile_of(R"({"model_type": "deepseek_v2", "hidden_size": 64, "intermediate_size": 128,
                     "moe_intermediate_size": 8, "n_routed_experts": 2, "num_experts_per_tok": 1,
                     "first_k_dense_replace": 2, "num_hidden_layers": 2, "vocab_size": 100,
                     "num_attention_heads": 4, "q_lora_rank": null, "kv_lora_rank": 5,
                     "qk_nope_head_dim": 10, "qk_rope_head_dim": 6, "v_head_dim": 16})",
                 options)
          .model.profile.measurements[0]
          .layers[1];
  // The rest of forward and backward without each matrix's product.
  const auto scores = [](const LayerCosts& layer) {
    return std::pair{
        layer.work->forward.flops.count - layer.work->backward_weight.flops.count,
        layer.work->backward_input.flops.count - layer.work->backward_weight.flops.count};
  };
  CHECK(scores(latent) == scores(plain));
}

TEST_CASE("the FLOPs of long samples are counted where their sum is beyond what a layer may have") {
  TransformerOptions options = tokens(3'670'016);
  for (const std::int64_t devices : {1, 4}) {
    CAPTURE(devices);
    options.context_parallel = devices;
    const TransformerProfile profile = profile_of(kLlama, options);
    double backward = 0;
    for (const LayerCosts& layer : profile.model.profile.measurements[0].layers) {
      backward += static_cast<double>(layer.work->backward_input.flops.count) +
                  static_cast<double>(layer.work->backward_weight.flops.count);
    }
    CHECK(profile.totals.forward_flops + profile.totals.backward_flops > 0x1p53);
    CHECK(profile.totals.backward_flops ==
          doctest::Approx(backward * static_cast<double>(devices)).epsilon(1e-14));
    CHECK(profile.totals.forward_flops < 0x1p53);
    if (devices > 1)
      CHECK(static_cast<double>(profile.model.profile.group.forward->count) ==
            profile.totals.forward_flops);
  }
}

TEST_CASE("norms, nonlinear functions and their products are made again, unfused scores, heads") {
  const auto selective = [](const std::string& config, bool flash, std::size_t layer) {
    TransformerOptions options = tokens(16);
    options.split_blocks = true;
    options.flash_attention = flash;
    const TransformerProfile profile = profile_of(config, options);
    const LayerCosts& costs = profile.model.profile.measurements[0].layers[layer];
    REQUIRE(costs.selective);
    REQUIRE(costs.selective->work);
    return *costs.selective;
  };
  // In bf16, of 16 tokens: 64 numbers behind a norm; scores of 4 heads, each of 16 numbers.
  const Selective attention = selective(kLlama, true, 1);
  CHECK(attention.activation == Bytes{2 * 16 * 64});
  CHECK(attention.work->flops == Flops{});
  CHECK(attention.work->memory_traffic == Bytes{2 * attention.activation.count});
  const Selective scores = selective(kLlama, false, 1);
  CHECK(scores.activation == Bytes{2 * 16 * 64 + 2 * 16 * 16 * 4});
  CHECK(scores.work->flops == Flops{2 * 16 * 16 * 4 * 16});
  // A gated MLP of 128 recomputes the activation and the product, one without a gate only the
  // activation.
  CHECK(selective(kLlama, true, 2).activation == Bytes{2 * 16 * (64 + 2 * 128)});
  CHECK(selective(kGpt2, true, 2).activation == Bytes{2 * 16 * (64 + 256)});
  CHECK(selective(kLlama, true, 5).activation == Bytes{2 * 16 * 64});  // the head's norm
  // Two of the experts of 24 each.
  CHECK(selective(kQwenMoe, true, 2).activation == Bytes{2 * 16 * (32 + 2 * 2 * 24)});
  // Latent attention: of 4 heads queries and keys of 12 numbers, values of 6.
  const Selective latent = selective(kDeepSeek, true, 1);
  const std::int64_t numbers = 12 * 4 * 12 + 10 * 4 * (8 + 6);  // of the matrices
  CHECK(latent.activation == Bytes{2 * 16 * (32 + 4 * (12 + 12 + 6))});
  CHECK(latent.work->flops == Flops{2 * 16 * numbers});
  CHECK(latent.work->memory_traffic == Bytes{2 * latent.activation.count + 2 * numbers});
  // Queries that are not compressed are kept.
  std::string bare = kDeepSeek;
  bare.replace(bare.find("\"q_lora_rank\": 12"), 17, "\"q_lora_rank\": null");
  const Selective keys = selective(bare, true, 1);
  CHECK(keys.activation == Bytes{2 * 16 * (32 + 4 * (12 + 6))});
  CHECK(keys.work->flops == Flops{2 * 16 * 10 * 4 * (8 + 6)});
  // Unfused, with latent attention: scores of 12 numbers a head besides.
  CHECK(selective(kDeepSeek, false, 1).work->flops ==
        Flops{latent.work->flops.count + 2 * 16 * 16 * 4 * 12});
  // A block makes again what both do.
  TransformerOptions whole = tokens(16);
  const LayerCosts block = profile_of(kDeepSeek, whole).model.profile.measurements[0].layers[1];
  CHECK(block.selective->activation ==
        latent.activation + selective(kDeepSeek, true, 2).activation);
  CHECK(block.selective->work->flops == latent.work->flops);
  CHECK_FALSE(
      profile_of(kLlama, tokens(16)).model.profile.measurements[0].layers[0].selective);  // tables
}

TEST_CASE("a mixture of experts may have dense blocks between") {
  const TransformerProfile profile = profile_of(kQwenMoe, tokens(8));
  // attention 32 + 32 x 8 x 16 + 2 x 16 + 64 x 32 = 6208; experts 32 + 32 x 8 + 8 x 3 x 32 x 24;
  // dense 32 + 3 x 32 x 96; 1600 + 2 x (6208 + 18720) + 6208 + 9248 + 32 + 1600
  CHECK(profile.totals.parameters.value() == 68'544);
  // In each of the two, 6 experts are idle: 2 x 6 x 3 x 32 x 24 = 27648.
  CHECK(profile.totals.active_parameters.value() == 68'544 - 27'648);
  const std::vector<Layer>& layers = profile.model.graph.layers();
  REQUIRE(layers.size() == 5);
  CHECK(layers[1].kind == "moe_block");
  CHECK(layers[2].kind == "block");
  CHECK(layers[3].kind == "moe_block");
}

TEST_CASE("defaults depend on the family") {
  CHECK(shape_of(kGpt2).tied);
  CHECK(shape_of(kGpt2).feed_forward == 256);
  CHECK_FALSE(shape_of(kLlama).tied);
  CHECK(shape_of(kLlama).head_dim == 16);
  const std::string rest =
      R"("hidden_size": 64, "intermediate_size": 8, "num_attention_heads": 8, "vocab_size": 9,
         "num_hidden_layers": 1, "sliding_window": 4})";
  const TransformerShape mistral = shape_of(R"({"model_type": "mistral", )" + rest);
  CHECK(mistral.key_value_heads == 8);
  CHECK(mistral.window == 4);
  CHECK(shape_of(R"({"model_type": "llama", )" + rest).key_value_heads == 8);
  const TransformerShape qwen3 =
      shape_of(R"({"model_type": "qwen3", "num_key_value_heads": 2, )" + rest);
  CHECK(qwen3.head_dim == 128);
  CHECK(qwen3.query_key_norm);
  CHECK_FALSE(qwen3.window);
}

TEST_CASE("a window that the file does not give is that of the family, where it is on") {
  const auto window = [](const std::string& given) {
    return shape_of(R"({"hidden_size": 64, "intermediate_size": 8, "num_attention_heads": 8,
                        "num_key_value_heads": 8, "vocab_size": 9, "num_hidden_layers": 1,
                        "max_window_layers": 0, )" +
                    given + "}")
        .window;
  };
  CHECK(window(R"("model_type": "mistral")") == 4096);
  CHECK_FALSE(window(R"("model_type": "mistral", "sliding_window": null)"));
  CHECK_FALSE(window(R"("model_type": "qwen2")"));
  CHECK(window(R"("model_type": "qwen2", "use_sliding_window": true)") == 4096);
  CHECK(window(R"("model_type": "qwen3", "use_sliding_window": true, "sliding_window": 5)") == 5);
  CHECK_FALSE(window(R"("model_type": "llama")"));
}

TEST_CASE("the FLOPs of a block are those of its matrices and of half the scores") {
  const TransformerProfile profile = profile_of(kLlama, tokens(128));
  const LayerWork& work = *profile.model.profile.measurements[0].layers[1].work;
  // 2 x 128 x 64 x 128 + 2 x 128 x 128 x 64 + 2 x 128 x 64 x 64 + 6 x 128 x 64 x 128
  CHECK(work.forward.flops.count == 11'534'336);
  CHECK(work.backward_input.flops.count == 11'534'336 + 3 * 1'048'576);  // scores 2.5 times
  CHECK(work.backward_weight.flops.count == 11'534'336 - 2'097'152);     // scores have no weights
  TransformerOptions kept = tokens(128);
  kept.flash_attention = false;
  const LayerWork whole = *profile_of(kLlama, kept).model.profile.measurements[0].layers[1].work;
  CHECK(whole.forward.flops.count == 11'534'336 + 2'097'152);
  CHECK(whole.backward_input.flops.count == whole.forward.flops.count + 4'194'304);
}

TEST_CASE("activations are those of Korthikanti et al. 2022 without dropout") {
  // Equation 1, s b h (34 + 5 a s / h), less the masks of the hidden states (2) and of the softmax
  // (3 a s / h): s b h (32 + 2 a s / h).
  TransformerOptions options = tokens(128, 2);
  options.flash_attention = false;
  const auto kept = [&] {
    return profile_of(kGpt2, options).model.profile.measurements[0].layers[1].activation.count;
  };
  constexpr std::int64_t sbh = 16'384;  // 128 x 2 x 64
  constexpr std::int64_t ratio = 8;     // 4 x 128 / 64
  CHECK(kept() == sbh * (32 + 2 * ratio));
  // Equation 2, s b h (10 + 24 / t + 5 a s / (h t)), less the same.
  options.tensor_parallel = 2;
  CHECK(kept() == sbh * (8 + 24 / 2 + 2 * ratio / 2));
  // Section 4.2.2, s b h / t (34 + 5 a s / h), less the same.
  options.sequence_parallel = true;
  CHECK(kept() == sbh * (32 + 2 * ratio) / 2);
}

TEST_CASE("what is written reads back, with its comments passed over") {
  TransformerOptions options = tokens(64);
  SUBCASE("of one device") {}
  SUBCASE("of groups that share layers") { options.tensor_parallel = 2; }
  SUBCASE("of groups that share experts") { options.expert_parallel = 2; }
  const TransformerProfile profile = profile_of(kQwenMoe, options);
  const std::string text = profile_yaml(profile.model, profile.comments);
  CHECK(text.find("  # ") != std::string::npos);
  const auto read = parse_profile(test::text_source("p.yaml", text));
  REQUIRE(read);
  CHECK(profile_yaml(*read) == profile_yaml(profile.model));
  CHECK(read->profile.dtype == NumberFormat::bf16);
  CHECK(read->profile.group == profile.model.profile.group);
  CHECK(read->profile.measurements[0].batch == profile.model.profile.measurements[0].batch);
  const std::vector<LayerCosts>& costs = read->profile.measurements[0].layers;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    CAPTURE(i);
    CHECK_FALSE(costs[i].timed);
    CHECK(costs[i].work == profile.model.profile.measurements[0].layers[i].work);
  }
}

}  // namespace
}  // namespace plumbline
