// Attention as products with a softmax between them.
//
// SPDX-License-Identifier: MIT
#include <cmath>
#include <memory>

#include "calibrate/cuda/layers/attention.h"

namespace plumbline::cuda {
namespace {

/// The most bytes of scores in memory at a time.
constexpr std::int64_t kMaxScores = std::int64_t{256} << 20U;

/// The largest divisor of the batch whose scores take at most that; at least 1.
std::int64_t samples_at_a_time(std::int64_t batch, std::int64_t bytes_of_sample) {
  std::int64_t samples = batch;
  while (samples > 1 && (batch % samples != 0 || samples * bytes_of_sample > kMaxScores)) --samples;
  return samples;
}

/// The batch of a product is the heads or the samples, whichever are more; strides lead from one to
/// the next. Where heads share keys it is the samples, so that gradients of keys add up head by
/// head. The others are done one after the other. One softmax does all.
class UnfusedAttention : public Attention {
 public:
  UnfusedAttention(const AttentionBlock& settings, const LayerSite& site)
      : type_(site.type),
        batch_(site.batch),
        tokens_(site.layer.input.extents.front()),
        widths_(attention_widths(settings, site.layer.input.extents.back())),
        heads_(settings.heads),
        seen_{settings.causal, settings.window},
        samples_(samples_at_a_time(batch_, heads_ * tokens_ * tokens_ * bytes_of(type_))),
        by_samples_(samples_ > heads_ || widths_.sharing() > 1),
        probabilities_(site.scratch(samples_ * heads_ * tokens_ * tokens_)),
        gradient_(site.scratch(samples_ * heads_ * tokens_ * tokens_)) {
    // A head's place decides the alignment of its operands; all samples are like the first.
    for (std::int64_t i = 0; i < (by_samples_ ? heads_ : 1); ++i) {
      for (const CudaGemm& product :
           {scores(i, 0), context(i, 0, 0), probability_gradient(i, 0, 0), value_gradient(i, 0, 0),
            query_gradient(i, 0, 0), key_gradient(i, 0, 0)})
        prepare_gemm(site, product);
    }
  }

  void forward(const CudaQueue& queue, const AttentionTensors& of) const override {
    for (std::int64_t s = 0; s < batch_; s += samples_) {
      const CUdeviceptr qkv = qkv_of(of.qkv, s);
      const CUdeviceptr to = context_of(of.context, s);
      multiply_all(queue, [&](std::int64_t i) { return scores(i, qkv); });
      attention_softmax(queue, type_, probabilities_.data(), logsumexp_of(of.logsumexp, s),
                        samples_ * heads_, tokens_, seen_);
      multiply_all(queue, [&](std::int64_t i) { return context(i, to, qkv); });
    }
  }

  void backward(const CudaQueue& queue, const AttentionTensors& of, CUdeviceptr qkv_gradients,
                CUdeviceptr context_gradients) const override {
    for (std::int64_t s = 0; s < batch_; s += samples_) {
      const CUdeviceptr qkv = qkv_of(of.qkv, s);
      const CUdeviceptr to = qkv_of(qkv_gradients, s);
      const CUdeviceptr from = context_of(context_gradients, s);
      multiply_all(queue, [&](std::int64_t i) { return scores(i, qkv); });
      multiply_all(queue, [&](std::int64_t i) { return probability_gradient(i, from, qkv); });
      attention_softmax_gradient(queue, type_, probabilities_.data(), gradient_.data(),
                                 logsumexp_of(of.logsumexp, s), samples_ * heads_, tokens_, seen_);
      multiply_all(queue, [&](std::int64_t i) { return value_gradient(i, to, from); });
      multiply_all(queue, [&](std::int64_t i) { return query_gradient(i, to, qkv); });
      multiply_all(queue, [&](std::int64_t i) { return key_gradient(i, to, qkv); });
    }
  }

 private:
  using Operand = CudaGemm::Operand;

  // Tensors from a sample on.
  CUdeviceptr qkv_of(CUdeviceptr qkv, std::int64_t sample) const {
    return advanced(qkv, sample * tokens_ * widths_.qkv(), type_);
  }
  CUdeviceptr context_of(CUdeviceptr context, std::int64_t sample) const {
    return advanced(context, sample * tokens_ * widths_.queries(), type_);
  }
  CUdeviceptr logsumexp_of(CUdeviceptr logsumexp, std::int64_t sample) const {
    return advanced(logsumexp, sample * heads_ * tokens_, ElementType::fp32);
  }

  std::int64_t head_size() const { return widths_.head_size; }
  float score_factor() const {
    return static_cast<float>(1 / std::sqrt(static_cast<double>(head_size())));
  }

  /// The operand for head i of all samples, or for all heads of sample i. Rows are `stride`
  /// elements apart, samples `of_sample`, heads `of_head`.
  Operand operand(std::int64_t i, CUdeviceptr data, std::int64_t stride, std::int64_t of_sample,
                  std::int64_t of_head, bool turned = false) const {
    return {advanced(data, i * (by_samples_ ? of_head : of_sample), type_), stride,
            by_samples_ ? of_sample : of_head, turned};
  }
  /// Of the head of queries `i`, or of keys or values that it has, which begin at column `first`.
  Operand of_qkv(std::int64_t i, CUdeviceptr qkv, std::int64_t first, std::int64_t sharing,
                 bool turned = false) const {
    return operand(by_samples_ ? i / sharing : i, advanced(qkv, first, type_), widths_.qkv(),
                   tokens_ * widths_.qkv(), head_size(), turned);
  }
  Operand queries(std::int64_t i, CUdeviceptr qkv) const { return of_qkv(i, qkv, 0, 1); }
  Operand keys(std::int64_t i, CUdeviceptr qkv, bool turned = false) const {
    return of_qkv(i, qkv, widths_.queries(), widths_.sharing(), turned);
  }
  Operand values(std::int64_t i, CUdeviceptr qkv, bool turned = false) const {
    return of_qkv(i, qkv, widths_.queries() + widths_.keys(), widths_.sharing(), turned);
  }
  Operand of_context(std::int64_t i, CUdeviceptr context) const {
    return operand(i, context, widths_.queries(), tokens_ * widths_.queries(), head_size());
  }
  Operand square(std::int64_t i, const CudaScratch& scratch, bool turned = false) const {
    return operand(i, scratch.data(), tokens_, heads_ * tokens_ * tokens_, tokens_ * tokens_,
                   turned);
  }

  CudaGemm to_square(std::int64_t i, const Operand& a, const Operand& b, const CudaScratch& c,
                     float alpha) const {
    return {tokens_, tokens_, head_size(), together(), a, b, square(i, c), alpha, 0};
  }
  CudaGemm to_rows(const Operand& a, const Operand& b, const Operand& c, float alpha) const {
    return {tokens_, head_size(), tokens_, together(), a, b, c, alpha, 0};
  }

  CudaGemm scores(std::int64_t i, CUdeviceptr qkv) const {
    return to_square(i, queries(i, qkv), keys(i, qkv, true), probabilities_, score_factor());
  }
  CudaGemm context(std::int64_t i, CUdeviceptr context, CUdeviceptr qkv) const {
    return to_rows(square(i, probabilities_), values(i, qkv), of_context(i, context), 1);
  }
  CudaGemm probability_gradient(std::int64_t i, CUdeviceptr context_gradient,
                                CUdeviceptr qkv) const {
    return to_square(i, of_context(i, context_gradient), values(i, qkv, true), gradient_, 1);
  }
  CudaGemm value_gradient(std::int64_t i, CUdeviceptr qkv_gradient,
                          CUdeviceptr context_gradient) const {
    return added(i, to_rows(square(i, probabilities_, true), of_context(i, context_gradient),
                            values(i, qkv_gradient), 1));
  }
  CudaGemm query_gradient(std::int64_t i, CUdeviceptr qkv_gradient, CUdeviceptr qkv) const {
    return to_rows(square(i, gradient_), keys(i, qkv), queries(i, qkv_gradient), score_factor());
  }
  CudaGemm key_gradient(std::int64_t i, CUdeviceptr qkv_gradient, CUdeviceptr qkv) const {
    return added(i, to_rows(square(i, gradient_, true), queries(i, qkv), keys(i, qkv_gradient),
                            score_factor()));
  }
  /// The product for a gradient of keys or values: heads that share them add to the first one's.
  CudaGemm added(std::int64_t i, CudaGemm product) const {
    product.beta = i % widths_.sharing() == 0 ? 0 : 1;
    return product;
  }

  /// The batch of each product, and the number of products one after the other.
  std::int64_t together() const { return by_samples_ ? samples_ : heads_; }
  std::int64_t in_turn() const { return by_samples_ ? heads_ : samples_; }
  template <class GemmOf>
  void multiply_all(const CudaQueue& queue, GemmOf&& product_of) const {
    for (std::int64_t i = 0; i < in_turn(); ++i)
      queue.products->multiply(queue, type_, product_of(i));
  }

  ElementType type_;
  std::int64_t batch_;
  std::int64_t tokens_;
  AttentionWidths widths_;
  std::int64_t heads_;
  KeysInSight seen_;
  std::int64_t samples_;       ///< Samples whose scores are in memory at a time.
  bool by_samples_;            ///< Samples are a product's batch; else heads are.
  CudaScratch probabilities_;  ///< [samples, heads, tokens, tokens]; first scores.
  CudaScratch gradient_;       ///< The gradient of these.
};

}  // namespace

std::unique_ptr<Attention> unfused_attention(const AttentionBlock& settings,
                                             const LayerSite& site) {
  return std::make_unique<UnfusedAttention>(settings, site);
}

}  // namespace plumbline::cuda
