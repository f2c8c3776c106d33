// The layers of pictures, one small function for each pass.
//
// SPDX-License-Identifier: MIT
#include <utility>

#include "base/bug.h"
#include "calibrate/training/reference_math.h"
#include "calibrate/training/reference_passes.h"

namespace plumbline::reference {

/// A window over pictures of a shape, one sample each.
Window reference_window(const Shape& image, std::int64_t samples, std::int64_t kernel,
                        std::int64_t stride, std::int64_t padding) {
  const std::vector<std::int64_t>& extents = image.extents;
  PLUMBLINE_CHECK(extents.size() == 3, extents.size());
  return {samples, extents[0], extents[1], extents[2], kernel, stride, padding};
}

/// Height x width.
std::int64_t area_of(const Shape& image) {
  PLUMBLINE_CHECK(image.extents.size() == 3, image.extents.size());
  return image.extents[1] * image.extents[2];
}

// conv2d

Window window_of(const Conv2d& conv, const ReferenceCall& call) {
  return reference_window(call.layer.input, call.batch, conv.kernel, conv.stride, conv.padding);
}

ForwardMade forward(const Conv2d& conv, const ForwardPass& pass) {
  Values y = convolution(pass.input(), pass.parameter("weight"), window_of(conv, pass.call));
  if (conv.bias) add_to_channels(y, pass.parameter("bias"), area_of(pass.call.layer.output));
  return {std::move(y)};
}

InputMade backward_input(const Conv2d& conv, const InputPass& pass) {
  return {convolution_input_gradient(pass.output_gradient, pass.parameter("weight"),
                                     window_of(conv, pass.call))};
}

NamedList backward_weight(const Conv2d& conv, const WeightPass& pass) {
  NamedList made{{"weight", convolution_weight_gradient(pass.output_gradient, pass.input(),
                                                        window_of(conv, pass.call))}};
  if (conv.bias)
    made.push_back({"bias", channel_sums(pass.output_gradient, conv.channels,
                                         area_of(pass.call.layer.output))});
  return made;
}

// max_pool

Window window_of(const MaxPool& pool, const ReferenceCall& call) {
  return reference_window(call.layer.input, call.batch, pool.kernel, pool.stride, pool.padding);
}

ForwardMade forward(const MaxPool& pool, const ForwardPass& pass) {
  return {max_pool(pass.input(), window_of(pool, pass.call))};
}

InputMade backward_input(const MaxPool& pool, const InputPass& pass) {
  return {max_pool_gradient(pass.output_gradient, pass.input(), window_of(pool, pass.call))};
}

NamedList backward_weight(const MaxPool&, const WeightPass&) { return {}; }

// batch_norm

ForwardMade forward(const BatchNorm&, const ForwardPass& pass) {
  Normalized norm = batch_norm(pass.input(), pass.parameter("scale"), pass.parameter("shift"),
                               area_of(pass.call.layer.input));
  return {std::move(norm.output), {{"mean", norm.mean}, {"rstd", norm.rstd}}};
}

/// The backward of a batch norm. Its parameter gradients come with the input gradient.
struct BatchNormBackward {
  Values input;
  Values scale;
  Values shift;
};

BatchNormBackward batch_norm_backward(const Values& output_gradient, const Values& x,
                                      Moments moments, const Values& scale, std::int64_t area) {
  return {batch_norm_input_gradient(output_gradient, x, moments, scale, area),
          batch_norm_scale_gradient(output_gradient, x, moments, area),
          channel_sums(output_gradient, std::ssize(scale), area)};
}

InputMade backward_input(const BatchNorm&, const InputPass& pass) {
  BatchNormBackward norm = batch_norm_backward(
      pass.output_gradient, pass.input(), {pass.kept("mean"), pass.kept("rstd")},
      pass.parameter("scale"), area_of(pass.call.layer.input));
  return {std::move(norm.input), {}, {{"scale", norm.scale}, {"shift", norm.shift}}};
}

NamedList backward_weight(const BatchNorm&, const WeightPass&) { return {}; }

// flatten

ForwardMade forward(const Flatten&, const ForwardPass& pass) { return {pass.input()}; }

InputMade backward_input(const Flatten&, const InputPass& pass) { return {pass.output_gradient}; }

NamedList backward_weight(const Flatten&, const WeightPass&) { return {}; }

// residual_block

/// The windows of its convolutions, and whether the shape changes.
struct ResidualShape {
  Window conv1;
  Window conv2;
  Window shortcut;
  bool changes = false;
  std::int64_t area = 0;  ///< Height x width of the output.
};

ResidualShape residual_shape(const ResidualBlock& block, const ReferenceCall& call) {
  const Shape& input = call.layer.input;
  const Shape& output = call.layer.output;
  return {reference_window(input, call.batch, 3, block.stride, 1),
          reference_window(output, call.batch, 3, 1, 1),
          reference_window(input, call.batch, 1, block.stride, 0),
          block.stride != 1 || block.channels != input.extents[0], area_of(output)};
}

ForwardMade forward(const ResidualBlock& block, const ForwardPass& pass) {
  const ResidualShape shape = residual_shape(block, pass.call);
  const Values conv1 = convolution(pass.input(), pass.parameter("conv1.weight"), shape.conv1);
  const Normalized norm1 =
      batch_norm(conv1, pass.parameter("norm1.scale"), pass.parameter("norm1.shift"), shape.area);
  const Values relu1 = relu(norm1.output);
  const Values conv2 = convolution(relu1, pass.parameter("conv2.weight"), shape.conv2);
  const Normalized norm2 =
      batch_norm(conv2, pass.parameter("norm2.scale"), pass.parameter("norm2.shift"), shape.area);
  NamedList kept{{"conv1", conv1},          {"norm1.mean", norm1.mean}, {"norm1.rstd", norm1.rstd},
                 {"relu1", relu1},          {"conv2", conv2},           {"norm2.mean", norm2.mean},
                 {"norm2.rstd", norm2.rstd}};
  Values sum = norm2.output;
  if (shape.changes) {
    Values shortcut = convolution(pass.input(), pass.parameter("shortcut.weight"), shape.shortcut);
    Normalized norm = batch_norm(shortcut, pass.parameter("shortcut_norm.scale"),
                                 pass.parameter("shortcut_norm.shift"), shape.area);
    add(sum, norm.output);
    kept.push_back({"shortcut", std::move(shortcut)});
    kept.push_back({"shortcut_norm.mean", std::move(norm.mean)});
    kept.push_back({"shortcut_norm.rstd", std::move(norm.rstd)});
  } else {
    add(sum, pass.input());
  }
  return {relu(sum), std::move(kept)};
}

InputMade backward_input(const ResidualBlock& block, const InputPass& pass) {
  const ResidualShape shape = residual_shape(block, pass.call);
  const Values sum_gradient = relu_gradient(pass.output_gradient, pass.output());
  const BatchNormBackward norm2 = batch_norm_backward(
      sum_gradient, pass.kept("conv2"), {pass.kept("norm2.mean"), pass.kept("norm2.rstd")},
      pass.parameter("norm2.scale"), shape.area);
  const Values norm1_gradient = relu_gradient(
      convolution_input_gradient(norm2.input, pass.parameter("conv2.weight"), shape.conv2),
      pass.kept("relu1"));
  const BatchNormBackward norm1 = batch_norm_backward(
      norm1_gradient, pass.kept("conv1"), {pass.kept("norm1.mean"), pass.kept("norm1.rstd")},
      pass.parameter("norm1.scale"), shape.area);
  InputMade made{
      convolution_input_gradient(norm1.input, pass.parameter("conv1.weight"), shape.conv1),
      {{"conv1.gradient", norm1.input}, {"conv2.gradient", norm2.input}},
      {{"norm1.scale", norm1.scale},
       {"norm1.shift", norm1.shift},
       {"norm2.scale", norm2.scale},
       {"norm2.shift", norm2.shift}}};
  if (!shape.changes) {
    add(made.input_gradient, sum_gradient);
    return made;
  }
  BatchNormBackward norm =
      batch_norm_backward(sum_gradient, pass.kept("shortcut"),
                          {pass.kept("shortcut_norm.mean"), pass.kept("shortcut_norm.rstd")},
                          pass.parameter("shortcut_norm.scale"), shape.area);
  add(made.input_gradient,
      convolution_input_gradient(norm.input, pass.parameter("shortcut.weight"), shape.shortcut));
  made.left.push_back({"shortcut.gradient", std::move(norm.input)});
  made.parameter_gradients.push_back({"shortcut_norm.scale", std::move(norm.scale)});
  made.parameter_gradients.push_back({"shortcut_norm.shift", std::move(norm.shift)});
  return made;
}

NamedList backward_weight(const ResidualBlock& block, const WeightPass& pass) {
  const ResidualShape shape = residual_shape(block, pass.call);
  NamedList made{{"conv1.weight", convolution_weight_gradient(pass.left("conv1.gradient"),
                                                              pass.input(), shape.conv1)},
                 {"conv2.weight", convolution_weight_gradient(pass.left("conv2.gradient"),
                                                              pass.kept("relu1"), shape.conv2)}};
  if (shape.changes) {
    made.push_back({"shortcut.weight", convolution_weight_gradient(pass.left("shortcut.gradient"),
                                                                   pass.input(), shape.shortcut)});
  }
  return made;
}

}  // namespace plumbline::reference
