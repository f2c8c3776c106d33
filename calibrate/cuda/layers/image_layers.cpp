// Convolutions, pooling, batch norms, and the residual block of them.
//
// SPDX-License-Identifier: MIT
#include <memory>

#include "base/bug.h"
#include "calibrate/cuda/layers/layer_parts.h"
#include "calibrate/cuda/libraries/convolutions.h"
#include "calibrate/cuda/libraries/image_kernels.h"

namespace plumbline::cuda {
namespace {

/// Over pictures [channels, height, width], one for each sample.
CudaConvolution window_over(const Shape& image, std::int64_t samples, std::int64_t outputs,
                            std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  PLUMBLINE_CHECK(image.extents.size() == 3, image.extents.size());
  return {samples, image.extents[0], image.extents[1], image.extents[2],
          outputs, kernel,           stride,           padding};
}

Channels channels_of(const Shape& image, std::int64_t samples) {
  PLUMBLINE_CHECK(image.extents.size() == 3, image.extents.size());
  return {samples, image.extents[0], image.extents[1] * image.extents[2]};
}

CudaConvolutions& convolutions_of(const CudaQueue& queue) {
  PLUMBLINE_CHECK(queue.convolutions != nullptr, "a queue without convolutions");
  return *queue.convolutions;
}

class ConvolutionLayer : public CudaLayer {
 public:
  ConvolutionLayer(const Conv2d& settings, const LayerSite& site)
      : type_(site.type),
        shape_(window_over(site.layer.input, site.batch, settings.channels, settings.kernel,
                           settings.stride, settings.padding)),
        output_(channels_of(site.layer.output, site.batch)),
        bias_(settings.bias) {
    Names names{{"weight"}};
    if (bias_) names.parameters.push_back("bias");
    check_names(site.layer, names);
    convolutions_of(site.queue).prepare(site.queue, type_, shape_);
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    if (bias_) bias_channels(queue, type_, call.output, call.parameters[1], output_);
    queue.convolutions->forward(queue, type_, shape_, call.output, call.input, call.parameters[0],
                                /*adds=*/bias_);
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    if (call.input_gradient == 0) return;
    queue.convolutions->input_gradient(queue, type_, shape_, call.input_gradient,
                                       call.output_gradient, call.parameters[0], /*adds=*/false);
  }
  void backward_weight(const CudaQueue& queue, const CudaCall& call) override {
    queue.convolutions->weight_gradient(queue, type_, shape_, call.gradients[0],
                                        call.output_gradient, call.input);
    if (bias_) add_channel_sums(queue, type_, call.gradients[1], call.output_gradient, output_);
  }

 private:
  ElementType type_;
  CudaConvolution shape_;
  Channels output_;
  bool bias_;
};

class MaxPoolLayer : public CudaLayer {
 public:
  MaxPoolLayer(const MaxPool& settings, const LayerSite& site)
      : type_(site.type),
        window_(window_over(site.layer.input, site.batch, 0, settings.kernel, settings.stride,
                            settings.padding)) {
    check_names(site.layer, {});
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    max_pool(queue, type_, window_, call.output, call.input);
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    if (call.input_gradient != 0)
      max_pool_gradient(queue, type_, window_, call.input_gradient, call.output_gradient,
                        call.input);
  }
  void backward_weight(const CudaQueue&, const CudaCall&) override {}

 private:
  ElementType type_;
  CudaConvolution window_;
};

/// All of its backward is in I, as its three gradients come from the same sums.
class BatchNormLayer : public CudaLayer {
 public:
  explicit BatchNormLayer(const LayerSite& site)
      : type_(site.type), shape_(channels_of(site.layer.input, site.batch)) {
    check_names(site.layer, {{"scale", "shift"}, {"mean", "rstd"}});
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    batch_norm(queue, type_, call.output, normed(call), {call.parameters[0], call.parameters[1]}, 0,
               /*rectifies=*/false, shape_);
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    batch_norm_gradient(queue, type_, call.input_gradient, {call.gradients[0], call.gradients[1]},
                        call.output_gradient, 0, normed(call), call.parameters[0], shape_);
  }
  void backward_weight(const CudaQueue&, const CudaCall&) override {}

 private:
  static Normed normed(const CudaCall& call) { return {call.input, call.kept[0], call.kept[1]}; }

  ElementType type_;
  Channels shape_;
};

/// A relu goes with the norm before it, and the gradient passes its gate in the norm's backward.
class ResidualLayer : public CudaLayer {
 public:
  ResidualLayer(const ResidualBlock& settings, const LayerSite& site)
      : type_(site.type),
        conv1_(window_over(site.layer.input, site.batch, settings.channels, 3, settings.stride, 1)),
        conv2_(window_over(site.layer.output, site.batch, settings.channels, 3, 1, 1)),
        shortcut_(
            window_over(site.layer.input, site.batch, settings.channels, 1, settings.stride, 0)),
        output_(channels_of(site.layer.output, site.batch)),
        changes_(settings.stride != 1 || settings.channels != site.layer.input.extents.front()),
        gradient_(site.scratch(output_.elements())) {
    Names names{{"conv1.weight", "norm1.scale", "norm1.shift", "conv2.weight", "norm2.scale",
                 "norm2.shift"},
                {"conv1", "norm1.mean", "norm1.rstd", "relu1", "conv2", "norm2.mean", "norm2.rstd"},
                {"conv1.gradient", "conv2.gradient"}};
    CudaConvolutions& convolutions = convolutions_of(site.queue);
    convolutions.prepare(site.queue, type_, conv1_);
    convolutions.prepare(site.queue, type_, conv2_);
    if (changes_) {
      for (const char* name : {"shortcut.weight", "shortcut_norm.scale", "shortcut_norm.shift"})
        names.parameters.emplace_back(name);
      for (const char* name : {"shortcut", "shortcut_norm.mean", "shortcut_norm.rstd"})
        names.kept.emplace_back(name);
      names.left.emplace_back("shortcut.gradient");
      convolutions.prepare(site.queue, type_, shortcut_);
    }
    check_names(site.layer, names);
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    CudaConvolutions& convolutions = *queue.convolutions;
    const CUdeviceptr relu1 = call.kept[kRelu1];
    convolutions.forward(queue, type_, conv1_, call.kept[kConv1], call.input,
                         call.parameters[kWeight1], false);
    batch_norm(queue, type_, relu1, norm1(call), of_norm(call.parameters, kNorm1), 0, true,
               output_);
    convolutions.forward(queue, type_, conv2_, call.kept[kConv2], relu1, call.parameters[kWeight2],
                         false);
    CUdeviceptr skip = call.input;
    if (changes_) {
      skip = gradient_.data();
      convolutions.forward(queue, type_, shortcut_, call.kept[kShortcut], call.input,
                           call.parameters[kShortcutWeight], false);
      batch_norm(queue, type_, skip, shortcut_norm(call), of_norm(call.parameters, kShortcutNorm),
                 0, false, output_);
    }
    batch_norm(queue, type_, call.output, norm2(call), of_norm(call.parameters, kNorm2), skip, true,
               output_);
  }

  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    CudaConvolutions& convolutions = *queue.convolutions;
    const CUdeviceptr conv1_gradient = call.left[0];
    const CUdeviceptr conv2_gradient = call.left[1];
    batch_norm_gradient(queue, type_, conv2_gradient, of_norm(call.gradients, kNorm2),
                        call.output_gradient, call.output, norm2(call), call.parameters[kNorm2],
                        output_);
    convolutions.input_gradient(queue, type_, conv2_, gradient_.data(), conv2_gradient,
                                call.parameters[kWeight2], false);
    batch_norm_gradient(queue, type_, conv1_gradient, of_norm(call.gradients, kNorm1),
                        gradient_.data(), call.kept[kRelu1], norm1(call), call.parameters[kNorm1],
                        output_);
    if (changes_) {
      batch_norm_gradient(queue, type_, call.left[2], of_norm(call.gradients, kShortcutNorm),
                          call.output_gradient, call.output, shortcut_norm(call),
                          call.parameters[kShortcutNorm], output_);
    }
    if (call.input_gradient == 0) return;
    // First what the shortcut hands back, then what comes through the convolutions.
    if (changes_) {
      convolutions.input_gradient(queue, type_, shortcut_, call.input_gradient, call.left[2],
                                  call.parameters[kShortcutWeight], false);
    } else {
      relu_gradient(queue, type_, call.input_gradient, call.output_gradient, call.output,
                    output_.elements());
    }
    convolutions.input_gradient(queue, type_, conv1_, call.input_gradient, conv1_gradient,
                                call.parameters[kWeight1], true);
  }

  void backward_weight(const CudaQueue& queue, const CudaCall& call) override {
    CudaConvolutions& convolutions = *queue.convolutions;
    convolutions.weight_gradient(queue, type_, conv1_, call.gradients[kWeight1], call.left[0],
                                 call.input);
    convolutions.weight_gradient(queue, type_, conv2_, call.gradients[kWeight2], call.left[1],
                                 call.kept[kRelu1]);
    if (changes_) {
      convolutions.weight_gradient(queue, type_, shortcut_, call.gradients[kShortcutWeight],
                                   call.left[2], call.input);
    }
  }

 private:
  // Places in the lists of the layer.
  static constexpr std::size_t kWeight1 = 0;
  static constexpr std::size_t kNorm1 = 1;
  static constexpr std::size_t kWeight2 = 3;
  static constexpr std::size_t kNorm2 = 4;
  static constexpr std::size_t kShortcutWeight = 6;
  static constexpr std::size_t kShortcutNorm = 7;
  static constexpr std::size_t kConv1 = 0;
  static constexpr std::size_t kRelu1 = 3;
  static constexpr std::size_t kConv2 = 4;
  static constexpr std::size_t kShortcut = 7;

  static ScaleShift of_norm(const std::vector<CUdeviceptr>& list, std::size_t first) {
    return {list[first], list[first + 1]};
  }
  /// The moments follow what was normed, but for relu1 between.
  static Normed norm1(const CudaCall& call) {
    return {call.kept[kConv1], call.kept[kConv1 + 1], call.kept[kConv1 + 2]};
  }
  static Normed norm2(const CudaCall& call) {
    return {call.kept[kConv2], call.kept[kConv2 + 1], call.kept[kConv2 + 2]};
  }
  static Normed shortcut_norm(const CudaCall& call) {
    return {call.kept[kShortcut], call.kept[kShortcut + 1], call.kept[kShortcut + 2]};
  }

  ElementType type_;
  CudaConvolution conv1_;
  CudaConvolution conv2_;
  CudaConvolution shortcut_;
  Channels output_;
  bool changes_;          ///< The shape: the shortcut is a convolution.
  CudaScratch gradient_;  ///< Of relu1; in F the normed shortcut.
};

}  // namespace

std::unique_ptr<CudaLayer> make_layer(const Conv2d& settings, const LayerSite& site) {
  return std::make_unique<ConvolutionLayer>(settings, site);
}
std::unique_ptr<CudaLayer> make_layer(const MaxPool& settings, const LayerSite& site) {
  return std::make_unique<MaxPoolLayer>(settings, site);
}
std::unique_ptr<CudaLayer> make_layer(const BatchNorm&, const LayerSite& site) {
  return std::make_unique<BatchNormLayer>(site);
}
std::unique_ptr<CudaLayer> make_layer(const ResidualBlock& settings, const LayerSite& site) {
  return std::make_unique<ResidualLayer>(settings, site);
}

}  // namespace plumbline::cuda
