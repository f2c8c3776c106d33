// Attention as products with a softmax between them, a sample at a time.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <memory>

#include "calibrate/cuda/layer_parts.h"

namespace plumbline::cuda {
namespace {

/// softmax(Q K^T / sqrt(head size)) V of all heads of one sample, by strides: a row of qkv holds
/// all of Q, then K, then V, and head j lies in columns j x head size onwards of each. The heads
/// are the batch of each product. The scores of a sample are in memory; the backward makes them
/// again.
class Attention {
 public:
  Attention(const AttentionBlock& settings, const LayerSite& site)
      : type_(site.type),
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

  /// Of one sample: from qkv [tokens, 3 features] to context [tokens, features] and logsumexp
  /// [heads, tokens].
  void forward(const CudaQueue& queue, CUdeviceptr context_of, CUdeviceptr logsumexp,
               CUdeviceptr qkv) const {
    multiply(queue, scores(qkv));
    attention_softmax(queue, type_, probabilities_.data(), logsumexp, heads_, tokens_, causal_);
    multiply(queue, context(context_of, qkv));
  }

  void backward(const CudaQueue& queue, CUdeviceptr qkv_gradient, CUdeviceptr context_gradient,
                CUdeviceptr qkv, CUdeviceptr logsumexp) const {
    multiply(queue, scores(qkv));
    multiply(queue, probability_gradient(context_gradient, qkv));
    attention_softmax_gradient(queue, type_, probabilities_.data(), gradient_.data(), logsumexp,
                               heads_, tokens_, causal_);
    multiply(queue, value_gradient(qkv_gradient, context_gradient));
    multiply(queue, query_gradient(qkv_gradient, qkv));
    multiply(queue, key_gradient(qkv_gradient, qkv));
  }

  std::int64_t tokens() const { return tokens_; }
  std::int64_t features() const { return features_; }
  std::int64_t heads() const { return heads_; }

 private:
  using Operand = CudaProduct::Operand;

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
  std::int64_t tokens_;
  std::int64_t features_;
  std::int64_t heads_;
  bool causal_;
  CudaScratch probabilities_;  ///< First scores.
  CudaScratch gradient_;       ///< Of the same.
};

class AttentionLayer : public CudaLayer {
 public:
  AttentionLayer(const AttentionBlock& settings, const LayerSite& site)
      : type_(site.type),
        batch_(site.batch),
        norm_(site.type, site.rows()),
        qkv_(site.type, site.rows().rows, site.rows().columns, 3 * site.rows().columns),
        projection_(site.type, site.rows().rows, site.rows().columns, site.rows().columns),
        attention_(settings, site),
        context_gradient_(site.scratch(site.input_elements())),
        partial_(site.fp32_scratch(partial_floats(qkv_.output()))) {
    check_names(site.layer,
                {{"norm.scale", "norm.shift", "qkv.weight", "qkv.bias", "projection.weight",
                  "projection.bias"},
                 {"norm.mean", "norm.rstd", "norm.output", "qkv", "logsumexp", "context"},
                 {"qkv.gradient", "norm.output_gradient"}});
    qkv_.prepare(site, true);
    projection_.prepare(site, true);
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    norm_.forward(queue, call);
    qkv_.forward(queue, call.kept[kQkv], call.kept[kNormOutput], call.parameters[kQkvWeight],
                 call.parameters[kQkvBias]);
    for (std::int64_t s = 0; s < batch_; ++s) {
      attention_.forward(queue, context_of(call.kept[kContext], s), logsumexp_of(call, s),
                         qkv_of(call.kept[kQkv], s));
    }
    projection_.forward(queue, call.output, call.kept[kContext], call.parameters[kProjectionWeight],
                        call.parameters[kProjectionBias], call.input);
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    const CUdeviceptr qkv_gradient = call.left[0];
    const CUdeviceptr norm_output_gradient = call.left[1];
    projection_.input_gradient(queue, context_gradient_.data(), call.output_gradient,
                               call.parameters[kProjectionWeight]);
    for (std::int64_t s = 0; s < batch_; ++s) {
      attention_.backward(queue, qkv_of(qkv_gradient, s), context_of(context_gradient_.data(), s),
                          qkv_of(call.kept[kQkv], s), logsumexp_of(call, s));
    }
    qkv_.input_gradient(queue, norm_output_gradient, qkv_gradient, call.parameters[kQkvWeight]);
    norm_.backward_input(queue, call, norm_output_gradient, call.output_gradient);
  }
  void backward_weight(const CudaQueue& queue, const CudaCall& call) override {
    norm_.backward_weight(queue, call, call.left[1], partial_.data());
    qkv_.weight_gradient(queue, call.gradients[kQkvWeight], call.left[0], call.kept[kNormOutput]);
    qkv_.bias_gradient(queue, call.gradients[kQkvBias], call.left[0], partial_.data());
    projection_.weight_gradient(queue, call.gradients[kProjectionWeight], call.output_gradient,
                                call.kept[kContext]);
    projection_.bias_gradient(queue, call.gradients[kProjectionBias], call.output_gradient,
                              partial_.data());
  }

 private:
  static constexpr std::size_t kQkvWeight = 2;
  static constexpr std::size_t kQkvBias = 3;
  static constexpr std::size_t kProjectionWeight = 4;
  static constexpr std::size_t kProjectionBias = 5;
  static constexpr std::size_t kNormOutput = 2;
  static constexpr std::size_t kQkv = 3;
  static constexpr std::size_t kLogsumexp = 4;
  static constexpr std::size_t kContext = 5;

  CUdeviceptr qkv_of(CUdeviceptr qkv, std::int64_t sample) const {
    return advanced(qkv, sample * attention_.tokens() * 3 * attention_.features(), type_);
  }
  CUdeviceptr context_of(CUdeviceptr context, std::int64_t sample) const {
    return advanced(context, sample * attention_.tokens() * attention_.features(), type_);
  }
  CUdeviceptr logsumexp_of(const CudaCall& call, std::int64_t sample) const {
    return advanced(call.kept[kLogsumexp], sample * attention_.heads() * attention_.tokens(),
                    ElementType::fp32);
  }

  ElementType type_;
  std::int64_t batch_;
  BlockNorm norm_;
  Dense qkv_;
  Dense projection_;
  Attention attention_;
  CudaScratch context_gradient_;
  CudaScratch partial_;
};

}  // namespace

std::unique_ptr<CudaLayer> make_layer(const AttentionBlock& settings, const LayerSite& site) {
  return std::make_unique<AttentionLayer>(settings, site);
}

}  // namespace plumbline::cuda
