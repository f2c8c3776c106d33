// Layers made of one or two kernels.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/dense.h"
#include "calibrate/cpu/kernels.h"
#include "calibrate/cpu/layer_kinds.h"
#include "calibrate/cpu/lstm.h"
#include "calibrate/cpu/row_norm.h"

namespace plumbline {
namespace {

using cpu::Dense;

class LinearLayer : public CpuLayer {
 public:
  explicit LinearLayer(const CpuLayerOf<Linear>& made)
      : slots_(dense_slots(made.layer)),
        dense_{made.rows().rows, made.rows().columns, made.settings.features} {}

  void forward(const CpuCall& call) override {
    dense_.forward(call.output, call.input, call.parameters[slots_.weight],
                   at_or_null(call.parameters, slots_.bias));
  }
  void backward_input(const CpuCall& call) override {
    if (call.input_gradient != nullptr)
      dense_.input_gradient(call.input_gradient, call.output_gradient,
                            call.parameters[slots_.weight]);
  }
  void backward_weight(const CpuCall& call) override {
    dense_.weight_gradient(call.gradients[slots_.weight], at_or_null(call.gradients, slots_.bias),
                           call.output_gradient, call.input);
  }

 private:
  DenseSlots slots_;
  Dense dense_;
};

class ReluLayer : public CpuLayer {
 public:
  explicit ReluLayer(const CpuLayerOf<Relu>& made) : count_(made.input_elements()) {
    check_no_slots(made.layer);
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
    check_no_slots(made.layer);
  }

  void forward(const CpuCall& call) override {
    cpu::activate(call.output, call.input, Activation::gelu, count_);
  }
  void backward_input(const CpuCall& call) override {
    if (call.input_gradient != nullptr)
      cpu::activate_gradient(call.input_gradient, call.output_gradient, call.input,
                             Activation::gelu, count_);
  }
  void backward_weight(const CpuCall&) override {}

 private:
  std::int64_t count_;
};

/// A layer norm or an rms norm.
class NormLayer : public CpuLayer {
 public:
  template <class Kind>
  explicit NormLayer(const CpuLayerOf<Kind>& made) : norm_(norm_slots(made.layer), made.rows()) {}

  void forward(const CpuCall& call) override { norm_.forward(call, call.output); }
  void backward_input(const CpuCall& call) override {
    norm_.backward_input(call, call.output_gradient, nullptr);
  }
  void backward_weight(const CpuCall& call) override {
    norm_.backward_weight(call, call.output_gradient);
  }

 private:
  cpu::RowNorm norm_;
};

class LstmLayer : public CpuLayer {
 public:
  explicit LstmLayer(const CpuLayerOf<Lstm>& made)
      : slots_(lstm_slots(made.layer)),
        elements_(made.output_elements()),
        lstm_({made.batch, made.layer.input.extents.front(), made.rows().columns,
               made.settings.hidden}) {}

  void forward(const CpuCall& call) override {
    float* h = hidden(call);
    lstm_.forward(call.kept[slots_.gates], call.kept[slots_.cells], h, call.input, weights(call));
    if (has_residual()) cpu::add_row(call.output, h, call.input, {1, elements_});
  }
  void backward_input(const CpuCall& call) override {
    lstm_.backward_input(call.left[slots_.gates_gradient], call.input_gradient,
                         call.output_gradient, call.kept[slots_.gates], call.kept[slots_.cells],
                         weights(call));
    if (has_residual() && call.input_gradient != nullptr)
      cpu::add(call.input_gradient, call.output_gradient, elements_);
  }
  void backward_weight(const CpuCall& call) override {
    lstm_.backward_weight({call.gradients[slots_.input_weight],
                           call.gradients[slots_.hidden_weight], call.gradients[slots_.bias]},
                          call.left[slots_.gates_gradient], call.input, hidden(call));
  }

 private:
  bool has_residual() const { return slots_.hidden != kNoSlot; }
  float* hidden(const CpuCall& call) const {
    return has_residual() ? call.kept[slots_.hidden] : call.output;
  }
  cpu::Lstm::Weights weights(const CpuCall& call) const {
    return {call.parameters[slots_.input_weight], call.parameters[slots_.hidden_weight],
            call.parameters[slots_.bias]};
  }

  LstmSlots slots_;
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
  return std::make_unique<NormLayer>(made);
}
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<RmsNorm>& made) {
  return std::make_unique<NormLayer>(made);
}
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Lstm>& made) {
  return std::make_unique<LstmLayer>(made);
}

}  // namespace plumbline
