// The modules of a transformer's layers that selective recomputation may run again.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace plumbline {

/// The modules of Megatron Core's --recompute-modules, by its names, and the activation of MLPs
/// that all tokens go through, which it does not offer. Of each module that runs again, its input
/// is kept and what it makes within itself is not.
enum class RecomputeModule : std::uint8_t {
  core_attn,       ///< Scores, softmax and their sums, from queries, keys and values.
  layernorm,       ///< The norms in front of attention and MLP.
  mla_up_proj,     ///< Latent attention's queries, keys and values, from what is compressed.
  moe_act,         ///< The activation of the experts.
  mlp_act,         ///< That of dense MLPs and of shared experts.
  mlp,             ///< A dense MLP.
  moe,             ///< Router, experts and shared experts, with the exchanges of tokens.
  shared_experts,  ///< Those alone.
};

inline constexpr std::array<std::string_view, 8> kRecomputeModules = {
    "core_attn", "layernorm", "mla_up_proj", "moe_act", "mlp_act", "mlp", "moe", "shared_experts"};

/// A set of them.
class RecomputeModules {
 public:
  constexpr RecomputeModules(std::initializer_list<RecomputeModule> modules = {}) {
    for (const RecomputeModule module : modules) insert(module);
  }

  constexpr void insert(RecomputeModule module) { bits_ |= bit(module); }
  constexpr bool holds(RecomputeModule module) const { return (bits_ & bit(module)) != 0; }
  constexpr bool meets(RecomputeModules other) const { return (bits_ & other.bits_) != 0; }

  friend constexpr bool operator==(RecomputeModules, RecomputeModules) = default;

 private:
  static constexpr std::uint32_t bit(RecomputeModule module) {
    return 1U << static_cast<std::uint32_t>(module);
  }

  std::uint32_t bits_ = 0;
};

/// Their names, in the order of kRecomputeModules.
inline std::vector<std::string_view> names_of(RecomputeModules modules) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < kRecomputeModules.size(); ++i) {
    if (modules.holds(static_cast<RecomputeModule>(i))) names.push_back(kRecomputeModules[i]);
  }
  return names;
}

/// A part of a layer: the modules that it belongs to, and whether it runs again where nobody chose
/// modules. That is what costs little: outputs of norms and nonlinear functions, their products,
/// unfused scores (Korthikanti et al. 2022, section 5), and the heads of latent attention
/// (DeepSeek-AI 2024, "DeepSeek-V3", section 3.2.3).
struct LayerPart {
  RecomputeModules modules;
  bool is_usual = false;
};

/// The parts that a layer's formulas and its ops name alike.
namespace layer_part {

using enum RecomputeModule;

inline constexpr LayerPart kNone{};
inline constexpr LayerPart kNorm{{layernorm}, true};
inline constexpr LayerPart kOtherNorm{{}, true};  ///< Of the head, and within a module.
inline constexpr LayerPart kCoreAttention{{core_attn}};
inline constexpr LayerPart kScores{{core_attn}, true};  ///< Where they are kept.
inline constexpr LayerPart kLatentHeads{{mla_up_proj}, true};
inline constexpr LayerPart kLatentQueries{{mla_up_proj}};  ///< Of tokens, not of compressed ones.
inline constexpr LayerPart kDenseActivation{{mlp_act, mlp}, true};
inline constexpr LayerPart kDenseMlp{{mlp}};
inline constexpr LayerPart kExpertActivation{{moe_act, moe}, true};
inline constexpr LayerPart kExperts{{moe}};
inline constexpr LayerPart kSharedActivation{{mlp_act, moe, shared_experts}, true};
inline constexpr LayerPart kSharedInput{{layernorm, moe, shared_experts}, true};  ///< In fp8.
inline constexpr LayerPart kSharedExperts{{moe, shared_experts}};

}  // namespace layer_part
}  // namespace plumbline
