// The block around attention: a norm, Q, K and V, their norms and positions, and the projection.
//
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "calibrate/cuda/layers/attention.h"
#include "calibrate/cuda/layers/layer_parts.h"
#include "calibrate/training/rotary_angles.h"

namespace plumbline::cuda {
namespace {

/// The angles of the block's rotary positions on the device; no memory without.
CudaScratch angles_of(const AttentionBlock& settings, const AttentionWidths& widths,
                      const LayerSite& site) {
  if (settings.rotary == 0) return {};
  const std::vector<float> angles =
      rotary_angles(site.layer.input.extents.front(), widths.head_size, settings.rotary);
  CudaScratch memory = site.fp32_scratch(std::ssize(angles));
  PLUMBLINE_CUDA(*site.queue.driver, cuMemcpyHtoDAsync, memory.data(), angles.data(),
                 angles.size() * sizeof(float), site.queue.stream);
  // The copy must end before the host's memory is freed.
  PLUMBLINE_CUDA(*site.queue.driver, cuStreamSynchronize, site.queue.stream);
  return memory;
}

/// Queries and keys between their product and attention: each head normalized, then turned to its
/// position, where the block does so.
class HeadSteps {
 public:
  HeadSteps(const AttentionBlock& settings, const AttentionWidths& widths, const LayerSite& site,
            const std::optional<HeadNormSlots>& slots)
      : widths_(widths),
        type_(site.type),
        rows_(site.rows().rows),
        tokens_(site.layer.input.extents.front()),
        slots_(slots),
        angles_(angles_of(settings, widths, site)),
        partial_(site.fp32_scratch(slots ? head_partial_floats(rows_of(widths.heads)) : 0)) {}

  void forward(const CudaQueue& queue, const CudaCall& call, CUdeviceptr qkv) const {
    if (slots_) {
      for (const HeadPart& part : head_parts(widths_, *slots_)) {
        norm_heads(queue, type_, advanced(qkv, part.column, type_), input(call, part),
                   rstd(call, part), call.parameters[part.scale], rows_of(part.heads));
      }
    }
    turn(queue, qkv, false);
  }
  void backward(const CudaQueue& queue, const CudaCall& call, CUdeviceptr qkv_gradient) const {
    turn(queue, qkv_gradient, true);
    if (!slots_) return;
    for (const HeadPart& part : head_parts(widths_, *slots_)) {
      norm_heads_gradient(queue, type_, advanced(qkv_gradient, part.column, type_),
                          call.gradients[part.scale], input(call, part), rstd(call, part),
                          call.parameters[part.scale], rows_of(part.heads), partial_.data());
    }
  }

 private:
  std::int64_t all_heads() const { return widths_.heads + widths_.kv_heads; }
  CUdeviceptr input(const CudaCall& call, const HeadPart& part) const {
    return advanced(call.kept[slots_->input], part.column, type_);
  }
  CUdeviceptr rstd(const CudaCall& call, const HeadPart& part) const {
    return advanced(call.kept[slots_->rstd], part.first_head, ElementType::fp32);
  }
  HeadRows rows_of(std::int64_t heads) const {
    return {rows_, widths_.qkv(), heads, widths_.head_size, all_heads()};
  }
  void turn(const CudaQueue& queue, CUdeviceptr qkv, bool back) const {
    if (angles_.data() != 0)
      turn_heads(queue, type_, qkv, angles_.data(), back, tokens_, rows_of(all_heads()));
  }

  AttentionWidths widths_;
  ElementType type_;
  std::int64_t rows_;
  std::int64_t tokens_;
  std::optional<HeadNormSlots> slots_;
  CudaScratch angles_;  ///< No memory without rotary positions.
  CudaScratch partial_;
};

class AttentionLayer : public CudaLayer {
 public:
  AttentionLayer(const AttentionBlock& settings, const LayerSite& site)
      : AttentionLayer(settings, site, attention_widths(settings, site.rows().columns)) {}

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    norm_.forward(queue, call);
    qkv_.forward(queue, call.kept[slots_.qkv_output], norm_.output(call),
                 call.parameters[slots_.qkv.weight], at_or_none(call.parameters, slots_.qkv.bias));
    heads_.forward(queue, call, call.kept[slots_.qkv_output]);
    attention_->forward(queue, tensors_of(call));
    projection_.forward(queue, call.output, call.kept[slots_.context],
                        call.parameters[slots_.projection.weight],
                        at_or_none(call.parameters, slots_.projection.bias), call.input);
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    const CUdeviceptr qkv_gradient = call.left[slots_.qkv_gradient];
    projection_.input_gradient(queue, context_gradient_.data(), call.output_gradient,
                               call.parameters[slots_.projection.weight]);
    attention_->backward(queue, tensors_of(call), qkv_gradient, context_gradient_.data());
    heads_.backward(queue, call, qkv_gradient);
    qkv_.input_gradient(queue, norm_.output_gradient(call), qkv_gradient,
                        call.parameters[slots_.qkv.weight]);
    norm_.backward_input(queue, call, call.output_gradient);
  }
  void backward_weight(const CudaQueue& queue, const CudaCall& call) override {
    const CUdeviceptr qkv_gradient = call.left[slots_.qkv_gradient];
    norm_.backward_weight(queue, call, partial_.data());
    qkv_.weight_gradient(queue, call.gradients[slots_.qkv.weight], qkv_gradient,
                         norm_.output(call));
    qkv_.bias_gradient(queue, at_or_none(call.gradients, slots_.qkv.bias), qkv_gradient,
                       partial_.data());
    projection_.weight_gradient(queue, call.gradients[slots_.projection.weight],
                                call.output_gradient, call.kept[slots_.context]);
    projection_.bias_gradient(queue, at_or_none(call.gradients, slots_.projection.bias),
                              call.output_gradient, partial_.data());
  }

 private:
  AttentionLayer(const AttentionBlock& settings, const LayerSite& site,
                 const AttentionWidths& widths)
      : slots_(attention_slots(site.layer)),
        norm_(slots_.norm, site.type, site.rows()),
        qkv_(site.type, site.rows().rows, site.rows().columns, widths.qkv()),
        projection_(site.type, site.rows().rows, widths.queries(), site.rows().columns),
        heads_(settings, widths, site, slots_.head_norm),
        attention_(make_attention(settings, site)),
        context_gradient_(site.scratch(site.rows().rows * widths.queries())),
        partial_(site.fp32_scratch(
            std::max(partial_floats(qkv_.output()), partial_floats(site.rows())))) {
    qkv_.prepare(site, settings.bias != AttentionBias::none);
    projection_.prepare(site, true);
  }

  AttentionTensors tensors_of(const CudaCall& call) const {
    return {call.kept[slots_.context], call.kept[slots_.logsumexp], call.kept[slots_.qkv_output]};
  }

  AttentionSlots slots_;
  BlockNorm norm_;
  Dense qkv_;
  Dense projection_;
  HeadSteps heads_;
  std::unique_ptr<Attention> attention_;
  CudaScratch context_gradient_;
  CudaScratch partial_;
};

}  // namespace

std::unique_ptr<CudaLayer> make_layer(const AttentionBlock& settings, const LayerSite& site) {
  return std::make_unique<AttentionLayer>(settings, site);
}

}  // namespace plumbline::cuda
