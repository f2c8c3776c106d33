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

/// Queries [first, end), and the keys [from, to) that any of them sees.
struct Attention::Block {
  std::int64_t first;
  std::int64_t end;
  std::int64_t from;
  std::int64_t to;
  bool causal;
  std::int64_t window;

  std::int64_t rows() const { return end - first; }
  std::int64_t keys() const { return to - from; }
  /// The keys [begin, end) that a query sees, counted from `from` on.
  std::int64_t seen_begin(std::int64_t row) const {
    return window > 0 ? std::max<std::int64_t>(first + row + 1 - window - from, 0) : 0;
  }
  std::int64_t seen_end(std::int64_t row) const { return causal ? first + row + 1 - from : keys(); }
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

/// Sets what a query does not see to zero.
void clear_unseen(float* row, std::int64_t begin, std::int64_t end, std::int64_t keys) {
  std::fill(row, row + begin, 0.0F);
  std::fill(row + end, row + keys, 0.0F);
}

/// Sets `columns` of each of `rows` rows to zero.
void clear_columns(float* first, std::int64_t columns, std::int64_t stride, std::int64_t rows) {
  for (std::int64_t r = 0; r < rows; ++r) std::fill_n(first + r * stride, columns, 0.0F);
}

}  // namespace

Attention::Attention(const AttentionShape& shape)
    : shape_(shape),
      score_factor_(static_cast<float>(1 / std::sqrt(static_cast<double>(shape.widths.head_size)))),
      block_rows_(rows_of_block(shape.tokens)),
      probabilities_(block_rows_ * shape.tokens),
      gradients_(block_rows_ * shape.tokens) {}

Attention::Block Attention::block_at(std::int64_t first) const {
  const std::int64_t end = std::min(first + block_rows_, shape_.tokens);
  const std::int64_t from =
      shape_.window > 0 ? std::max<std::int64_t>(first + 1 - shape_.window, 0) : 0;
  return {first, end, from, shape_.causal ? end : shape_.tokens, shape_.causal, shape_.window};
}

Attention::Head Attention::head_at(const float* qkv, std::int64_t sample, std::int64_t head) const {
  const AttentionWidths& widths = shape_.widths;
  const float* row = qkv + sample * shape_.tokens * widths.qkv();
  const float* k = row + widths.queries() + head / widths.sharing() * widths.head_size;
  return {row + head * widths.head_size, k, k + widths.keys(), widths.qkv()};
}

void Attention::score(const Head& head, const Block& block) {
  multiply({block.rows(), block.keys(), shape_.widths.head_size},
           {head.q + block.first * head.stride, head.stride},
           {head.k + block.from * head.stride, head.stride, true},
           {probabilities_.data(), block.keys(), 0, score_factor_});
}

void Attention::forward(float* context, float* logsumexp, const float* qkv) {
  const AttentionWidths& widths = shape_.widths;
  const std::int64_t size = widths.head_size;
  for (std::int64_t s = 0; s < shape_.samples; ++s) {
    for (std::int64_t h = 0; h < widths.heads; ++h) {
      const Head head = head_at(qkv, s, h);
      float* head_context = context + s * shape_.tokens * widths.queries() + h * size;
      float* head_logsumexp = logsumexp + (s * widths.heads + h) * shape_.tokens;
      for (std::int64_t first = 0; first < shape_.tokens; first += block_rows_) {
        const Block block = block_at(first);
        score(head, block);
        for (std::int64_t r = 0; r < block.rows(); ++r) {
          float* row = probabilities_.data() + r * block.keys();
          const std::int64_t begin = block.seen_begin(r);
          const std::int64_t end = block.seen_end(r);
          head_logsumexp[first + r] = static_cast<float>(softmax(row + begin, end - begin));
          clear_unseen(row, begin, end, block.keys());
        }
        multiply({block.rows(), size, block.keys()}, {probabilities_.data(), block.keys()},
                 {head.v + block.from * head.stride, head.stride},
                 {head_context + first * widths.queries(), widths.queries()});
      }
    }
  }
}

void Attention::backward(float* qkv_gradient, const float* context_gradient, const float* qkv,
                         const float* logsumexp) {
  const AttentionWidths& widths = shape_.widths;
  const std::int64_t size = widths.head_size;
  const std::int64_t last = (shape_.tokens - 1) / block_rows_ * block_rows_;
  for (std::int64_t s = 0; s < shape_.samples; ++s) {
    for (std::int64_t h = 0; h < widths.heads; ++h) {
      const Head head = head_at(qkv, s, h);
      const std::int64_t stride = head.stride;
      float* q_gradient = qkv_gradient + (head.q - qkv);
      float* k_gradient = qkv_gradient + (head.k - qkv);
      float* v_gradient = qkv_gradient + (head.v - qkv);
      const float* head_logsumexp = logsumexp + (s * widths.heads + h) * shape_.tokens;
      const bool is_first_of_keys = h % widths.sharing() == 0;
      const bool sees_all = shape_.window == 0;
      if (is_first_of_keys && !sees_all) {
        clear_columns(k_gradient, size, stride, shape_.tokens);
        clear_columns(v_gradient, size, stride, shape_.tokens);
      }
      // From the last block on: without a window it sees all keys, so that of the first head it
      // writes the sums to which the others add.
      for (std::int64_t first = last; first >= 0; first -= block_rows_) {
        const Block block = block_at(first);
        const float keep = is_first_of_keys && sees_all && first == last ? 0 : 1;
        const Operand block_gradient{
            context_gradient + (s * shape_.tokens + first) * widths.queries() + h * size,
            widths.queries()};
        const std::int64_t from = block.from * stride;
        score(head, block);
        multiply({block.rows(), block.keys(), size}, block_gradient, {head.v + from, stride, true},
                 {gradients_.data(), block.keys()});
        for (std::int64_t r = 0; r < block.rows(); ++r) {
          float* row = probabilities_.data() + r * block.keys();
          float* row_gradient = gradients_.data() + r * block.keys();
          const std::int64_t begin = block.seen_begin(r);
          const std::int64_t end = block.seen_end(r);
          recompute_softmax(row + begin, head_logsumexp[first + r], end - begin);
          softmax_gradient(row_gradient + begin, row + begin, score_factor_, end - begin);
          clear_unseen(row, begin, end, block.keys());
          clear_unseen(row_gradient, begin, end, block.keys());
        }
        multiply({block.rows(), size, block.keys()}, {gradients_.data(), block.keys()},
                 {head.k + from, stride}, {q_gradient + first * stride, stride});
        multiply({block.keys(), size, block.rows()}, {gradients_.data(), block.keys(), true},
                 {head.q + first * stride, stride}, {k_gradient + from, stride, keep});
        multiply({block.keys(), size, block.rows()}, {probabilities_.data(), block.keys(), true},
                 block_gradient, {v_gradient + from, stride, keep});
      }
    }
  }
}

}  // namespace plumbline::cpu
