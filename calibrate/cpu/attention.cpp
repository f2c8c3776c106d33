// For each sample, head and block of queries: small products, and a softmax of each row.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/attention.h"

#include <algorithm>
#include <cmath>

#include "calibrate/cpu/gemm.h"

namespace plumbline::cpu {

/// The positions of the vectors of one head of one sample. The vectors of tokens are a stride
/// apart.
struct Attention::Head {
  const float* q;
  const float* k;
  const float* v;
  std::int64_t stride;
};

/// Queries [first, end), and the number of keys that any of them sees.
struct Attention::Block {
  std::int64_t first;
  std::int64_t end;
  std::int64_t keys;
  bool causal;

  std::int64_t rows() const { return end - first; }
  std::int64_t seen(std::int64_t row) const { return causal ? first + row + 1 : keys; }
};

namespace {

/// Scores of a block and their gradients stay in the cache; few rows make slow products.
constexpr std::int64_t kElementsOfBlock = std::int64_t{64} << 10U;
constexpr std::int64_t kFewestRows = 16;
/// More rows would compute more scores that causal attention discards.
constexpr std::int64_t kMaxRows = 64;

std::int64_t rows_of_block(std::int64_t tokens) {
  return std::min(tokens, std::clamp(kElementsOfBlock / tokens, kFewestRows, kMaxRows));
}

}  // namespace

Attention::Attention(const AttentionShape& shape)
    : shape_(shape),
      head_size_(shape.features / shape.heads),
      score_factor_(static_cast<float>(1 / std::sqrt(static_cast<double>(head_size_)))),
      block_rows_(rows_of_block(shape.tokens)),
      probabilities_(block_rows_ * shape.tokens),
      gradients_(block_rows_ * shape.tokens) {}

Attention::Block Attention::block_at(std::int64_t first) const {
  const std::int64_t end = std::min(first + block_rows_, shape_.tokens);
  return {first, end, shape_.causal ? end : shape_.tokens, shape_.causal};
}

void Attention::score(const Head& head, const Block& block) {
  multiply({block.rows(), block.keys, head_size_},
           {head.q + block.first * head.stride, head.stride}, {head.k, head.stride, true},
           {probabilities_.data(), block.keys, 0, score_factor_});
}

void Attention::forward(float* context, float* logsumexp, const float* qkv) {
  const std::int64_t stride = 3 * shape_.features;
  for (std::int64_t s = 0; s < shape_.samples; ++s) {
    for (std::int64_t h = 0; h < shape_.heads; ++h) {
      const float* q = qkv + s * shape_.tokens * stride + h * head_size_;
      const Head head{q, q + shape_.features, q + 2 * shape_.features, stride};
      float* head_context = context + s * shape_.tokens * shape_.features + h * head_size_;
      float* head_logsumexp = logsumexp + (s * shape_.heads + h) * shape_.tokens;
      for (std::int64_t first = 0; first < shape_.tokens; first += block_rows_) {
        const Block block = block_at(first);
        score(head, block);
        for (std::int64_t r = 0; r < block.rows(); ++r) {
          float* row = probabilities_.data() + r * block.keys;
          head_logsumexp[first + r] = static_cast<float>(softmax(row, block.seen(r)));
          std::fill(row + block.seen(r), row + block.keys, 0.0F);
        }
        multiply({block.rows(), head_size_, block.keys}, {probabilities_.data(), block.keys},
                 {head.v, stride}, {head_context + first * shape_.features, shape_.features});
      }
    }
  }
}

void Attention::backward(float* qkv_gradient, const float* context_gradient, const float* qkv,
                         const float* logsumexp) {
  const std::int64_t stride = 3 * shape_.features;
  const std::int64_t last = (shape_.tokens - 1) / block_rows_ * block_rows_;
  for (std::int64_t s = 0; s < shape_.samples; ++s) {
    for (std::int64_t h = 0; h < shape_.heads; ++h) {
      const std::int64_t at = s * shape_.tokens * stride + h * head_size_;
      const float* q = qkv + at;
      const Head head{q, q + shape_.features, q + 2 * shape_.features, stride};
      float* q_gradient = qkv_gradient + at;
      float* k_gradient = q_gradient + shape_.features;
      float* v_gradient = k_gradient + shape_.features;
      const float* head_logsumexp = logsumexp + (s * shape_.heads + h) * shape_.tokens;
      // From the last block on: it sees all keys, so it writes the sums to which the others add.
      for (std::int64_t first = last; first >= 0; first -= block_rows_) {
        const Block block = block_at(first);
        const float keep = first == last ? 0 : 1;
        const Operand block_gradient{
            context_gradient + (s * shape_.tokens + first) * shape_.features + h * head_size_,
            shape_.features};
        score(head, block);
        multiply({block.rows(), block.keys, head_size_}, block_gradient, {head.v, stride, true},
                 {gradients_.data(), block.keys});
        for (std::int64_t r = 0; r < block.rows(); ++r) {
          float* row = probabilities_.data() + r * block.keys;
          float* row_gradient = gradients_.data() + r * block.keys;
          recompute_softmax(row, head_logsumexp[first + r], block.seen(r));
          softmax_gradient(row_gradient, row, score_factor_, block.seen(r));
          std::fill(row + block.seen(r), row + block.keys, 0.0F);
          std::fill(row_gradient + block.seen(r), row_gradient + block.keys, 0.0F);
        }
        multiply({block.rows(), head_size_, block.keys}, {gradients_.data(), block.keys},
                 {head.k, stride}, {q_gradient + first * stride, stride});
        multiply({block.keys, head_size_, block.rows()}, {gradients_.data(), block.keys, true},
                 {head.q + first * stride, stride}, {k_gradient, stride, keep});
        multiply({block.keys, head_size_, block.rows()}, {probabilities_.data(), block.keys, true},
                 block_gradient, {v_gradient, stride, keep});
      }
    }
  }
}

}  // namespace plumbline::cpu
