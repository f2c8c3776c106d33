// Attention of all heads, a block of queries at a time.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "calibrate/cpu/kernels.h"
#include "models/network/network.h"

namespace plumbline::cpu {

struct AttentionShape {
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  AttentionWidths widths;
  bool causal = true;
  std::int64_t window = 0;  ///< As in AttentionBlock.
};

/// softmax(Q K^T / sqrt(head size)) V, from qkv [samples, tokens, widths.qkv()].
class Attention {
 public:
  explicit Attention(const AttentionShape& shape);

  /// Writes context [samples, tokens, widths.queries()] and logsumexp [samples, heads, tokens].
  void forward(float* context, float* logsumexp, const float* qkv);
  void backward(float* qkv_gradient, const float* context_gradient, const float* qkv,
                const float* logsumexp);

 private:
  struct Head;
  struct Block;

  Block block_at(std::int64_t first) const;
  Head head_at(const float* qkv, std::int64_t sample, std::int64_t head) const;
  /// The scores of a block.
  void score(const Head& head, const Block& block);

  AttentionShape shape_;
  float score_factor_;
  std::int64_t block_rows_;
  Scratch probabilities_;  ///< Of one block; scores at first.
  Scratch gradients_;      ///< Of the same block.
};

}  // namespace plumbline::cpu
