// Attention of all heads, a block of queries at a time.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "calibrate/cpu/kernels.h"

namespace plumbline::cpu {

struct AttentionShape {
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  std::int64_t features = 0;
  std::int64_t heads = 1;
  bool causal = true;
};

/// softmax(Q K^T / sqrt(features / heads)) V, from qkv [samples, tokens, 3 features].
class Attention {
 public:
  explicit Attention(const AttentionShape& shape);

  /// Writes context [samples, tokens, features] and logsumexp [samples, heads, tokens].
  void forward(float* context, float* logsumexp, const float* qkv);
  void backward(float* qkv_gradient, const float* context_gradient, const float* qkv,
                const float* logsumexp);

 private:
  struct Head;
  struct Block;

  Block block_at(std::int64_t first) const;
  /// The scores of a block.
  void score(const Head& head, const Block& block);

  AttentionShape shape_;
  std::int64_t head_size_;
  float score_factor_;
  std::int64_t block_rows_;
  Scratch probabilities_;  ///< Of one block; scores at first.
  Scratch gradients_;      ///< Of the same block.
};

}  // namespace plumbline::cpu
