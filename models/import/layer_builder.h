// The common parts of a transformer's layers, each added with all that it costs.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/import/layer_derivation.h"
#include "models/import/layer_symbols.h"

namespace plumbline {

/// Adds parts to layers, each with its parameters, its FLOPs, what it keeps and what it moves.
/// A class that knows the kinds of layers derives from it.
class LayerBuilder {
 protected:
  LayerBuilder(const TransformerShape& shape, const TransformerOptions& options);

  bool is_shared() const { return options_.tensor_parallel > 1; }
  bool is_exchanged() const { return options_.expert_parallel > 1; }
  bool has_shared() const { return shape_.shared_feed_forward > 0; }
  bool by_tokens() const { return options_.sequence_parallel; }
  /// The bytes of all tokens, as products take them and add them up.
  SaturatingCount whole_bytes() const { return n_.e * n_.T * n_.h; }
  /// The bytes of the tokens that a device keeps between products.
  SaturatingCount hidden_bytes() const { return n_.e * n_.R * n_.h; }
  /// The same of what goes from layer to layer.
  SaturatingCount stream_bytes() const { return shape_.streams * hidden_bytes(); }
  /// The share of `count` that selective recomputation makes again with a part: all or nothing.
  SaturatingCount again(const LayerPart& part, SaturatingCount count) const {
    return options_.makes_again(part) ? count : SaturatingCount{};
  }
  /// The symbol for the bytes of a number that linear layers multiply.
  std::string_view of_linear() const { return options_.fp8_linear ? "l" : "e"; }

  // ---- products, norms, and what MLPs keep ----

  /// A matrix of `count` numbers, and the product of every token with it.
  void add_product(LayerDerivation& layer, const std::string& what, const std::string& formula,
                   SaturatingCount count) const;
  void add_linear(LayerDerivation& layer, Term forward,
                  const LayerPart& part = layer_part::kNone) const;
  void add_norm(LayerDerivation& layer) const;
  void add_kept_tokens(LayerDerivation& layer, std::string what) const;
  /// The output of a norm for linear layers.
  void add_norm_output(LayerDerivation& layer, const LayerPart& part = layer_part::kNorm) const;
  void add_norm_output(LayerDerivation& layer, SaturatingCount of_number, std::string_view symbol,
                       const LayerPart& part = layer_part::kNorm) const;
  /// The tensors within an MLP, each of `numbers`: outputs of products, and what is made of these,
  /// the last of which is multiplied.
  /// `activation` is the part that makes the latter, `mlp` that of the products.
  void keep_inner(LayerDerivation& layer, std::string_view of, const std::string& formula,
                  SaturatingCount numbers, const LayerPart& activation, const LayerPart& mlp) const;

  // ---- what few models have ----

  void add_tensors(LayerDerivation& layer, const std::vector<SmallTensor>& tensors) const;
  /// Norms of hidden numbers behind what a mixer or an MLP makes: their inputs are kept.
  void add_norms_behind(LayerDerivation& layer, std::int64_t norms) const;
  /// The weights of residual streams, made of all of them: one for each to the layer's input, one
  /// for each of its output, and one for each pair (Xie et al. 2026, "mHC", section 4).
  void add_streams(LayerDerivation& layer) const;
  /// Adds what a mixer without attention keeps and moves.
  void finish_mixer(LayerDerivation& layer) const;

  // ---- attention ----

  /// Numbers of a token.
  struct Width {
    std::string formula;
    SaturatingCount value;
  };
  /// How often keys and values stand on the devices that share a sample.
  std::int64_t key_repeats() const { return options_.repeats_of_keys(n_.g.value()); }
  std::string keys_symbol() const;
  /// Queries, keys and values as attention takes them, repeated where it does so.
  void keep_heads(LayerDerivation& layer) const;
  /// Latent attention makes keys and values again from what is compressed, and queries where these
  /// are compressed, too. Its module also makes other queries, from the tokens.
  void recompute_heads(LayerDerivation& layer, bool has_queries) const;
  /// Adds the parts of attention behind its queries, keys and values. A head's keys have `of_key`
  /// numbers. The projection takes `projected` of a token; attention's own backward needs them,
  /// too.
  void finish_attention(LayerDerivation& layer, SaturatingCount of_key, Width projected) const;
  /// Adds the bytes that devices which share a sample send each other of one token: `keys`, or
  /// `exchanged` for those of other heads.
  void send_context(LayerDerivation& layer, const Term& keys, const Term& exchanged) const;

  // ---- dropout: Korthikanti et al. 2022, section 4.1; shared as their 4.2 says ----

  void drop_tokens(LayerDerivation& layer) const;
  void drop_residual(LayerDerivation& layer) const;

  // ---- what a layer moves ----

  /// Adds the traffic that all layers with products have: each kept tensor is written and read once
  /// in the forward, read once in either backward, and its gradient written and read once for the
  /// input and read once for the weights; the weights are read once in a pass, their gradient
  /// written.
  void finish(LayerDerivation& layer, SaturatingCount touched, SaturatingCount passing) const;
  /// Adds the work of a tensor-parallel group in front of its products and behind them: a tensor
  /// that is gathered or added up over the group is written and read besides. Behind a parallel
  /// block's MLP the group adds up attention with it, which is in no module.
  void share_products(LayerDerivation& layer, const LayerPart& part, bool in_front = true,
                      bool behind = true) const;

  const TransformerShape& shape_;
  const TransformerOptions& options_;
  DropoutRates dropout_;
  Symbols n_;

 private:
  /// Adds the FLOPs of linear layers to those that selective recomputation runs again.
  void run_again(LayerDerivation& layer, const LayerPart& part, SaturatingCount flops) const;
  std::int64_t inner_count() const;
  std::string inner_tensors() const;
  /// Forward and backward each read and write the tensor and move its mask; to keep: the mask.
  /// `again`: that selective recomputation makes it once more.
  void drop(LayerDerivation& layer, const std::string& what, std::string_view formula,
            SaturatingCount numbers, bool again) const;
  /// The softmax is kept for its own backward, and what is left of it for the product.
  void drop_scores(LayerDerivation& layer) const;
  /// All that goes out is written and read as it goes, and so are its gradients.
  void exchange_heads(LayerDerivation& layer, const Term& numbers) const;
  /// Keys and values of all tokens are written and read as they come, and in the backward their
  /// gradients as they go. Of one token: `numbers`.
  void gather_context(LayerDerivation& layer, const Term& numbers) const;
};

}  // namespace plumbline
