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
      : input_elements_(made.input_elements()),
        bias_(made.settings.bias),
        convolution_(window_over(made.layer.input, made.batch, made.settings.kernel,
                                 made.settings.stride, made.settings.padding),
                     made.settings.channels) {
    CpuLayerNames names{{"weight"}};
    if (bias_) names.parameters.push_back("bias");
    check_names(made.layer, names);
  }

  void forward(const CpuCall& call) override {
    convolution_.forward(call.output, call.input, call.parameters[0],
                         at_or_null(call.parameters, 1, bias_));
  }
  void backward_input(const CpuCall& call) override {
    if (call.input_gradient == nullptr) return;
    std::fill_n(call.input_gradient, input_elements_, 0.0F);
    convolution_.add_input_gradient(call.input_gradient, call.output_gradient, call.parameters[0]);
  }
  void backward_weight(const CpuCall& call) override {
    convolution_.weight_gradient(call.gradients[0], at_or_null(call.gradients, 1, bias_),
                                 call.output_gradient, call.input);
  }

 private:
  std::int64_t input_elements_;
  bool bias_;
  cpu::Convolution convolution_;
};

class MaxPoolLayer : public CpuLayer {
 public:
  explicit MaxPoolLayer(const CpuLayerOf<MaxPool>& made)
      : window_(window_over(made.layer.input, made.batch, made.settings.kernel,
                            made.settings.stride, made.settings.padding)) {
    check_names(made.layer, CpuLayerNames{});
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
      : images_(images_of(made.layer.input, made.batch)) {
    check_names(made.layer, {{"scale", "shift"}, {"mean", "rstd"}});
  }

  void forward(const CpuCall& call) override {
    cpu::batch_moments(call.kept[0], call.kept[1], call.input, images_);
    cpu::batch_norm(call.output, normed(call), {call.parameters[0], call.parameters[1]}, images_);
  }
  void backward_input(const CpuCall& call) override {
    cpu::batch_norm_gradients(call.input_gradient, {call.gradients[0], call.gradients[1]},
                              call.output_gradient, normed(call), call.parameters[0], images_);
  }
  void backward_weight(const CpuCall&) override {}

 private:
  static Normed normed(const CpuCall& call) { return {call.input, call.kept[0], call.kept[1]}; }

  Images images_;
};

class FlattenLayer : public CpuLayer {
 public:
  explicit FlattenLayer(const CpuLayerOf<Flatten>& made) : count_(made.input_elements()) {
    check_names(made.layer, CpuLayerNames{});
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
      : changes_(made.settings.stride != 1 ||
                 made.settings.channels != made.layer.input.extents.front()),
        input_elements_(made.input_elements()),
        out_(images_of(made.layer.output, made.batch)),
        conv1_(window_over(made.layer.input, made.batch, 3, made.settings.stride, 1),
               out_.channels),
        conv2_(window_over(made.layer.output, made.batch, 3, 1, 1), out_.channels),
        shortcut_(window_over(made.layer.input, made.batch, 1, made.settings.stride, 0),
                  out_.channels),
        sum_gradient_(out_.elements()),
        relu1_gradient_(out_.elements()) {
    CpuLayerNames names{
        {"conv1.weight", "norm1.scale", "norm1.shift", "conv2.weight", "norm2.scale",
         "norm2.shift"},
        {"conv1", "norm1.mean", "norm1.rstd", "relu1", "conv2", "norm2.mean", "norm2.rstd"},
        {"conv1.gradient", "conv2.gradient"}};
    if (changes_) {
      for (const auto* name : {"shortcut.weight", "shortcut_norm.scale", "shortcut_norm.shift"})
        names.parameters.emplace_back(name);
      for (const auto* name : {"shortcut", "shortcut_norm.mean", "shortcut_norm.rstd"})
        names.kept.emplace_back(name);
      names.left.emplace_back("shortcut.gradient");
    }
    check_names(made.layer, names);
  }

  void forward(const CpuCall& call) override {
    conv1_.forward(call.kept[kConv1], call.input, call.parameters[kConv1Weight], nullptr);
    moments(call, kConv1, kNorm1Moments);
    cpu::batch_norm_relu(call.kept[kRelu1], normed(call, kConv1, kNorm1Moments),
                         affine(call, kNorm1), out_);
    conv2_.forward(call.kept[kConv2], call.kept[kRelu1], call.parameters[kConv2Weight], nullptr);
    moments(call, kConv2, kNorm2Moments);
    cpu::batch_norm(call.output, normed(call, kConv2, kNorm2Moments), affine(call, kNorm2), out_);
    const float* skip = call.input;
    if (changes_) {
      shortcut_.forward(call.kept[kShortcut], call.input, call.parameters[kShortcutWeight],
                        nullptr);
      moments(call, kShortcut, kShortcutMoments);
      cpu::batch_norm(sum_gradient_.data(), normed(call, kShortcut, kShortcutMoments),
                      affine(call, kShortcutNorm), out_);
      skip = sum_gradient_.data();  // which a forward does not need for itself
    }
    cpu::add_and_relu(call.output, skip, out_.elements());
  }

  void backward_input(const CpuCall& call) override {
    float* conv1_gradient = call.left[0];
    float* conv2_gradient = call.left[1];
    cpu::relu_gradient(sum_gradient_.data(), call.output_gradient, call.output, out_.elements());
    cpu::batch_norm_gradients(conv2_gradient, norm_gradients(call, kNorm2), sum_gradient_.data(),
                              normed(call, kConv2, kNorm2Moments), call.parameters[kNorm2], out_);
    std::fill_n(relu1_gradient_.data(), out_.elements(), 0.0F);
    conv2_.add_input_gradient(relu1_gradient_.data(), conv2_gradient,
                              call.parameters[kConv2Weight]);
    cpu::relu_gradient(relu1_gradient_.data(), call.kept[kRelu1], out_.elements());
    cpu::batch_norm_gradients(conv1_gradient, norm_gradients(call, kNorm1), relu1_gradient_.data(),
                              normed(call, kConv1, kNorm1Moments), call.parameters[kNorm1], out_);
    if (changes_) {
      cpu::batch_norm_gradients(call.left[2], norm_gradients(call, kShortcutNorm),
                                sum_gradient_.data(), normed(call, kShortcut, kShortcutMoments),
                                call.parameters[kShortcutNorm], out_);
    }
    if (call.input_gradient == nullptr) return;
    if (changes_) {
      std::fill_n(call.input_gradient, input_elements_, 0.0F);
      shortcut_.add_input_gradient(call.input_gradient, call.left[2],
                                   call.parameters[kShortcutWeight]);
    } else {
      std::copy_n(sum_gradient_.data(), input_elements_, call.input_gradient);
    }
    conv1_.add_input_gradient(call.input_gradient, conv1_gradient, call.parameters[kConv1Weight]);
  }

  void backward_weight(const CpuCall& call) override {
    conv1_.weight_gradient(call.gradients[kConv1Weight], nullptr, call.left[0], call.input);
    conv2_.weight_gradient(call.gradients[kConv2Weight], nullptr, call.left[1], call.kept[kRelu1]);
    if (changes_)
      shortcut_.weight_gradient(call.gradients[kShortcutWeight], nullptr, call.left[2], call.input);
  }

 private:
  // Among the parameters; the shift of a norm follows its scale.
  static constexpr std::size_t kConv1Weight = 0;
  static constexpr std::size_t kNorm1 = 1;
  static constexpr std::size_t kConv2Weight = 3;
  static constexpr std::size_t kNorm2 = 4;
  static constexpr std::size_t kShortcutWeight = 6;
  static constexpr std::size_t kShortcutNorm = 7;
  // Among the kept; the rstd of a norm follows its mean.
  static constexpr std::size_t kConv1 = 0;
  static constexpr std::size_t kNorm1Moments = 1;
  static constexpr std::size_t kRelu1 = 3;
  static constexpr std::size_t kConv2 = 4;
  static constexpr std::size_t kNorm2Moments = 5;
  static constexpr std::size_t kShortcut = 7;
  static constexpr std::size_t kShortcutMoments = 8;

  void moments(const CpuCall& call, std::size_t x, std::size_t to) const {
    cpu::batch_moments(call.kept[to], call.kept[to + 1], call.kept[x], out_);
  }
  static Normed normed(const CpuCall& call, std::size_t x, std::size_t moments) {
    return {call.kept[x], call.kept[moments], call.kept[moments + 1]};
  }
  static cpu::ScaleAndShift affine(const CpuCall& call, std::size_t norm) {
    return {call.parameters[norm], call.parameters[norm + 1]};
  }
  static cpu::ScaleAndShiftGradients norm_gradients(const CpuCall& call, std::size_t norm) {
    return {call.gradients[norm], call.gradients[norm + 1]};
  }

  bool changes_;
  std::int64_t input_elements_;
  Images out_;
  cpu::Convolution conv1_;
  cpu::Convolution conv2_;
  cpu::Convolution shortcut_;
  Scratch sum_gradient_;  ///< Of what the last relu takes.
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
