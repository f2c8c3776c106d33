// Linear layers, activations, norms, and the block of all three.
//
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <memory>
#include <utility>

#include "calibrate/cuda/layers/layer_parts.h"

namespace plumbline::cuda {
namespace {

class LinearLayer : public CudaLayer {
 public:
  LinearLayer(const Linear& settings, const LayerSite& site)
      : slots_(dense_slots(site.layer)),
        dense_(site.type, site.rows().rows, site.rows().columns, settings.features) {
    dense_.prepare(site, has_bias());
    if (has_bias()) partial_ = site.fp32_scratch(partial_floats(dense_.output()));
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    dense_.forward(queue, call.output, call.input, call.parameters[slots_.weight],
                   at_or_none(call.parameters, slots_.bias));
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    if (call.input_gradient != 0)
      dense_.input_gradient(queue, call.input_gradient, call.output_gradient,
                            call.parameters[slots_.weight]);
  }
  void backward_weight(const CudaQueue& queue, const CudaCall& call) override {
    dense_.weight_gradient(queue, call.gradients[slots_.weight], call.output_gradient, call.input);
    if (has_bias())
      dense_.bias_gradient(queue, call.gradients[slots_.bias], call.output_gradient,
                           partial_.data());
  }

 private:
  bool has_bias() const { return slots_.bias != kNoSlot; }

  DenseSlots slots_;
  Dense dense_;
  CudaScratch partial_;
};

class ReluLayer : public CudaLayer {
 public:
  explicit ReluLayer(const LayerSite& site) : type_(site.type), count_(site.input_elements()) {
    check_no_slots(site.layer);
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    relu(queue, type_, call.output, call.input, count_);
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    if (call.input_gradient != 0)
      relu_gradient(queue, type_, call.input_gradient, call.output_gradient, call.output, count_);
  }
  void backward_weight(const CudaQueue&, const CudaCall&) override {}

 private:
  ElementType type_;
  std::int64_t count_;
};

class GeluLayer : public CudaLayer {
 public:
  explicit GeluLayer(const LayerSite& site) : type_(site.type), count_(site.input_elements()) {
    check_no_slots(site.layer);
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    activate(queue, type_, Activation::gelu, call.output, call.input, count_);
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    if (call.input_gradient != 0)
      activate_gradient(queue, type_, Activation::gelu, call.input_gradient, call.output_gradient,
                        call.input, count_);
  }
  void backward_weight(const CudaQueue&, const CudaCall&) override {}

 private:
  ElementType type_;
  std::int64_t count_;
};

class FlattenLayer : public CudaLayer {
 public:
  explicit FlattenLayer(const LayerSite& site)
      : bytes_(static_cast<std::size_t>(site.input_elements() * bytes_of(site.type))) {
    check_no_slots(site.layer);
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    copy(queue, call.output, call.input);
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    if (call.input_gradient != 0) copy(queue, call.input_gradient, call.output_gradient);
  }
  void backward_weight(const CudaQueue&, const CudaCall&) override {}

 private:
  void copy(const CudaQueue& queue, CUdeviceptr to, CUdeviceptr from) const {
    PLUMBLINE_CUDA(*queue.driver, cuMemcpyDtoDAsync, to, from, bytes_, queue.stream);
  }

  std::size_t bytes_;
};

/// A layer norm or an rms norm.
class NormLayer : public CudaLayer {
 public:
  explicit NormLayer(const LayerSite& site)
      : norm_(norm_slots(site.layer), site.type, site.rows()),
        partial_(site.fp32_scratch(partial_floats(site.rows()))) {}

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    norm_.forward(queue, call, call.output);
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    norm_.backward_input(queue, call, call.output_gradient, 0);
  }
  void backward_weight(const CudaQueue& queue, const CudaCall& call) override {
    norm_.backward_weight(queue, call, call.output_gradient, partial_.data());
  }

 private:
  RowNorm norm_;
  CudaScratch partial_;
};

class MlpLayer : public CudaLayer {
 public:
  MlpLayer(const MlpBlock& settings, const LayerSite& site)
      : slots_(mlp_slots(site.layer)),
        settings_(settings),
        type_(site.type),
        norm_(slots_.norm, site.type, site.rows()),
        up_(site.type, site.rows().rows, site.rows().columns, settings.up()),
        down_(site.type, site.rows().rows, settings.hidden, site.rows().columns),
        gated_gradient_(site.scratch(settings.gated ? middle().elements() : 0)),
        partial_(site.fp32_scratch(
            std::max(partial_floats(up_.output()), partial_floats(down_.output())))) {
    up_.prepare(site, settings.bias);
    down_.prepare(site, true);
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    norm_.forward(queue, call);
    const CUdeviceptr hidden = call.kept[slots_.hidden];
    const CUdeviceptr activated = call.kept[slots_.activated];
    up_.forward(queue, hidden, norm_.output(call), call.parameters[slots_.up.weight],
                at_or_none(call.parameters, slots_.up.bias));
    if (settings_.gated) {
      gate(queue, type_, settings_.activation, activated, hidden, middle());
    } else {
      activate(queue, type_, settings_.activation, activated, hidden, middle().elements());
    }
    down_.forward(queue, call.output, activated, call.parameters[slots_.down.weight],
                  at_or_none(call.parameters, slots_.down.bias), call.input);
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    const CUdeviceptr hidden = call.kept[slots_.hidden];
    const CUdeviceptr hidden_gradient = call.left[slots_.hidden_gradient];
    const CUdeviceptr gradient = settings_.gated ? gated_gradient_.data() : hidden_gradient;
    down_.input_gradient(queue, gradient, call.output_gradient,
                         call.parameters[slots_.down.weight]);
    if (settings_.gated) {
      gate_gradient(queue, type_, settings_.activation, hidden_gradient, gradient, hidden,
                    middle());
    } else {
      activate_gradient(queue, type_, settings_.activation, gradient, gradient, hidden,
                        middle().elements());
    }
    up_.input_gradient(queue, norm_.output_gradient(call), hidden_gradient,
                       call.parameters[slots_.up.weight]);
    norm_.backward_input(queue, call, call.output_gradient);
  }
  void backward_weight(const CudaQueue& queue, const CudaCall& call) override {
    const CUdeviceptr hidden_gradient = call.left[slots_.hidden_gradient];
    norm_.backward_weight(queue, call, partial_.data());
    up_.weight_gradient(queue, call.gradients[slots_.up.weight], hidden_gradient,
                        norm_.output(call));
    up_.bias_gradient(queue, at_or_none(call.gradients, slots_.up.bias), hidden_gradient,
                      partial_.data());
    down_.weight_gradient(queue, call.gradients[slots_.down.weight], call.output_gradient,
                          call.kept[slots_.activated]);
    down_.bias_gradient(queue, at_or_none(call.gradients, slots_.down.bias), call.output_gradient,
                        partial_.data());
  }

 private:
  /// What goes down.
  Rows middle() const { return {up_.output().rows, settings_.hidden}; }

  MlpSlots slots_;
  MlpBlock settings_;
  ElementType type_;
  BlockNorm norm_;
  Dense up_;
  Dense down_;
  CudaScratch gated_gradient_;  ///< The gradient of what goes down; empty without a gate.
  CudaScratch partial_;
};

}  // namespace

std::unique_ptr<CudaLayer> make_layer(const Linear& settings, const LayerSite& site) {
  return std::make_unique<LinearLayer>(settings, site);
}
std::unique_ptr<CudaLayer> make_layer(const Relu&, const LayerSite& site) {
  return std::make_unique<ReluLayer>(site);
}
std::unique_ptr<CudaLayer> make_layer(const Gelu&, const LayerSite& site) {
  return std::make_unique<GeluLayer>(site);
}
std::unique_ptr<CudaLayer> make_layer(const Flatten&, const LayerSite& site) {
  return std::make_unique<FlattenLayer>(site);
}
std::unique_ptr<CudaLayer> make_layer(const LayerNorm&, const LayerSite& site) {
  return std::make_unique<NormLayer>(site);
}
std::unique_ptr<CudaLayer> make_layer(const RmsNorm&, const LayerSite& site) {
  return std::make_unique<NormLayer>(site);
}
std::unique_ptr<CudaLayer> make_layer(const MlpBlock& settings, const LayerSite& site) {
  return std::make_unique<MlpLayer>(settings, site);
}

}  // namespace plumbline::cuda
