// Modules that selective recomputation runs again: what each frees, and which of its ops run.
//
// SPDX-License-Identifier: MIT
#include "models/import/recompute_modules.h"

#include <doctest/doctest.h>

#include <cctype>
#include <map>

#include "models/import/transformer_profile.h"
#include "models/kernels/launches.h"
#include "models/profile/estimate.h"
#include "tests/support/transformers.h"

namespace plumbline {
namespace {

using test::kDeepSeek;
using test::kLlama;
using test::kQwenMoe;
using test::profile_of;
using test::shape_of;
using test::tokens;
using enum RecomputeModule;

constexpr RecomputeModule kAll[] = {core_attn, layernorm, mla_up_proj, moe_act,
                                    mlp_act,   mlp,       moe,         shared_experts};

/// A letter for each op; a capital where it runs again.
std::string letters(const LayerOps& ops) {
  constexpr std::string_view of_kind = "lanrs+uopeix";  // by LayerOp::Shape
  std::string text;
  for (const LayerOp& op : ops.ops) {
    const char letter = of_kind[op.shape.index()];
    text += op.again ? static_cast<char>(std::toupper(letter)) : letter;
  }
  return text;
}

const LayerCosts& layer(const TransformerProfile& profile, std::size_t at) {
  return profile.model.profile.measurements[0].layers[at];
}

TransformerOptions options_with(RecomputeModules modules) {
  TransformerOptions options = tokens(64, 3);
  options.recompute_modules = modules;
  return options;
}

std::int64_t freed(const LayerCosts& costs) {
  return costs.selective ? costs.selective->activation.count : 0;
}

TEST_CASE("a module frees what it keeps but its input, and all of its ops run again") {
  // Of the first block, and of one with experts.
  constexpr std::int64_t e = 2, T = 192, h = 32, f = 96, x = 24, y = 48, E = 8, k = 2, a = 4;
  constexpr std::int64_t query = 12, value = 6;
  struct Expected {
    std::int64_t dense, sparse;
    std::string dense_ops, sparse_ops;
  };
  const std::string attention = "nlnllnlral+";
  const std::map<RecomputeModule, Expected> expected = {
      {core_attn, {4 * T * a, 4 * T * a, "nlnllnlrAl+nlsl+", "nlnllnlrAl+nloplslplslu+"}},
      {layernorm, {2 * e * T * h, 2 * e * T * h, "Nlnllnlral+Nlsl+", "Nlnllnlral+Nloplslplslu+"}},
      {mla_up_proj,
       {e * T * a * (2 * query + value), e * T * a * (2 * query + value), "nlnLlnLRal+nlsl+",
        "nlnLlnLRal+nloplslplslu+"}},
      {moe_act, {0, 2 * e * k * T * x, attention + "nlsl+", attention + "nloplSlplslu+"}},
      {mlp_act, {2 * e * T * f, 2 * e * T * y, attention + "nlSl+", attention + "nloplslplSlu+"}},
      {mlp, {4 * e * T * f, 0, attention + "nLSL+", attention + "nloplslplslu+"}},
      {moe,
       {0, 4 * T * E + 2 * e * k * T * h + 4 * e * k * T * x + 4 * e * T * y, attention + "nlsl+",
        attention + "nLOPLSLPLSLU+"}},
      {shared_experts, {0, 4 * e * T * y, attention + "nlsl+", attention + "nloplslpLSLu+"}}};
  for (const RecomputeModule module : kAll) {
    CAPTURE(kRecomputeModules[static_cast<std::size_t>(module)]);
    const TransformerProfile profile = profile_of(kDeepSeek, options_with({module}));
    CHECK(freed(layer(profile, 1)) == expected.at(module).dense);
    CHECK(freed(layer(profile, 2)) == expected.at(module).sparse);
    CHECK(letters(*layer(profile, 1).ops) == expected.at(module).dense_ops);
    CHECK(letters(*layer(profile, 2).ops) == expected.at(module).sparse_ops);
    // Neither the embedding nor the head and its loss belong to a module.
    CHECK_FALSE(layer(profile, 0).selective);
    CHECK_FALSE(layer(profile, 4).selective);
  }
}

TEST_CASE("modules within another free nothing twice") {
  const auto of = [](RecomputeModules modules) {
    return freed(layer(profile_of(kDeepSeek, options_with(modules)), 2));
  };
  CHECK(of({moe, moe_act, shared_experts, mlp_act}) == of({moe}));
  CHECK(of({moe_act, shared_experts}) == of({moe_act}) + of({shared_experts}));
  CHECK(of({core_attn, layernorm, mla_up_proj, moe}) ==
        of({core_attn}) + of({layernorm}) + of({mla_up_proj}) + of({moe}));
}

TEST_CASE("all modules free at least what is freed where none are chosen") {
  RecomputeModules all;
  for (const RecomputeModule module : kAll) all.insert(module);
  for (const std::string& config : {kLlama, kQwenMoe, kDeepSeek}) {
    for (const bool flash : {true, false}) {
      for (const bool fp8 : {true, false}) {
        TransformerOptions options = tokens(64, 3);
        options.flash_attention = flash;
        options.fp8_linear = fp8;
        options.dropout = 0.1;
        const TransformerProfile usual = profile_of(config, options);
        options.recompute_modules = all;
        const TransformerProfile chosen = profile_of(config, options);
        const std::size_t head = usual.model.graph.size() - 1;
        for (std::size_t i = 0; i < head; ++i)
          CHECK(freed(layer(chosen, i)) >= freed(layer(usual, i)));
        // What stays: inputs of the modules, outputs, and masks of residuals.
        CHECK(freed(layer(chosen, 1)) < layer(chosen, 1).activation.count);
      }
    }
  }
}

TEST_CASE("latent attention without compressed queries makes them of the tokens") {
  std::string config = kDeepSeek;
  config.replace(config.find("\"q_lora_rank\": 12"), 17, "\"q_lora_rank\": null");
  const TransformerProfile usual = profile_of(config, tokens(64, 3));
  const TransformerProfile chosen = profile_of(config, options_with({mla_up_proj}));
  CHECK(letters(*layer(chosen, 1).ops) == "nLlnLRal+nlsl+");
  CHECK(letters(*layer(usual, 1).ops) == "NllNLRal+NlSl+");
  CHECK(freed(layer(chosen, 1)) == 2 * 192 * 4 * (2 * 12 + 6));
}

TEST_CASE("the time of a module is that of its kernels, its exchanges with them") {
  const KernelModel kernels({.traits = kernel_traits("h100-sxm"),
                             .peak = 989e12,
                             .fp8_peak = 0,
                             .memory_bandwidth = 3.35e12,
                             .link = 450e9,
                             .network = 50e9},
                            usual_stack());
  const KernelSetting setting{kernels, {}, {}, {}, 1};
  DeviceRoofline device;
  device.peak = {989'000'000'000'000};
  device.memory_bandwidth = {3'350'000'000'000};
  device.link_bandwidth = BytesPerSecond{450'000'000'000};
  for (const RecomputeModule module : kAll) {
    CAPTURE(kRecomputeModules[static_cast<std::size_t>(module)]);
    TransformerOptions options = options_with({module});
    options.tensor_parallel = 2;
    options.sequence_parallel = true;
    options.context_parallel = 2;
    options.expert_parallel = 4;
    TransformerProfile profile = profile_of(kDeepSeek, options);
    REQUIRE_FALSE(
        estimate_times(profile.model, {device, setting, usual_adam(NumberFormat::bf16)}, {}));
    for (const std::size_t at : {1, 2}) {
      const LayerCosts& costs = layer(profile, at);
      double computing_s = 0, sent_s = 0;
      for (const Kernel& kernel : launches_again(*costs.ops, usual_stack())) {
        const bool sends = std::holds_alternative<CollectiveKernel>(kernel);
        (sends ? sent_s : computing_s) += kernels.seconds(kernel);
      }
      const bool sends = sent_s > 0;
      CHECK(sends == (module == core_attn ||
                      (at == 1 ? module == mlp : module == moe || module == shared_experts)));
      if (!costs.selective) continue;
      // A stack hides some of what is sent, and the host may take longer than small kernels.
      const double again_s = seconds(costs.selective->forward.mean);
      CHECK(again_s >= computing_s);
      CHECK((costs.sent.again > 0) == sends);
      CHECK((costs.selective->work->link_traffic.count > 0) == sends);
    }
  }
}

TEST_CASE("a file says which modules it was made for, and a note which the model lacks") {
  const TransformerProfile profile = profile_of(kLlama, options_with({moe, mlp, mla_up_proj}));
  CHECK(profile.model.profile.provenance.at("recompute_modules") == "mla_up_proj, mlp, moe");
  CHECK(profile.uncounted.front() ==
        "no layer of the model has what is recomputed: mla_up_proj, moe");
  CHECK(profile_of(kLlama, options_with({mlp})).uncounted ==
        profile_of(kLlama, tokens(64, 3)).uncounted);
}

}  // namespace
}  // namespace plumbline
