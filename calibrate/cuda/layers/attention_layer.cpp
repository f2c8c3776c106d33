// The block around attention: a norm, Q, K and V, and the projection.
//
// SPDX-License-Identifier: MIT
#include <memory>

#include "calibrate/cuda/layers/attention.h"
#include "calibrate/cuda/layers/layer_parts.h"

namespace plumbline::cuda {
namespace {

class AttentionLayer : public CudaLayer {
 public:
  AttentionLayer(const AttentionBlock& settings, const LayerSite& site)
      : norm_(site.type, site.rows()),
        qkv_(site.type, site.rows().rows, site.rows().columns, 3 * site.rows().columns),
        projection_(site.type, site.rows().rows, site.rows().columns, site.rows().columns),
        attention_(make_attention(settings, site)),
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
    attention_->forward(queue, tensors_of(call));
    projection_.forward(queue, call.output, call.kept[kContext], call.parameters[kProjectionWeight],
                        call.parameters[kProjectionBias], call.input);
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    const CUdeviceptr qkv_gradient = call.left[0];
    const CUdeviceptr norm_output_gradient = call.left[1];
    projection_.input_gradient(queue, context_gradient_.data(), call.output_gradient,
                               call.parameters[kProjectionWeight]);
    attention_->backward(queue, tensors_of(call), qkv_gradient, context_gradient_.data());
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

  static AttentionTensors tensors_of(const CudaCall& call) {
    return {call.kept[kContext], call.kept[kLogsumexp], call.kept[kQkv]};
  }

  BlockNorm norm_;
  Dense qkv_;
  Dense projection_;
  std::unique_ptr<Attention> attention_;
  CudaScratch context_gradient_;
  CudaScratch partial_;
};

}  // namespace

std::unique_ptr<CudaLayer> make_layer(const AttentionBlock& settings, const LayerSite& site) {
  return std::make_unique<AttentionLayer>(settings, site);
}

}  // namespace plumbline::cuda
