// Attention as products with a softmax between them. SPDX-License-Identifier: MIT
#include <cmath>
#include <memory>

#include "calibrate/cuda/attention.h"

namespace plumbline::cuda {
namespace {

/// The heads are the batch of each product; their places are strides.
class ProductAttention : public Attention {
 public:
  ProductAttention(const AttentionBlock& settings, const LayerSite& site)
      : type_(site.type),
        batch_(site.batch),
        tokens_(site.layer.input.extents.front()),
        features_(site.layer.input.extents.back()),
        heads_(settings.heads),
        causal_(settings.causal),
        probabilities_(site.scratch(heads_ * tokens_ * tokens_)),
        gradient_(site.scratch(heads_ * tokens_ * tokens_)) {
    for (const CudaProduct& product :
         {scores(0), context(0, 0), probability_gradient(0, 0), value_gradient(0, 0),
          query_gradient(0, 0), key_gradient(0, 0)})
      prepare_product(site, product);
  }

  void forward(const CudaQueue& queue, const AttentionTensors& of) const override {
    for (std::int64_t s = 0; s < batch_; ++s) {
      const CUdeviceptr qkv = qkv_of(of.qkv, s);
      multiply(queue, scores(qkv));
      attention_softmax(queue, type_, probabilities_.data(), logsumexp_of(of.logsumexp, s), heads_,
                        tokens_, causal_);
      multiply(queue, context(context_of(of.context, s), qkv));
    }
  }

  void backward(const CudaQueue& queue, const AttentionTensors& of, CUdeviceptr qkv_gradients,
                CUdeviceptr context_gradients) const override {
    for (std::int64_t s = 0; s < batch_; ++s) {
      const CUdeviceptr qkv = qkv_of(of.qkv, s);
      const CUdeviceptr qkv_gradient = qkv_of(qkv_gradients, s);
      const CUdeviceptr context_gradient = context_of(context_gradients, s);
      multiply(queue, scores(qkv));
      multiply(queue, probability_gradient(context_gradient, qkv));
      attention_softmax_gradient(queue, type_, probabilities_.data(), gradient_.data(),
                                 logsumexp_of(of.logsumexp, s), heads_, tokens_, causal_);
      multiply(queue, value_gradient(qkv_gradient, context_gradient));
      multiply(queue, query_gradient(qkv_gradient, qkv));
      multiply(queue, key_gradient(qkv_gradient, qkv));
    }
  }

 private:
  using Operand = CudaProduct::Operand;

  // Tensors of one sample.
  CUdeviceptr qkv_of(CUdeviceptr qkv, std::int64_t sample) const {
    return advanced(qkv, sample * tokens_ * 3 * features_, type_);
  }
  CUdeviceptr context_of(CUdeviceptr context, std::int64_t sample) const {
    return advanced(context, sample * tokens_ * features_, type_);
  }
  CUdeviceptr logsumexp_of(CUdeviceptr logsumexp, std::int64_t sample) const {
    return advanced(logsumexp, sample * heads_ * tokens_, ElementType::fp32);
  }

  std::int64_t head_size() const { return features_ / heads_; }
  float score_factor() const {
    return static_cast<float>(1 / std::sqrt(static_cast<double>(head_size())));
  }

  // Operands: of all heads.
  Operand of_qkv(CUdeviceptr qkv, std::int64_t third, bool turned = false) const {
    return {advanced(qkv, third * features_, type_), 3 * features_, head_size(), turned};
  }
  Operand queries(CUdeviceptr qkv) const { return of_qkv(qkv, 0); }
  Operand keys(CUdeviceptr qkv, bool turned = false) const { return of_qkv(qkv, 1, turned); }
  Operand values(CUdeviceptr qkv, bool turned = false) const { return of_qkv(qkv, 2, turned); }
  Operand of_context(CUdeviceptr context) const { return {context, features_, head_size(), false}; }
  Operand square(const CudaScratch& scratch, bool turned = false) const {
    return {scratch.data(), tokens_, tokens_ * tokens_, turned};
  }

  CudaProduct to_square(const Operand& a, const Operand& b, const CudaScratch& c,
                        float alpha) const {
    return {tokens_, tokens_, head_size(), heads_, a, b, square(c), alpha, 0};
  }
  CudaProduct to_rows(const Operand& a, const Operand& b, const Operand& c, float alpha) const {
    return {tokens_, head_size(), tokens_, heads_, a, b, c, alpha, 0};
  }

  CudaProduct scores(CUdeviceptr qkv) const {
    return to_square(queries(qkv), keys(qkv, true), probabilities_, score_factor());
  }
  CudaProduct context(CUdeviceptr context, CUdeviceptr qkv) const {
    return to_rows(square(probabilities_), values(qkv), of_context(context), 1);
  }
  CudaProduct probability_gradient(CUdeviceptr context_gradient, CUdeviceptr qkv) const {
    return to_square(of_context(context_gradient), values(qkv, true), gradient_, 1);
  }
  CudaProduct value_gradient(CUdeviceptr qkv_gradient, CUdeviceptr context_gradient) const {
    return to_rows(square(probabilities_, true), of_context(context_gradient), values(qkv_gradient),
                   1);
  }
  CudaProduct query_gradient(CUdeviceptr qkv_gradient, CUdeviceptr qkv) const {
    return to_rows(square(gradient_), keys(qkv), queries(qkv_gradient), score_factor());
  }
  CudaProduct key_gradient(CUdeviceptr qkv_gradient, CUdeviceptr qkv) const {
    return to_rows(square(gradient_, true), queries(qkv), keys(qkv_gradient), score_factor());
  }

  void multiply(const CudaQueue& queue, const CudaProduct& product) const {
    queue.products->multiply(queue, type_, product);
  }

  ElementType type_;
  std::int64_t batch_;
  std::int64_t tokens_;
  std::int64_t features_;
  std::int64_t heads_;
  bool causal_;
  CudaScratch probabilities_;  ///< First scores.
  CudaScratch gradient_;       ///< Of the same.
};

}  // namespace

std::unique_ptr<Attention> product_attention(const AttentionBlock& settings,
                                             const LayerSite& site) {
  return std::make_unique<ProductAttention>(settings, site);
}

}  // namespace plumbline::cuda
