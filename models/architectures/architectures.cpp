// One row for each architecture.
//
// SPDX-License-Identifier: MIT
#include "models/architectures/architectures.h"

#include <algorithm>

#include "models/architectures/deepseek.h"
#include "models/architectures/gated_experts.h"
#include "models/architectures/gemma.h"
#include "models/architectures/grouped_attention.h"
#include "models/architectures/hybrids.h"

namespace plumbline {
namespace {

/// A reader of blocks that a few facts describe.
template <const GroupedFacts& Facts>
void grouped(ConfigFile& file, TransformerShape& shape) {
  read_grouped(file, shape, Facts);
}

constexpr BiasKey kNoBias{"attention_bias", false};

// What configuration_FAMILY.py and modeling_FAMILY.py of Hugging Face Transformers have; MiMo's are
// beside its weights.
constexpr GroupedFacts kMimo{.heads = {8, 0}, .input_bias = {"", true}};
constexpr GroupedFacts kGlm{.heads = {2, 128}, .input_bias = {"attention_bias", true}};
constexpr GroupedFacts kGlm4{
    .heads = {2, 128}, .input_bias = {"attention_bias", true}, .norms_behind = 1};
constexpr GroupedFacts kPhi3{.windows = WindowBlocks::all};
/// Its norms are behind attention and MLP, and cost as much as in front.
constexpr GroupedFacts kOlmo2{
    .input_bias = kNoBias, .output_bias = kNoBias, .query_key_norm = true, .whole_norms = true};
constexpr GroupedFacts kOlmo3{.input_bias = kNoBias,
                              .output_bias = kNoBias,
                              .query_key_norm = true,
                              .whole_norms = true,
                              .windows = WindowBlocks::but_each_fourth,
                              .window = 4096};
constexpr GroupedFacts kGranite{
    .input_bias = kNoBias, .output_bias = kNoBias, .mlp_bias = {"mlp_bias", false}};
constexpr GroupedFacts kHunyuan{
    .input_bias = kNoBias, .output_bias = kNoBias, .query_key_norm = true};
constexpr BiasKey kErnieBias{"use_bias", false};
constexpr GroupedFacts kErnie{.tied = true,
                              .heads = {2, 128},
                              .input_bias = kErnieBias,
                              .output_bias = kErnieBias,
                              .mlp_bias = kErnieBias};
constexpr GroupedFacts kSeed{.heads = {8, 128},
                             .input_bias = {"attention_bias", true},
                             .output_bias = {"attention_out_bias", false},
                             .mlp_bias = {"mlp_bias", false}};
constexpr GroupedFacts kGemma{
    .tied = true, .heads = {0, 256}, .input_bias = kNoBias, .output_bias = kNoBias};
constexpr GroupedFacts kSmol{
    .tied = true, .heads = {4, 0}, .input_bias = kNoBias, .output_bias = kNoBias};

}  // namespace

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> all = {
      {"gpt2"},
      {"llama"},
      {"mistral"},
      {"mixtral"},
      {"qwen2"},
      {"qwen3"},
      {"qwen3_moe"},
      {"deepseek_v2"},
      {"deepseek_v3"},
      {"nemotron"},
      {"starcoder2"},
      {"falcon"},
      {"gpt_neox"},
      {"phi"},
      {"kimi_k2", nullptr, "deepseek_v3"},
      {"kimi_k25", nullptr, "deepseek_v3"},
      {"qwen3_vl", nullptr, "qwen3"},
      {"qwen3_vl_text", nullptr, "qwen3"},
      {"qwen3_vl_moe", nullptr, "qwen3_moe"},
      {"qwen3_vl_moe_text", nullptr, "qwen3_moe"},
      {"gpt_oss", read_gpt_oss},
      {"llama4", read_llama4},
      {"llama4_text", read_llama4},
      {"gemma", grouped<kGemma>},
      {"gemma2", read_gemma2},
      {"gemma3", read_gemma3},
      {"gemma3_text", read_gemma3},
      {"gemma4", read_gemma4},
      {"gemma4_text", read_gemma4},
      {"deepseek_v32", read_deepseek_v32},
      {"glm_moe_dsa", read_deepseek_v32},
      {"deepseek_v4", read_deepseek_v4},
      {"deepseek_ref", read_deepseek_v4},
      {"glm", grouped<kGlm>},
      {"glm4", grouped<kGlm4>},
      {"glm4_moe", read_glm4_moe},
      {"minimax_m2", read_minimax_m2},
      {"minimax_m3", read_minimax_m3},
      {"minimax_m3_vl", read_minimax_m3},
      {"minimax_m3_vl_text", read_minimax_m3},
      {"mimo", grouped<kMimo>},
      {"mimo_v2_flash", read_mimo_v2_flash},
      {"kimi_linear", read_kimi_linear},
      {"kimi_k3", read_kimi_linear},
      {"qwen2_moe", read_qwen2_moe},
      {"qwen3_next", read_qwen3_next},
      {"qwen3_5", read_qwen3_next},
      {"qwen3_5_text", read_qwen3_next},
      {"qwen3_5_moe", read_qwen3_next},
      {"qwen3_5_moe_text", read_qwen3_next},
      {"nemotron-nas", read_nemotron_nas},
      {"nemotron_h", read_nemotron_h},
      {"phi3", grouped<kPhi3>},
      {"olmo2", grouped<kOlmo2>},
      {"olmo3", grouped<kOlmo3>},
      {"olmoe", read_olmoe},
      {"mpt", read_mpt},
      {"granite", grouped<kGranite>},
      {"granitemoe", read_granite_moe},
      {"granitemoeshared", read_granite_moe},
      {"hunyuan_v1_dense", grouped<kHunyuan>},
      {"hunyuan_v1_moe", read_hunyuan_moe},
      {"ernie4_5", grouped<kErnie>},
      {"ernie4_5_moe", read_ernie_moe},
      {"seed_oss", grouped<kSeed>},
      {"smollm3", grouped<kSmol>},
      {"bailing_moe", read_bailing_moe},
      {"bailing_moe_v2", read_bailing_moe},
      {"step3p5", read_step3p7},
      {"step3p7", read_step3p7},
  };
  return all;
}

const Architecture* find_architecture(std::string_view name) {
  const auto found = std::find_if(architectures().begin(), architectures().end(),
                                  [&](const Architecture& known) { return known.name == name; });
  return found == architectures().end() ? nullptr : &*found;
}

}  // namespace plumbline
