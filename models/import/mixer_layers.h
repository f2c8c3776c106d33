// What a block mixes tokens by: attention of several kinds, and scans. Each as a layer.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "models/import/layer_builder.h"

namespace plumbline {

/// The mixers of blocks.
class MixerDeriver : protected LayerBuilder {
 public:
  MixerDeriver(const TransformerShape& shape, const TransformerOptions& options)
      : LayerBuilder(shape, options) {}

  /// The layer of the shape's mixer. Requires: it has one.
  LayerDerivation mixer() const;

 private:
  LayerDerivation plain_attention() const;
  /// In training keys and values are made of the compressed tokens, as queries are.
  LayerDerivation latent_attention() const;
  /// Latent attention over the keys that an index has chosen: tokens reach different ones, so all
  /// heads take the compressed keys as they are, and queries are brought to their size
  /// (DeepSeek-AI 2025, "DeepSeek-V3.2", section 2.1: multi-query mode).
  LayerDerivation sparse_latent_attention() const;
  LayerDerivation compressed_attention() const;
  LayerDerivation scan() const;
  LayerDerivation linear() const;

  /// Adds the matrices of latent attention.
  void add_latent_matrices(LayerDerivation& layer) const;
  /// Adds the compressed tokens that it keeps.
  void keep_compressed(LayerDerivation& layer) const;
  /// Adds what a model has besides: an index, a gate, small tensors, norms behind.
  void add_further(LayerDerivation& layer, SaturatingCount projected) const;
  void add_index(LayerDerivation& layer) const;
  void add_gate(LayerDerivation& layer, SaturatingCount projected) const;
  /// Adds the scores and their sums of heads with `query_size` and `value_size` numbers, over
  /// `pairs` halves of pairs that are not masked; where scores are kept, over all of `keys`.
  void add_scores(LayerDerivation& layer, const std::string& pairs_formula, SaturatingCount pairs,
                  SaturatingCount query_size, SaturatingCount value_size, std::int64_t keys) const;
  void add_scores_of_plain(LayerDerivation& layer) const;
  /// Adds a matrix of so many inputs and outputs.
  void add_matrix(LayerDerivation& layer, const std::string& what, std::int64_t inputs,
                  std::int64_t outputs) const;
  void keep(LayerDerivation& layer, const std::string& what, std::int64_t numbers) const;

  std::int64_t shared(std::int64_t whole) const { return whole / options_.tensor_parallel; }
};

}  // namespace plumbline
