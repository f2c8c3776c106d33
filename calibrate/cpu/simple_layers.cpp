// Layers of one kernel or two.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/dense.h"
#include "calibrate/cpu/kernels.h"
#include "calibrate/cpu/layer_kinds.h"
#include "calibrate/cpu/lstm.h"

namespace plumbline {
namespace {

using cpu::Dense;
using cpu::Normed;
using cpu::Rows;

class LinearLayer : public CpuLayer {
 public:
  explicit LinearLayer(const CpuLayerOf<Linear>& made)
      : dense_{made.rows().rows, made.rows().columns, made.settings.features},
        bias_(made.settings.bias) {
    CpuLayerNames names{{"weight"}};
    if (bias_) names.parameters.push_back("bias");
    check_names(made.layer, names);
  }

  void forward(const CpuCall& call) override {
    dense_.forward(call.output, call.input, call.parameters[0],
                   at_or_null(call.parameters, 1, bias_));
  }
  void backward_input(const CpuCall& call) override {
    if (call.input_gradient != nullptr)
      dense_.input_gradient(call.input_gradient, call.output_gradient, call.parameters[0]);
  }
  void backward_weight(const CpuCall& call) override {
    dense_.weight_gradient(call.gradients[0], at_or_null(call.gradients, 1, bias_),
                           call.output_gradient, call.input);
  }

 private:
  Dense dense_;
  bool bias_;
};

class ReluLayer : public CpuLayer {
 public:
  explicit ReluLayer(const CpuLayerOf<Relu>& made) : count_(made.input_elements()) {
    check_names(made.layer, CpuLayerNames{});
  }

  void forward(const CpuCall& call) override { cpu::relu(call.output, call.input, count_); }
  void backward_input(const CpuCall& call) override {
    if (call.input_gradient != nullptr)
      cpu::relu_gradient(call.input_gradient, call.output_gradient, call.output, count_);
  }
  void backward_weight(const CpuCall&) override {}

 private:
  std::int64_t count_;
};

class GeluLayer : public CpuLayer {
 public:
  explicit GeluLayer(const CpuLayerOf<Gelu>& made) : count_(made.input_elements()) {
    check_names(made.layer, CpuLayerNames{});
  }

  void forward(const CpuCall& call) override { cpu::gelu(call.output, call.input, count_); }
  void backward_input(const CpuCall& call) override {
    if (call.input_gradient != nullptr)
      cpu::gelu_gradient(call.input_gradient, call.output_gradient, call.input, count_);
  }
  void backward_weight(const CpuCall&) override {}

 private:
  std::int64_t count_;
};

class LayerNormLayer : public CpuLayer {
 public:
  explicit LayerNormLayer(const CpuLayerOf<LayerNorm>& made) : rows_(made.rows()) {
    check_names(made.layer, {{"scale", "shift"}, {"mean", "rstd"}});
  }

  void forward(const CpuCall& call) override {
    cpu::layer_norm(call.output, call.kept[0], call.kept[1], call.input,
                    {call.parameters[0], call.parameters[1]}, rows_);
  }
  void backward_input(const CpuCall& call) override {
    if (call.input_gradient == nullptr) return;
    cpu::layer_norm_input_gradient(call.input_gradient, call.output_gradient, nullptr, normed(call),
                                   call.parameters[0], rows_);
  }
  void backward_weight(const CpuCall& call) override {
    cpu::layer_norm_parameter_gradients({call.gradients[0], call.gradients[1]},
                                        call.output_gradient, normed(call), rows_);
  }

 private:
  static Normed normed(const CpuCall& call) { return {call.input, call.kept[0], call.kept[1]}; }

  Rows rows_;
};

class LstmLayer : public CpuLayer {
 public:
  explicit LstmLayer(const CpuLayerOf<Lstm>& made)
      : residual_(made.settings.residual),
        elements_(made.output_elements()),
        lstm_({made.batch, made.layer.input.extents.front(), made.rows().columns,
               made.settings.hidden}) {
    CpuLayerNames names{
        {"input.weight", "hidden.weight", "bias"}, {"gates", "cells"}, {"gates.gradient"}};
    if (residual_) names.kept.push_back("hidden");
    check_names(made.layer, names);
  }

  void forward(const CpuCall& call) override {
    float* h = residual_ ? call.kept[2] : call.output;
    lstm_.forward(call.kept[0], call.kept[1], h, call.input, weights(call));
    if (residual_) cpu::add_row(call.output, h, call.input, {1, elements_});
  }
  void backward_input(const CpuCall& call) override {
    lstm_.backward_input(call.left[0], call.input_gradient, call.output_gradient, call.kept[0],
                         call.kept[1], weights(call));
    if (residual_ && call.input_gradient != nullptr)
      cpu::add(call.input_gradient, call.output_gradient, elements_);
  }
  void backward_weight(const CpuCall& call) override {
    lstm_.backward_weight({call.gradients[0], call.gradients[1], call.gradients[2]}, call.left[0],
                          call.input, residual_ ? call.kept[2] : call.output);
  }

 private:
  static cpu::Lstm::Weights weights(const CpuCall& call) {
    return {call.parameters[0], call.parameters[1], call.parameters[2]};
  }

  bool residual_;
  std::int64_t elements_;
  cpu::Lstm lstm_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Linear>& made) {
  return std::make_unique<LinearLayer>(made);
}
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Relu>& made) {
  return std::make_unique<ReluLayer>(made);
}
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Gelu>& made) {
  return std::make_unique<GeluLayer>(made);
}
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<LayerNorm>& made) {
  return std::make_unique<LayerNormLayer>(made);
}
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Lstm>& made) {
  return std::make_unique<LstmLayer>(made);
}

}  // namespace plumbline
