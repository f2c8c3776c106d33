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
      : dense_(site.type, site.rows().rows, site.rows().columns, settings.features),
        bias_(settings.bias) {
    Names names{{"weight"}};
    if (bias_) names.parameters.push_back("bias");
    check_names(site.layer, names);
    dense_.prepare(site, bias_);
    if (bias_) partial_ = site.fp32_scratch(partial_floats(dense_.output()));
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    dense_.forward(queue, call.output, call.input, call.parameters[0],
                   at_or_none(call.parameters, 1, bias_));
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    if (call.input_gradient != 0)
      dense_.input_gradient(queue, call.input_gradient, call.output_gradient, call.parameters[0]);
  }
  void backward_weight(const CudaQueue& queue, const CudaCall& call) override {
    dense_.weight_gradient(queue, call.gradients[0], call.output_gradient, call.input);
    if (bias_)
      dense_.bias_gradient(queue, call.gradients[1], call.output_gradient, partial_.data());
  }

 private:
  Dense dense_;
  bool bias_;
  CudaScratch partial_;
};

class ReluLayer : public CudaLayer {
 public:
  explicit ReluLayer(const LayerSite& site) : type_(site.type), count_(site.input_elements()) {
    check_names(site.layer, {});
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
    check_names(site.layer, {});
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    gelu(queue, type_, call.output, call.input, count_);
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    if (call.input_gradient != 0)
      gelu_gradient(queue, type_, call.input_gradient, call.output_gradient, call.input, count_);
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
    check_names(site.layer, {});
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

class LayerNormLayer : public CudaLayer {
 public:
  explicit LayerNormLayer(const LayerSite& site)
      : type_(site.type), rows_(site.rows()), partial_(site.fp32_scratch(partial_floats(rows_))) {
    check_names(site.layer, {{"scale", "shift"}, {"mean", "rstd"}});
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    layer_norm(queue, type_, call.output, normed(call), call.parameters[0], call.parameters[1],
               rows_);
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    if (call.input_gradient == 0) return;
    layer_norm_input_gradient(queue, type_, call.input_gradient, call.output_gradient, 0,
                              normed(call), call.parameters[0], rows_);
  }
  void backward_weight(const CudaQueue& queue, const CudaCall& call) override {
    add_scale_gradient(queue, type_, call.gradients[0], call.output_gradient, normed(call), rows_,
                       partial_.data());
    add_column_sums(queue, type_, call.gradients[1], call.output_gradient, rows_, partial_.data());
  }

 private:
  static Normed normed(const CudaCall& call) { return {call.input, call.kept[0], call.kept[1]}; }

  ElementType type_;
  Rows rows_;
  CudaScratch partial_;
};

class MlpLayer : public CudaLayer {
 public:
  MlpLayer(const MlpBlock& settings, const LayerSite& site)
      : type_(site.type),
        norm_(site.type, site.rows()),
        up_(site.type, site.rows().rows, site.rows().columns, settings.hidden),
        down_(site.type, site.rows().rows, settings.hidden, site.rows().columns),
        partial_(site.fp32_scratch(
            std::max(partial_floats(up_.output()), partial_floats(down_.output())))) {
    check_names(site.layer,
                {{"norm.scale", "norm.shift", "up.weight", "up.bias", "down.weight", "down.bias"},
                 {"norm.mean", "norm.rstd", "norm.output", "hidden", "gelu"},
                 {"hidden.gradient", "norm.output_gradient"}});
    up_.prepare(site, true);
    down_.prepare(site, true);
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    norm_.forward(queue, call);
    up_.forward(queue, call.kept[kHidden], call.kept[kNormOutput], call.parameters[kUpWeight],
                call.parameters[kUpBias]);
    gelu(queue, type_, call.kept[kGelu], call.kept[kHidden], up_.output().elements());
    down_.forward(queue, call.output, call.kept[kGelu], call.parameters[kDownWeight],
                  call.parameters[kDownBias], call.input);
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    const CUdeviceptr hidden_gradient = call.left[0];
    const CUdeviceptr norm_output_gradient = call.left[1];
    down_.input_gradient(queue, hidden_gradient, call.output_gradient,
                         call.parameters[kDownWeight]);
    gelu_gradient(queue, type_, hidden_gradient, hidden_gradient, call.kept[kHidden],
                  up_.output().elements());
    up_.input_gradient(queue, norm_output_gradient, hidden_gradient, call.parameters[kUpWeight]);
    norm_.backward_input(queue, call, norm_output_gradient, call.output_gradient);
  }
  void backward_weight(const CudaQueue& queue, const CudaCall& call) override {
    norm_.backward_weight(queue, call, call.left[1], partial_.data());
    up_.weight_gradient(queue, call.gradients[kUpWeight], call.left[0], call.kept[kNormOutput]);
    up_.bias_gradient(queue, call.gradients[kUpBias], call.left[0], partial_.data());
    down_.weight_gradient(queue, call.gradients[kDownWeight], call.output_gradient,
                          call.kept[kGelu]);
    down_.bias_gradient(queue, call.gradients[kDownBias], call.output_gradient, partial_.data());
  }

 private:
  static constexpr std::size_t kUpWeight = 2;
  static constexpr std::size_t kUpBias = 3;
  static constexpr std::size_t kDownWeight = 4;
  static constexpr std::size_t kDownBias = 5;
  static constexpr std::size_t kNormOutput = 2;
  static constexpr std::size_t kHidden = 3;
  static constexpr std::size_t kGelu = 4;

  ElementType type_;
  BlockNorm norm_;
  Dense up_;
  Dense down_;
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
  return std::make_unique<LayerNormLayer>(site);
}
std::unique_ptr<CudaLayer> make_layer(const MlpBlock& settings, const LayerSite& site) {
  return std::make_unique<MlpLayer>(settings, site);
}

}  // namespace plumbline::cuda
