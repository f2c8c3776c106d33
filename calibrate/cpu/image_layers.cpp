// The layers of pictures.
//
// SPDX-License-Identifier: MIT
#include <algorithm>

#include "base/bug.h"
#include "calibrate/cpu/images.h"
#include "calibrate/cpu/layer_kinds.h"

namespace plumbline {
namespace {

using cpu::Images;
using cpu::Normed;
using cpu::Scratch;
using cpu::Window;

Window window_over(const Shape& image, std::int64_t samples, std::int64_t kernel,
                   std::int64_t stride, std::int64_t padding) {
  PLUMBLINE_CHECK(image.extents.size() == 3, image.extents.size());
  return {samples, image.extents[0], image.extents[1], image.extents[2], kernel, stride, padding};
}

Images images_of(const Shape& image, std::int64_t samples) {
  PLUMBLINE_CHECK(image.extents.size() == 3, image.extents.size());
  return {samples, image.extents[0], image.extents[1] * image.extents[2]};
}

class ConvolutionLayer : public CpuLayer {
 public:
  explicit ConvolutionLayer(const CpuLayerOf<Conv2d>& made)
      : slots_(dense_slots(made.layer)),
        input_elements_(made.input_elements()),
        convolution_(window_over(made.layer.input, made.batch, made.settings.kernel,
                                 made.settings.stride, made.settings.padding),
                     made.settings.channels) {}

  void forward(const CpuCall& call) override {
    convolution_.forward(call.output, call.input, call.parameters[slots_.weight],
                         at_or_null(call.parameters, slots_.bias));
  }
  void backward_input(const CpuCall& call) override {
    if (call.input_gradient == nullptr) return;
    std::fill_n(call.input_gradient, input_elements_, 0.0F);
    convolution_.add_input_gradient(call.input_gradient, call.output_gradient,
                                    call.parameters[slots_.weight]);
  }
  void backward_weight(const CpuCall& call) override {
    convolution_.weight_gradient(call.gradients[slots_.weight],
                                 at_or_null(call.gradients, slots_.bias), call.output_gradient,
                                 call.input);
  }

 private:
  DenseSlots slots_;
  std::int64_t input_elements_;
  cpu::Convolution convolution_;
};

class MaxPoolLayer : public CpuLayer {
 public:
  explicit MaxPoolLayer(const CpuLayerOf<MaxPool>& made)
      : window_(window_over(made.layer.input, made.batch, made.settings.kernel,
                            made.settings.stride, made.settings.padding)) {
    check_no_slots(made.layer);
  }

  void forward(const CpuCall& call) override { cpu::max_pool(call.output, call.input, window_); }
  void backward_input(const CpuCall& call) override {
    if (call.input_gradient != nullptr)
      cpu::max_pool_gradient(call.input_gradient, call.output_gradient, call.input, window_);
  }
  void backward_weight(const CpuCall&) override {}

 private:
  Window window_;
};

class BatchNormLayer : public CpuLayer {
 public:
  explicit BatchNormLayer(const CpuLayerOf<BatchNorm>& made)
      : slots_(norm_slots(made.layer)), images_(images_of(made.layer.input, made.batch)) {}

  void forward(const CpuCall& call) override {
    cpu::batch_moments(call.kept[slots_.mean], call.kept[slots_.rstd], call.input, images_);
    cpu::batch_norm(call.output, normed(call, call.input, slots_), affine(call, slots_), images_);
  }
  void backward_input(const CpuCall& call) override {
    cpu::batch_norm_gradients(call.input_gradient, affine_gradients(call, slots_),
                              call.output_gradient, normed(call, call.input, slots_),
                              call.parameters[slots_.scale], images_);
  }
  void backward_weight(const CpuCall&) override {}

 private:
  NormSlots slots_;
  Images images_;
};

class FlattenLayer : public CpuLayer {
 public:
  explicit FlattenLayer(const CpuLayerOf<Flatten>& made) : count_(made.input_elements()) {
    check_no_slots(made.layer);
  }

  void forward(const CpuCall& call) override { std::copy_n(call.input, count_, call.output); }
  void backward_input(const CpuCall& call) override {
    if (call.input_gradient != nullptr)
      std::copy_n(call.output_gradient, count_, call.input_gradient);
  }
  void backward_weight(const CpuCall&) override {}

 private:
  std::int64_t count_;
};

class ResidualLayer : public CpuLayer {
 public:
  explicit ResidualLayer(const CpuLayerOf<ResidualBlock>& made)
      : slots_(residual_slots(made.layer)),
        input_elements_(made.input_elements()),
        out_(images_of(made.layer.output, made.batch)),
        conv1_(window_over(made.layer.input, made.batch, 3, made.settings.stride, 1),
               out_.channels),
        conv2_(window_over(made.layer.output, made.batch, 3, 1, 1), out_.channels),
        shortcut_(window_over(made.layer.input, made.batch, 1, made.settings.stride, 0),
                  out_.channels),
        sum_gradient_(out_.elements()),
        relu1_gradient_(out_.elements()) {}

  void forward(const CpuCall& call) override {
    float* relu1 = call.kept[slots_.relu1];
    convolve(conv1_, call, call.input, slots_.first);
    cpu::batch_norm_relu(relu1, normed_of(call, slots_.first), affine(call, slots_.first.norm),
                         out_);
    convolve(conv2_, call, relu1, slots_.second);
    cpu::batch_norm(call.output, normed_of(call, slots_.second), affine(call, slots_.second.norm),
                    out_);
    const float* skip = call.input;
    if (slots_.shortcut) {
      convolve(shortcut_, call, call.input, *slots_.shortcut);
      cpu::batch_norm(sum_gradient_.data(), normed_of(call, *slots_.shortcut),
                      affine(call, slots_.shortcut->norm), out_);
      skip = sum_gradient_.data();  // a forward does not use it otherwise
    }
    cpu::add_and_relu(call.output, skip, out_.elements());
  }

  void backward_input(const CpuCall& call) override {
    float* conv1_gradient = call.left[slots_.first.output_gradient];
    float* conv2_gradient = call.left[slots_.second.output_gradient];
    cpu::relu_gradient(sum_gradient_.data(), call.output_gradient, call.output, out_.elements());
    norm_backward(call, slots_.second, sum_gradient_.data());
    std::fill_n(relu1_gradient_.data(), out_.elements(), 0.0F);
    conv2_.add_input_gradient(relu1_gradient_.data(), conv2_gradient,
                              call.parameters[slots_.second.weight]);
    cpu::relu_gradient(relu1_gradient_.data(), call.kept[slots_.relu1], out_.elements());
    norm_backward(call, slots_.first, relu1_gradient_.data());
    if (slots_.shortcut) norm_backward(call, *slots_.shortcut, sum_gradient_.data());
    if (call.input_gradient == nullptr) return;
    if (slots_.shortcut) {
      std::fill_n(call.input_gradient, input_elements_, 0.0F);
      shortcut_.add_input_gradient(call.input_gradient, call.left[slots_.shortcut->output_gradient],
                                   call.parameters[slots_.shortcut->weight]);
    } else {
      std::copy_n(sum_gradient_.data(), input_elements_, call.input_gradient);
    }
    conv1_.add_input_gradient(call.input_gradient, conv1_gradient,
                              call.parameters[slots_.first.weight]);
  }

  void backward_weight(const CpuCall& call) override {
    weight_backward(conv1_, call, call.input, slots_.first);
    weight_backward(conv2_, call, call.kept[slots_.relu1], slots_.second);
    if (slots_.shortcut) weight_backward(shortcut_, call, call.input, *slots_.shortcut);
  }

 private:
  static Normed normed_of(const CpuCall& call, const NormedConvolutionSlots& slots) {
    return normed(call, call.kept[slots.output], slots.norm);
  }
  /// The convolution, and the moments of the norm after it.
  void convolve(cpu::Convolution& by, const CpuCall& call, const float* input,
                const NormedConvolutionSlots& slots) const {
    float* output = call.kept[slots.output];
    by.forward(output, input, call.parameters[slots.weight], nullptr);
    cpu::batch_moments(call.kept[slots.norm.mean], call.kept[slots.norm.rstd], output, out_);
  }
  /// Computes the gradient of the convolution's output from that of the norm's output.
  void norm_backward(const CpuCall& call, const NormedConvolutionSlots& slots,
                     const float* output_gradient) const {
    cpu::batch_norm_gradients(call.left[slots.output_gradient], affine_gradients(call, slots.norm),
                              output_gradient, normed_of(call, slots),
                              call.parameters[slots.norm.scale], out_);
  }
  static void weight_backward(cpu::Convolution& by, const CpuCall& call, const float* input,
                              const NormedConvolutionSlots& slots) {
    by.weight_gradient(call.gradients[slots.weight], nullptr, call.left[slots.output_gradient],
                       input);
  }

  ResidualSlots slots_;
  std::int64_t input_elements_;
  Images out_;
  cpu::Convolution conv1_;
  cpu::Convolution conv2_;
  cpu::Convolution shortcut_;
  Scratch sum_gradient_;  ///< The gradient of the last relu's input.
  Scratch relu1_gradient_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Conv2d>& made) {
  return std::make_unique<ConvolutionLayer>(made);
}
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<MaxPool>& made) {
  return std::make_unique<MaxPoolLayer>(made);
}
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<BatchNorm>& made) {
  return std::make_unique<BatchNormLayer>(made);
}
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<Flatten>& made) {
  return std::make_unique<FlattenLayer>(made);
}
std::unique_ptr<CpuLayer> make_cpu_layer(const CpuLayerOf<ResidualBlock>& made) {
  return std::make_unique<ResidualLayer>(made);
}

}  // namespace plumbline
