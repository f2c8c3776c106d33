// The costs of a transformer's layer: each number as a sum of formulas.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/saturating_count.h"

namespace plumbline {

/// One summand of a cost.
struct Term {
  std::string what;     ///< "queries, keys and values".
  std::string formula;  ///< In the symbols of symbol_lines().
  SaturatingCount value;
  bool is_split = false;    ///< The devices of an expert-parallel group hold different ones.
  SaturatingCount again{};  ///< Of kept bytes, what selective recomputation makes again.
};

/// One summand of the forward's FLOPs; the backward's follow from it.
struct WorkTerm {
  Term forward;
  std::int64_t input_halves = 2;  ///< Of the backward for the input, in halves of the forward.
  bool has_weights = true;        ///< The backward for the weights takes as many as the forward.
  bool in_fp8 = false;
};

/// The costs of one layer on one device of a tensor-parallel group, for one micro-batch.
/// Activations are those of Korthikanti et al. 2022 ("Reducing Activation Recomputation in Large
/// Transformer Models"), section 4.1: every input of a matrix product, of a norm and of a nonlinear
/// function, and of dropout a mask of a byte a number, but for one within flash attention. The
/// layer's own input is not among them, its output is: the next norm keeps it. Tensor parallelism
/// divides what their section 4.2.1 divides, sequence parallelism the rest (4.2.2), but for the
/// tokens that experts get where they are divided, too. Of latent attention every device of the
/// group compresses all tokens.
struct LayerDerivation {
  /// What it is: "embedding", "block", "moe_block", "attention", "mlp", "moe", "mtp", "head".
  std::string role;
  /// Layers of one kind are alike: its role, with a prefix where blocks differ ("sliding_block").
  std::string kind;
  std::size_t block_kind = 0;    ///< The place of its block's kind, where blocks differ.
  std::int64_t block = -1;       ///< Its block; -1 = none.
  bool is_part = false;          ///< Its block has another layer.
  std::vector<Term> parameters;  ///< Numbers, not bytes.
  std::vector<WorkTerm> flops;
  std::vector<Term> kept;               ///< Bytes from the forward to the backward.
  SaturatingCount recompute_flops;      ///< To make again what selective recomputation does:
  SaturatingCount recompute_fp8_flops;  ///< of these in fp8;
  SaturatingCount again_reads;        ///< bytes that are moved for it, besides twice what it makes;
  SaturatingCount again_all_reduced;  ///< and what is sent for it, as in the forward.
  SaturatingCount again_gathered;
  SaturatingCount again_exchanged;
  SaturatingCount again_expert_gathered;
  SaturatingCount again_keys_and_values;
  SaturatingCount again_exchanged_heads;
  SaturatingCount dropped;            ///< Numbers that dropout passes over, forward and backward.
  SaturatingCount idle_parameters;    ///< Experts that a token does not use.
  SaturatingCount borrowed;           ///< Parameters that are another layer's: a tied head's copy.
  SaturatingCount output;             ///< Bytes.
  SaturatingCount forward_traffic;    ///< Bytes read from and written to memory.
  SaturatingCount input_traffic;      ///< By the backward for the input.
  SaturatingCount weight_traffic;     ///< By the backward for the weights.
  SaturatingCount all_reduced;        ///< Bytes that the forward all-reduces over the group.
  SaturatingCount input_all_reduced;  ///< And the backward for the input.
  SaturatingCount gathered;           ///< Bytes that the forward all-gathers or reduce-scatters.
  SaturatingCount input_gathered;     ///< And the backward for the input.
  SaturatingCount exchanged;  ///< Bytes of tokens on their way to experts and back, in each of
                              ///< forward and backward for the input: a share stays.
  SaturatingCount expert_gathered;  ///< Bytes that devices which divide experts gather in front of
                                    ///< them or scatter behind, in each of these passes.
  Term keys_and_values;  ///< Bytes of those of all devices that share a sample: the forward
                         ///< gathers them, the backward for the input again, and scatters
                         ///< their gradients.
  Term exchanged_heads;  ///< Bytes that each of them exchanges for those of other heads, in each of
                         ///< forward and backward for the input: a share stays.
};

/// Two layers as one: a block of attention and MLP, unless its role is set.
LayerDerivation joined(LayerDerivation first, const LayerDerivation& second);

SaturatingCount sum(const std::vector<Term>& terms);
/// The bytes of kept terms that selective recomputation makes again.
SaturatingCount recomputation(const std::vector<Term>& kept);
SaturatingCount forward_flops(const LayerDerivation& layer);
SaturatingCount input_flops(const LayerDerivation& layer);
SaturatingCount weight_flops(const LayerDerivation& layer);
/// The part of each of the three that is in fp8: products with weights.
SaturatingCount fp8_flops(const LayerDerivation& layer);

}  // namespace plumbline
