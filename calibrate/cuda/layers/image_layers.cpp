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

/// A window over pictures [channels, height, width], one per sample.
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

/// The scale and shift of a norm, from the list of parameters or of gradients.
ScaleShift affine(const std::vector<CUdeviceptr>& list, const NormSlots& slots) {
  return {list[slots.scale], list[slots.shift]};
}

class ConvolutionLayer : public CudaLayer {
 public:
  ConvolutionLayer(const Conv2d& settings, const LayerSite& site)
      : slots_(dense_slots(site.layer)),
        type_(site.type),
        shape_(window_over(site.layer.input, site.batch, settings.channels, settings.kernel,
                           settings.stride, settings.padding)),
        output_(channels_of(site.layer.output, site.batch)) {
    convolutions_of(site.queue).prepare(site.queue, type_, shape_);
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    if (has_bias()) bias_channels(queue, type_, call.output, call.parameters[slots_.bias], output_);
    queue.convolutions->forward(queue, type_, shape_, call.output, call.input,
                                call.parameters[slots_.weight], /*adds=*/has_bias());
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    if (call.input_gradient == 0) return;
    queue.convolutions->input_gradient(queue, type_, shape_, call.input_gradient,
                                       call.output_gradient, call.parameters[slots_.weight],
                                       /*adds=*/false);
  }
  void backward_weight(const CudaQueue& queue, const CudaCall& call) override {
    queue.convolutions->weight_gradient(queue, type_, shape_, call.gradients[slots_.weight],
                                        call.output_gradient, call.input);
    if (has_bias())
      add_channel_sums(queue, type_, call.gradients[slots_.bias], call.output_gradient, output_);
  }

 private:
  bool has_bias() const { return slots_.bias != kNoSlot; }

  DenseSlots slots_;
  ElementType type_;
  CudaConvolution shape_;
  Channels output_;
};

class MaxPoolLayer : public CudaLayer {
 public:
  MaxPoolLayer(const MaxPool& settings, const LayerSite& site)
      : type_(site.type),
        window_(window_over(site.layer.input, site.batch, 0, settings.kernel, settings.stride,
                            settings.padding)) {
    check_no_slots(site.layer);
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

/// A batch norm. All of its backward is in I, as its three gradients come from the same sums.
class BatchNormLayer : public CudaLayer {
 public:
  explicit BatchNormLayer(const LayerSite& site)
      : slots_(norm_slots(site.layer)),
        type_(site.type),
        shape_(channels_of(site.layer.input, site.batch)) {}

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    batch_norm(queue, type_, call.output, normed(call, call.input, slots_),
               affine(call.parameters, slots_), 0, /*rectifies=*/false, shape_);
  }
  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    batch_norm_gradient(queue, type_, call.input_gradient, affine(call.gradients, slots_),
                        call.output_gradient, 0, normed(call, call.input, slots_),
                        call.parameters[slots_.scale], shape_);
  }
  void backward_weight(const CudaQueue&, const CudaCall&) override {}

 private:
  NormSlots slots_;
  ElementType type_;
  Channels shape_;
};

/// A residual block. Each relu is part of the norm before it, and the gradient passes its gate in
/// the norm's backward.
class ResidualLayer : public CudaLayer {
 public:
  ResidualLayer(const ResidualBlock& settings, const LayerSite& site)
      : slots_(residual_slots(site.layer)),
        type_(site.type),
        conv1_(window_over(site.layer.input, site.batch, settings.channels, 3, settings.stride, 1)),
        conv2_(window_over(site.layer.output, site.batch, settings.channels, 3, 1, 1)),
        shortcut_(
            window_over(site.layer.input, site.batch, settings.channels, 1, settings.stride, 0)),
        output_(channels_of(site.layer.output, site.batch)),
        gradient_(site.scratch(output_.elements())) {
    CudaConvolutions& convolutions = convolutions_of(site.queue);
    convolutions.prepare(site.queue, type_, conv1_);
    convolutions.prepare(site.queue, type_, conv2_);
    if (slots_.shortcut) convolutions.prepare(site.queue, type_, shortcut_);
  }

  void forward(const CudaQueue& queue, const CudaCall& call) override {
    const CUdeviceptr relu1 = call.kept[slots_.relu1];
    convolve(queue, call, conv1_, call.input, slots_.first);
    norm(queue, call, slots_.first, relu1, 0, /*rectifies=*/true);
    convolve(queue, call, conv2_, relu1, slots_.second);
    CUdeviceptr skip = call.input;
    if (slots_.shortcut) {
      skip = gradient_.data();
      convolve(queue, call, shortcut_, call.input, *slots_.shortcut);
      norm(queue, call, *slots_.shortcut, skip, 0, /*rectifies=*/false);
    }
    norm(queue, call, slots_.second, call.output, skip, /*rectifies=*/true);
  }

  void backward_input(const CudaQueue& queue, const CudaCall& call) override {
    norm_backward(queue, call, slots_.second, call.output_gradient, call.output);
    input_gradient(queue, call, conv2_, gradient_.data(), slots_.second, /*adds=*/false);
    norm_backward(queue, call, slots_.first, gradient_.data(), call.kept[slots_.relu1]);
    if (slots_.shortcut)
      norm_backward(queue, call, *slots_.shortcut, call.output_gradient, call.output);
    if (call.input_gradient == 0) return;
    // First the shortcut's gradient, then the gradient through the convolutions.
    if (slots_.shortcut) {
      input_gradient(queue, call, shortcut_, call.input_gradient, *slots_.shortcut, /*adds=*/false);
    } else {
      relu_gradient(queue, type_, call.input_gradient, call.output_gradient, call.output,
                    output_.elements());
    }
    input_gradient(queue, call, conv1_, call.input_gradient, slots_.first, /*adds=*/true);
  }

  void backward_weight(const CudaQueue& queue, const CudaCall& call) override {
    weight_gradient(queue, call, conv1_, call.input, slots_.first);
    weight_gradient(queue, call, conv2_, call.kept[slots_.relu1], slots_.second);
    if (slots_.shortcut) weight_gradient(queue, call, shortcut_, call.input, *slots_.shortcut);
  }

 private:
  void convolve(const CudaQueue& queue, const CudaCall& call, const CudaConvolution& shape,
                CUdeviceptr input, const NormedConvolutionSlots& slots) const {
    queue.convolutions->forward(queue, type_, shape, call.kept[slots.output], input,
                                call.parameters[slots.weight], /*adds=*/false);
  }
  void norm(const CudaQueue& queue, const CudaCall& call, const NormedConvolutionSlots& slots,
            CUdeviceptr output, CUdeviceptr skip, bool rectifies) const {
    batch_norm(queue, type_, output, normed(call, call.kept[slots.output], slots.norm),
               affine(call.parameters, slots.norm), skip, rectifies, output_);
  }
  /// Takes the gradient of the norm's output through the relu's gate and the norm to the
  /// convolution's output.
  void norm_backward(const CudaQueue& queue, const CudaCall& call,
                     const NormedConvolutionSlots& slots, CUdeviceptr output_gradient,
                     CUdeviceptr rectified) const {
    batch_norm_gradient(queue, type_, call.left[slots.output_gradient],
                        affine(call.gradients, slots.norm), output_gradient, rectified,
                        normed(call, call.kept[slots.output], slots.norm),
                        call.parameters[slots.norm.scale], output_);
  }
  void input_gradient(const CudaQueue& queue, const CudaCall& call, const CudaConvolution& shape,
                      CUdeviceptr to, const NormedConvolutionSlots& slots, bool adds) const {
    queue.convolutions->input_gradient(queue, type_, shape, to, call.left[slots.output_gradient],
                                       call.parameters[slots.weight], adds);
  }
  void weight_gradient(const CudaQueue& queue, const CudaCall& call, const CudaConvolution& shape,
                       CUdeviceptr input, const NormedConvolutionSlots& slots) const {
    queue.convolutions->weight_gradient(queue, type_, shape, call.gradients[slots.weight],
                                        call.left[slots.output_gradient], input);
  }

  ResidualSlots slots_;
  ElementType type_;
  CudaConvolution conv1_;
  CudaConvolution conv2_;
  CudaConvolution shortcut_;
  Channels output_;
  CudaScratch gradient_;  ///< The gradient of relu1; in F the normed shortcut.
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
