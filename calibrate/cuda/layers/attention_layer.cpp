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
      : slots_(attention_slots(site.layer)),
        norm_(slots_.norm, site.type, site.rows()),
        qkv_(site.type, site.rows().rows, site.rows().columns, 3 * site.rows().columns),
        projection_(site.type, site.rows().rows, site.rows().columns, site.rows().columns),
        attention_(make_attention(settings, site)),
        context_gradient_(site.scratch(site.input_elements())),
        partial_(site.fp32_scratch(partial_floats(qkv_.output()))) {
    qkv_.prepare(site, true);
    projection_.prepare(site, true);
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    norm_.forward(queue, call);
    qkv_.forward(queue, call.kept[slots_.qkv_output], norm_.output(call),
                 call.parameters[slots_.qkv.weight], call.parameters[slots_.qkv.bias]);
    attention_->forward(queue, tensors_of(call));
    projection_.forward(queue, call.output, call.kept[slots_.context],
                        call.parameters[slots_.projection.weight],
                        call.parameters[slots_.projection.bias], call.input);
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    const CUdeviceptr qkv_gradient = call.left[slots_.qkv_gradient];
    projection_.input_gradient(queue, context_gradient_.data(), call.output_gradient,
                               call.parameters[slots_.projection.weight]);
    attention_->backward(queue, tensors_of(call), qkv_gradient, context_gradient_.data());
    qkv_.input_gradient(queue, norm_.output_gradient(call), qkv_gradient,
                        call.parameters[slots_.qkv.weight]);
    norm_.backward_input(queue, call, call.output_gradient);
  }
  void backward_weight(const CudaQueue& queue, const CudaCall& call) override {
    const CUdeviceptr qkv_gradient = call.left[slots_.qkv_gradient];
    norm_.backward_weight(queue, call, partial_.data());
    qkv_.weight_gradient(queue, call.gradients[slots_.qkv.weight], qkv_gradient,
                         norm_.output(call));
    qkv_.bias_gradient(queue, call.gradients[slots_.qkv.bias], qkv_gradient, partial_.data());
    projection_.weight_gradient(queue, call.gradients[slots_.projection.weight],
                                call.output_gradient, call.kept[slots_.context]);
    projection_.bias_gradient(queue, call.gradients[slots_.projection.bias], call.output_gradient,
                              partial_.data());
  }

 private:
  AttentionTensors tensors_of(const CudaCall& call) const {
    return {call.kept[slots_.context], call.kept[slots_.logsumexp], call.kept[slots_.qkv_output]};
  }

  AttentionSlots slots_;
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
