// Each kind of layer put together from its pieces, one small function for each pass.
// SPDX-License-Identifier: MIT
#include "calibrate/reference.h"

#include <cmath>
#include <string_view>
#include <utility>

#include "calibrate/reference_math.h"
#include "models/bug.h"

namespace plumbline {
namespace {

// The tensors of a layer go by their names here. What a pass makes is listed in the order of the
// layer, and `arrange` holds it to the layer's names and sizes.

struct NamedValues {
  std::string_view name;
  Values values;
};
using NamedList = std::vector<NamedValues>;

/// The values of a name, out of a list parallel to `tensors`.
template <class Tensor>
const Values& find(const std::vector<Tensor>& tensors, const std::vector<Values>& values,
                   std::string_view name) {
  PLUMBLINE_CHECK(tensors.size() == values.size(), name, tensors.size(), values.size());
  std::size_t i = 0;
  while (i < tensors.size() && tensors[i].name != name) ++i;
  PLUMBLINE_CHECK(i < tensors.size(), name, tensors.size());
  return values[i];
}

void check_elements(std::string_view name, const Values& values, std::int64_t elements) {
  PLUMBLINE_CHECK(std::ssize(values) == elements, name, values.size(), elements);
}

/// What each pass sees: the accessors lead to what the contract lets it read, so W has no
/// parameters.
struct ForwardPass {
  const ReferenceCall& call;

  const Values& input() const { return call.input; }
  const Values& parameter(std::string_view name) const {
    return find(call.layer.parameters, call.parameters, name);
  }
};

struct InputPass {
  const ReferenceCall& call;
  const ReferenceForward& forward;
  const Values& output_gradient;

  const Values& input() const { return call.input; }
  const Values& output() const { return forward.output; }
  const Values& parameter(std::string_view name) const {
    return find(call.layer.parameters, call.parameters, name);
  }
  const Values& kept(std::string_view name) const {
    return find(call.layer.kept, forward.kept, name);
  }
};

struct WeightPass {
  const ReferenceCall& call;
  const ReferenceForward& forward;
  const ReferenceBackward& backward;
  const Values& output_gradient;

  const Values& input() const { return call.input; }
  const Values& output() const { return forward.output; }
  const Values& kept(std::string_view name) const {
    return find(call.layer.kept, forward.kept, name);
  }
  const Values& left(std::string_view name) const {
    return find(call.layer.left_for_weights, backward.left, name);
  }
};

/// What the passes make; W makes a list of gradients of parameters.
struct ForwardMade {
  Values output;
  NamedList kept{};
};
struct InputMade {
  Values input_gradient;
  NamedList left{};
  NamedList parameter_gradients{};  ///< Of those that come with the input.
};

std::int64_t last_extent(const Shape& shape) {
  PLUMBLINE_CHECK(!shape.extents.empty(), shape.extents.size());
  return shape.extents.back();
}

// linear

ForwardMade forward(const Linear& linear, const ForwardPass& pass) {
  Values y = reference::product(pass.input(), pass.parameter("weight"),
                                last_extent(pass.call.layer.input));
  if (linear.bias) reference::add_to_rows(y, pass.parameter("bias"));
  return {std::move(y)};
}

InputMade backward_input(const Linear&, const InputPass& pass) {
  return {reference::product_input_gradient(pass.output_gradient, pass.parameter("weight"),
                                            last_extent(pass.call.layer.input))};
}

NamedList backward_weight(const Linear& linear, const WeightPass& pass) {
  NamedList made{
      {"weight", reference::product_weight_gradient(pass.output_gradient, pass.input(),
                                                    last_extent(pass.call.layer.input))}};
  if (linear.bias)
    made.push_back({"bias", reference::column_sums(pass.output_gradient, linear.features)});
  return made;
}

// relu

ForwardMade forward(const Relu&, const ForwardPass& pass) {
  return {reference::relu(pass.input())};
}

InputMade backward_input(const Relu&, const InputPass& pass) {
  return {reference::relu_gradient(pass.output_gradient, pass.output())};
}

NamedList backward_weight(const Relu&, const WeightPass&) { return {}; }

// gelu

ForwardMade forward(const Gelu&, const ForwardPass& pass) {
  return {reference::gelu(pass.input())};
}

InputMade backward_input(const Gelu&, const InputPass& pass) {
  return {reference::gelu_gradient(pass.output_gradient, pass.input())};
}

NamedList backward_weight(const Gelu&, const WeightPass&) { return {}; }

// layer_norm

ForwardMade forward(const LayerNorm&, const ForwardPass& pass) {
  reference::Normalized norm =
      reference::layer_norm(pass.input(), pass.parameter("scale"), pass.parameter("shift"));
  return {std::move(norm.output), {{"mean", norm.mean}, {"rstd", norm.rstd}}};
}

InputMade backward_input(const LayerNorm&, const InputPass& pass) {
  return {reference::layer_norm_input_gradient(pass.output_gradient, pass.input(),
                                               {pass.kept("mean"), pass.kept("rstd")},
                                               pass.parameter("scale"))};
}

NamedList backward_weight(const LayerNorm&, const WeightPass& pass) {
  return {
      {"scale", reference::layer_norm_scale_gradient(pass.output_gradient, pass.input(),
                                                     {pass.kept("mean"), pass.kept("rstd")})},
      {"shift", reference::column_sums(pass.output_gradient, last_extent(pass.call.layer.input))}};
}

// The norm at the start of a block.

reference::Normalized block_norm(const ForwardPass& pass) {
  return reference::layer_norm(pass.input(), pass.parameter("norm.scale"),
                               pass.parameter("norm.shift"));
}

Values block_norm_input_gradient(const InputPass& pass, const Values& norm_output_gradient) {
  return reference::layer_norm_input_gradient(norm_output_gradient, pass.input(),
                                              {pass.kept("norm.mean"), pass.kept("norm.rstd")},
                                              pass.parameter("norm.scale"));
}

Values block_norm_scale_gradient(const WeightPass& pass) {
  return reference::layer_norm_scale_gradient(pass.left("norm.output_gradient"), pass.input(),
                                              {pass.kept("norm.mean"), pass.kept("norm.rstd")});
}

Values block_norm_shift_gradient(const WeightPass& pass) {
  return reference::column_sums(pass.left("norm.output_gradient"),
                                last_extent(pass.call.layer.input));
}

// attention_block

reference::Attention attention_shape(const AttentionBlock& block, const ReferenceCall& call) {
  const std::vector<std::int64_t>& extents = call.layer.input.extents;
  PLUMBLINE_CHECK(extents.size() == 2, extents.size());
  return {call.batch, extents[0], extents[1], block.heads, block.causal};
}

ForwardMade forward(const AttentionBlock& block, const ForwardPass& pass) {
  const reference::Attention shape = attention_shape(block, pass.call);
  const reference::Normalized norm = block_norm(pass);
  Values qkv = reference::product(norm.output, pass.parameter("qkv.weight"), shape.features);
  reference::add_to_rows(qkv, pass.parameter("qkv.bias"));
  const reference::AttentionForward attended = reference::attention(qkv, shape);
  Values y =
      reference::product(attended.context, pass.parameter("projection.weight"), shape.features);
  reference::add_to_rows(y, pass.parameter("projection.bias"));
  reference::add(y, pass.input());
  return {std::move(y),
          {{"norm.mean", norm.mean},
           {"norm.rstd", norm.rstd},
           {"norm.output", norm.output},
           {"qkv", qkv},
           {"logsumexp", attended.logsumexp},
           {"context", attended.context}}};
}

InputMade backward_input(const AttentionBlock& block, const InputPass& pass) {
  const reference::Attention shape = attention_shape(block, pass.call);
  const Values context_gradient = reference::product_input_gradient(
      pass.output_gradient, pass.parameter("projection.weight"), shape.features);
  const Values qkv_gradient = reference::attention_gradient(context_gradient, pass.kept("qkv"),
                                                            pass.kept("logsumexp"), shape);
  const Values norm_output_gradient =
      reference::product_input_gradient(qkv_gradient, pass.parameter("qkv.weight"), shape.features);
  Values input_gradient = block_norm_input_gradient(pass, norm_output_gradient);
  reference::add(input_gradient, pass.output_gradient);
  return {std::move(input_gradient),
          {{"qkv.gradient", qkv_gradient}, {"norm.output_gradient", norm_output_gradient}}};
}

NamedList backward_weight(const AttentionBlock&, const WeightPass& pass) {
  const std::int64_t features = last_extent(pass.call.layer.input);
  const Values& qkv_gradient = pass.left("qkv.gradient");
  return {{"norm.scale", block_norm_scale_gradient(pass)},
          {"norm.shift", block_norm_shift_gradient(pass)},
          {"qkv.weight",
           reference::product_weight_gradient(qkv_gradient, pass.kept("norm.output"), features)},
          {"qkv.bias", reference::column_sums(qkv_gradient, 3 * features)},
          {"projection.weight", reference::product_weight_gradient(pass.output_gradient,
                                                                   pass.kept("context"), features)},
          {"projection.bias", reference::column_sums(pass.output_gradient, features)}};
}

// mlp_block

ForwardMade forward(const MlpBlock& block, const ForwardPass& pass) {
  const reference::Normalized norm = block_norm(pass);
  Values hidden = reference::product(norm.output, pass.parameter("up.weight"),
                                     last_extent(pass.call.layer.input));
  reference::add_to_rows(hidden, pass.parameter("up.bias"));
  const Values gelu = reference::gelu(hidden);
  Values y = reference::product(gelu, pass.parameter("down.weight"), block.hidden);
  reference::add_to_rows(y, pass.parameter("down.bias"));
  reference::add(y, pass.input());
  return {std::move(y),
          {{"norm.mean", norm.mean},
           {"norm.rstd", norm.rstd},
           {"norm.output", norm.output},
           {"hidden", hidden},
           {"gelu", gelu}}};
}

InputMade backward_input(const MlpBlock& block, const InputPass& pass) {
  const Values gelu_gradient = reference::product_input_gradient(
      pass.output_gradient, pass.parameter("down.weight"), block.hidden);
  const Values hidden_gradient = reference::gelu_gradient(gelu_gradient, pass.kept("hidden"));
  const Values norm_output_gradient = reference::product_input_gradient(
      hidden_gradient, pass.parameter("up.weight"), last_extent(pass.call.layer.input));
  Values input_gradient = block_norm_input_gradient(pass, norm_output_gradient);
  reference::add(input_gradient, pass.output_gradient);
  return {std::move(input_gradient),
          {{"hidden.gradient", hidden_gradient}, {"norm.output_gradient", norm_output_gradient}}};
}

NamedList backward_weight(const MlpBlock& block, const WeightPass& pass) {
  const std::int64_t features = last_extent(pass.call.layer.input);
  const Values& hidden_gradient = pass.left("hidden.gradient");
  return {{"norm.scale", block_norm_scale_gradient(pass)},
          {"norm.shift", block_norm_shift_gradient(pass)},
          {"up.weight",
           reference::product_weight_gradient(hidden_gradient, pass.kept("norm.output"), features)},
          {"up.bias", reference::column_sums(hidden_gradient, block.hidden)},
          {"down.weight", reference::product_weight_gradient(pass.output_gradient,
                                                             pass.kept("gelu"), block.hidden)},
          {"down.bias", reference::column_sums(pass.output_gradient, features)}};
}

// embedding

ForwardMade forward(const Embedding& embedding, const ForwardPass& pass) {
  Values y = reference::lookup(pass.input(), pass.parameter("weight"), embedding.features);
  // Every sample is one row of tokens x features.
  if (embedding.positions) reference::add_to_rows(y, pass.parameter("positions"));
  return {std::move(y)};
}

InputMade backward_input(const Embedding&, const InputPass&) { return {}; }

NamedList backward_weight(const Embedding& embedding, const WeightPass& pass) {
  NamedList made{{"weight", reference::lookup_gradient(pass.output_gradient, pass.input(),
                                                       embedding.vocabulary)}};
  if (embedding.positions)
    made.push_back({"positions", reference::column_sums(pass.output_gradient,
                                                        pass.call.layer.output.elements())});
  return made;
}

// head

ForwardMade forward(const Head& head, const ForwardPass& pass) {
  const ReferenceCall& call = pass.call;
  NamedList kept;
  Values x = pass.input();
  if (head.norm) {
    const reference::Normalized norm = block_norm(pass);
    kept = {{"norm.mean", norm.mean}, {"norm.rstd", norm.rstd}, {"norm.output", norm.output}};
    x = norm.output;
  }
  Values logits = reference::product(x, pass.parameter("weight"), last_extent(call.layer.input));
  if (head.bias) reference::add_to_rows(logits, pass.parameter("bias"));
  reference::CrossEntropy result =
      reference::cross_entropy(logits, call.labels, head.classes, call.batch);
  kept.push_back({"probabilities", std::move(result.probabilities)});
  return {std::move(result.loss), std::move(kept)};
}

/// Both halves of the backward make it from the probabilities.
template <class Pass>
Values logits_gradient(const Pass& pass) {
  return reference::cross_entropy_gradient(pass.output_gradient, pass.kept("probabilities"),
                                           pass.call.labels);
}

InputMade backward_input(const Head& head, const InputPass& pass) {
  Values x_gradient = reference::product_input_gradient(
      logits_gradient(pass), pass.parameter("weight"), last_extent(pass.call.layer.input));
  if (!head.norm) return {std::move(x_gradient)};
  return {block_norm_input_gradient(pass, x_gradient), {{"norm.output_gradient", x_gradient}}};
}

NamedList backward_weight(const Head& head, const WeightPass& pass) {
  const Values gradient = logits_gradient(pass);
  const Values& x = head.norm ? pass.kept("norm.output") : pass.input();
  NamedList made;
  if (head.norm) {
    made = {{"norm.scale", block_norm_scale_gradient(pass)},
            {"norm.shift", block_norm_shift_gradient(pass)}};
  }
  made.push_back({"weight", reference::product_weight_gradient(
                                gradient, x, last_extent(pass.call.layer.input))});
  if (head.bias) made.push_back({"bias", reference::column_sums(gradient, head.classes)});
  return made;
}

// Pictures.

/// A window over pictures of a shape, one sample each.
reference::Window reference_window(const Shape& picture, std::int64_t samples, std::int64_t kernel,
                                   std::int64_t stride, std::int64_t padding) {
  const std::vector<std::int64_t>& extents = picture.extents;
  PLUMBLINE_CHECK(extents.size() == 3, extents.size());
  return {samples, extents[0], extents[1], extents[2], kernel, stride, padding};
}

/// Height x width.
std::int64_t area_of(const Shape& picture) {
  PLUMBLINE_CHECK(picture.extents.size() == 3, picture.extents.size());
  return picture.extents[1] * picture.extents[2];
}

// conv2d

reference::Window window_of(const Conv2d& conv, const ReferenceCall& call) {
  return reference_window(call.layer.input, call.batch, conv.kernel, conv.stride, conv.padding);
}

ForwardMade forward(const Conv2d& conv, const ForwardPass& pass) {
  Values y =
      reference::convolution(pass.input(), pass.parameter("weight"), window_of(conv, pass.call));
  if (conv.bias)
    reference::add_to_channels(y, pass.parameter("bias"), area_of(pass.call.layer.output));
  return {std::move(y)};
}

InputMade backward_input(const Conv2d& conv, const InputPass& pass) {
  return {reference::convolution_input_gradient(pass.output_gradient, pass.parameter("weight"),
                                                window_of(conv, pass.call))};
}

NamedList backward_weight(const Conv2d& conv, const WeightPass& pass) {
  NamedList made{{"weight", reference::convolution_weight_gradient(
                                pass.output_gradient, pass.input(), window_of(conv, pass.call))}};
  if (conv.bias)
    made.push_back({"bias", reference::channel_sums(pass.output_gradient, conv.channels,
                                                    area_of(pass.call.layer.output))});
  return made;
}

// max_pool

reference::Window window_of(const MaxPool& pool, const ReferenceCall& call) {
  return reference_window(call.layer.input, call.batch, pool.kernel, pool.stride, pool.padding);
}

ForwardMade forward(const MaxPool& pool, const ForwardPass& pass) {
  return {reference::max_pool(pass.input(), window_of(pool, pass.call))};
}

InputMade backward_input(const MaxPool& pool, const InputPass& pass) {
  return {
      reference::max_pool_gradient(pass.output_gradient, pass.input(), window_of(pool, pass.call))};
}

NamedList backward_weight(const MaxPool&, const WeightPass&) { return {}; }

// batch_norm

ForwardMade forward(const BatchNorm&, const ForwardPass& pass) {
  reference::Normalized norm =
      reference::batch_norm(pass.input(), pass.parameter("scale"), pass.parameter("shift"),
                            area_of(pass.call.layer.input));
  return {std::move(norm.output), {{"mean", norm.mean}, {"rstd", norm.rstd}}};
}

/// The backward of a batch norm, whose parameters come with its input.
struct BatchNormBackward {
  Values input;
  Values scale;
  Values shift;
};

BatchNormBackward batch_norm_backward(const Values& output_gradient, const Values& x,
                                      reference::Moments moments, const Values& scale,
                                      std::int64_t area) {
  return {reference::batch_norm_input_gradient(output_gradient, x, moments, scale, area),
          reference::batch_norm_scale_gradient(output_gradient, x, moments, area),
          reference::channel_sums(output_gradient, std::ssize(scale), area)};
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
  reference::Window conv1;
  reference::Window conv2;
  reference::Window shortcut;
  bool changes = false;
  std::int64_t area = 0;  ///< Of the output.
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
  const Values conv1 =
      reference::convolution(pass.input(), pass.parameter("conv1.weight"), shape.conv1);
  const reference::Normalized norm1 = reference::batch_norm(
      conv1, pass.parameter("norm1.scale"), pass.parameter("norm1.shift"), shape.area);
  const Values relu1 = reference::relu(norm1.output);
  const Values conv2 = reference::convolution(relu1, pass.parameter("conv2.weight"), shape.conv2);
  const reference::Normalized norm2 = reference::batch_norm(
      conv2, pass.parameter("norm2.scale"), pass.parameter("norm2.shift"), shape.area);
  NamedList kept{{"conv1", conv1},          {"norm1.mean", norm1.mean}, {"norm1.rstd", norm1.rstd},
                 {"relu1", relu1},          {"conv2", conv2},           {"norm2.mean", norm2.mean},
                 {"norm2.rstd", norm2.rstd}};
  Values sum = norm2.output;
  if (shape.changes) {
    Values shortcut =
        reference::convolution(pass.input(), pass.parameter("shortcut.weight"), shape.shortcut);
    reference::Normalized norm =
        reference::batch_norm(shortcut, pass.parameter("shortcut_norm.scale"),
                              pass.parameter("shortcut_norm.shift"), shape.area);
    reference::add(sum, norm.output);
    kept.push_back({"shortcut", std::move(shortcut)});
    kept.push_back({"shortcut_norm.mean", std::move(norm.mean)});
    kept.push_back({"shortcut_norm.rstd", std::move(norm.rstd)});
  } else {
    reference::add(sum, pass.input());
  }
  return {reference::relu(sum), std::move(kept)};
}

InputMade backward_input(const ResidualBlock& block, const InputPass& pass) {
  const ResidualShape shape = residual_shape(block, pass.call);
  const Values sum_gradient = reference::relu_gradient(pass.output_gradient, pass.output());
  const BatchNormBackward norm2 = batch_norm_backward(
      sum_gradient, pass.kept("conv2"), {pass.kept("norm2.mean"), pass.kept("norm2.rstd")},
      pass.parameter("norm2.scale"), shape.area);
  const Values norm1_gradient =
      reference::relu_gradient(reference::convolution_input_gradient(
                                   norm2.input, pass.parameter("conv2.weight"), shape.conv2),
                               pass.kept("relu1"));
  const BatchNormBackward norm1 = batch_norm_backward(
      norm1_gradient, pass.kept("conv1"), {pass.kept("norm1.mean"), pass.kept("norm1.rstd")},
      pass.parameter("norm1.scale"), shape.area);
  InputMade made{reference::convolution_input_gradient(norm1.input, pass.parameter("conv1.weight"),
                                                       shape.conv1),
                 {{"conv1.gradient", norm1.input}, {"conv2.gradient", norm2.input}},
                 {{"norm1.scale", norm1.scale},
                  {"norm1.shift", norm1.shift},
                  {"norm2.scale", norm2.scale},
                  {"norm2.shift", norm2.shift}}};
  if (!shape.changes) {
    reference::add(made.input_gradient, sum_gradient);
    return made;
  }
  BatchNormBackward norm =
      batch_norm_backward(sum_gradient, pass.kept("shortcut"),
                          {pass.kept("shortcut_norm.mean"), pass.kept("shortcut_norm.rstd")},
                          pass.parameter("shortcut_norm.scale"), shape.area);
  reference::add(made.input_gradient,
                 reference::convolution_input_gradient(
                     norm.input, pass.parameter("shortcut.weight"), shape.shortcut));
  made.left.push_back({"shortcut.gradient", std::move(norm.input)});
  made.parameter_gradients.push_back({"shortcut_norm.scale", std::move(norm.scale)});
  made.parameter_gradients.push_back({"shortcut_norm.shift", std::move(norm.shift)});
  return made;
}

NamedList backward_weight(const ResidualBlock& block, const WeightPass& pass) {
  const ResidualShape shape = residual_shape(block, pass.call);
  NamedList made{
      {"conv1.weight", reference::convolution_weight_gradient(pass.left("conv1.gradient"),
                                                              pass.input(), shape.conv1)},
      {"conv2.weight", reference::convolution_weight_gradient(pass.left("conv2.gradient"),
                                                              pass.kept("relu1"), shape.conv2)}};
  if (shape.changes) {
    made.push_back(
        {"shortcut.weight", reference::convolution_weight_gradient(pass.left("shortcut.gradient"),
                                                                   pass.input(), shape.shortcut)});
  }
  return made;
}

// lstm

std::int64_t tokens_of(const ReferenceCall& call) {
  PLUMBLINE_CHECK(call.layer.input.extents.size() == 2, call.layer.input.extents.size());
  return call.layer.input.extents[0];
}

ForwardMade forward(const Lstm& lstm, const ForwardPass& pass) {
  Values projected = reference::product(pass.input(), pass.parameter("input.weight"),
                                        last_extent(pass.call.layer.input));
  reference::add_to_rows(projected, pass.parameter("bias"));
  const reference::LstmForward made = reference::lstm(projected, pass.parameter("hidden.weight"),
                                                      tokens_of(pass.call), lstm.hidden);
  NamedList kept{{"gates", made.gates}, {"cells", made.cells}};
  Values y = made.hidden;
  if (lstm.residual) {
    kept.push_back({"hidden", made.hidden});
    reference::add(y, pass.input());
  }
  return {std::move(y), std::move(kept)};
}

InputMade backward_input(const Lstm& lstm, const InputPass& pass) {
  const Values gates_gradient =
      reference::lstm_gradient(pass.output_gradient, pass.kept("gates"), pass.kept("cells"),
                               pass.parameter("hidden.weight"), tokens_of(pass.call), lstm.hidden);
  Values input_gradient = reference::product_input_gradient(
      gates_gradient, pass.parameter("input.weight"), last_extent(pass.call.layer.input));
  if (lstm.residual) reference::add(input_gradient, pass.output_gradient);
  return {std::move(input_gradient), {{"gates.gradient", gates_gradient}}};
}

NamedList backward_weight(const Lstm& lstm, const WeightPass& pass) {
  const Values& gates_gradient = pass.left("gates.gradient");
  const Values& hidden = lstm.residual ? pass.kept("hidden") : pass.output();
  const Values previous = reference::lstm_previous(hidden, tokens_of(pass.call), lstm.hidden);
  return {
      {"input.weight", reference::product_weight_gradient(gates_gradient, pass.input(),
                                                          last_extent(pass.call.layer.input))},
      {"hidden.weight", reference::product_weight_gradient(gates_gradient, previous, lstm.hidden)},
      {"bias", reference::column_sums(gates_gradient, 4 * lstm.hidden)}};
}

// The contract with the layer.

/// The values alone, held to the names, the order and the sizes of the layer.
std::vector<Values> arrange(const std::vector<KeptTensor>& tensors, std::int64_t batch,
                            NamedList made) {
  PLUMBLINE_CHECK(tensors.size() == made.size(), tensors.size(), made.size());
  std::vector<Values> values(made.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    PLUMBLINE_CHECK(tensors[i].name == made[i].name, tensors[i].name, made[i].name);
    check_elements(tensors[i].name, made[i].values,
                   tensors[i].shape.elements() * (tensors[i].per_sample ? batch : 1));
    values[i] = std::move(made[i].values);
  }
  return values;
}

/// The same for the gradients of those parameters that come with the input, or of the others.
std::vector<Values> arrange_gradients(const std::vector<Parameter>& parameters, bool with_input,
                                      NamedList made) {
  std::vector<Values> values(parameters.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].with_input != with_input) continue;
    PLUMBLINE_CHECK(next < made.size(), parameters[i].name, made.size());
    PLUMBLINE_CHECK(parameters[i].name == made[next].name, parameters[i].name, made[next].name);
    check_elements(parameters[i].name, made[next].values, parameters[i].shape.elements());
    values[i] = std::move(made[next].values);
    ++next;
  }
  PLUMBLINE_CHECK(next == made.size(), next, made.size());
  return values;
}

void check_call(const ReferenceCall& call) {
  const std::vector<Parameter>& parameters = call.layer.parameters;
  PLUMBLINE_CHECK(call.batch > 0, call.layer.name, call.batch);
  check_elements("input", call.input, call.batch * call.layer.input.elements());
  PLUMBLINE_CHECK(parameters.size() == call.parameters.size(), call.layer.name, parameters.size(),
                  call.parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i)
    check_elements(parameters[i].name, call.parameters[i], parameters[i].shape.elements());
}

void check_output(std::string_view name, const Values& values, const ReferenceCall& call) {
  check_elements(name, values, call.batch * call.layer.output.elements());
}

// Starting values.

/// SplitMix64 (Steele, Lea and Flood 2014): a bijection that leaves no trace of its argument's
/// order.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Numbers of mean 0 and variance 1 from a seed. Each is the sum of twelve uniform ones, which is
/// close to normal and, unlike what goes through log and cos, the same to the last bit everywhere.
class NormalNumbers {
 public:
  explicit NormalNumbers(std::uint64_t seed) : state_(seed) {}

  double next() {
    // Twelve numbers of 32 bits, each at the middle of its step: all exact.
    std::int64_t sum = 0;
    for (int i = 0; i < 6; ++i) {
      state_ += 0x9e3779b97f4a7c15ULL;
      const std::uint64_t bits = mixed(state_);
      sum += static_cast<std::int64_t>(bits >> 32) + static_cast<std::int64_t>(bits & 0xffffffffU);
    }
    return std::ldexp(static_cast<double>(sum + 6), -32) - 6;
  }

 private:
  std::uint64_t state_;
};

/// The standard deviation of a matrix, a kernel or a table.
double starting_deviation(const Shape& shape, bool table) {
  if (table) return 0.02;
  const std::int64_t inputs = shape.elements() / shape.extents.front();
  return 1 / std::sqrt(static_cast<double>(inputs));
}

}  // namespace

ReferenceForward reference_forward(const ReferenceCall& call) {
  check_call(call);
  const ForwardPass pass{call};
  ForwardMade made = std::visit([&](const auto& settings) { return forward(settings, pass); },
                                call.layer.settings);
  check_output("output", made.output, call);
  return {std::move(made.output), arrange(call.layer.kept, call.batch, std::move(made.kept))};
}

ReferenceBackward reference_backward_input(const ReferenceCall& call,
                                           const ReferenceForward& forward,
                                           const Values& output_gradient) {
  check_call(call);
  check_output("output", forward.output, call);
  check_output("output gradient", output_gradient, call);
  const InputPass pass{call, forward, output_gradient};
  InputMade made = std::visit([&](const auto& settings) { return backward_input(settings, pass); },
                              call.layer.settings);
  const bool ids = std::holds_alternative<Embedding>(call.layer.settings);
  check_elements("input gradient", made.input_gradient, ids ? 0 : std::ssize(call.input));
  return {std::move(made.input_gradient),
          arrange(call.layer.left_for_weights, call.batch, std::move(made.left)),
          arrange_gradients(call.layer.parameters, true, std::move(made.parameter_gradients))};
}

std::vector<Values> reference_backward_weight(const ReferenceCall& call,
                                              const ReferenceForward& forward,
                                              const ReferenceBackward& backward,
                                              const Values& output_gradient) {
  check_call(call);
  check_output("output", forward.output, call);
  check_output("output gradient", output_gradient, call);
  const WeightPass pass{call, forward, backward, output_gradient};
  NamedList made = std::visit([&](const auto& settings) { return backward_weight(settings, pass); },
                              call.layer.settings);
  PLUMBLINE_CHECK(call.layer.splits == !made.empty(), call.layer.name, made.size());
  return arrange_gradients(call.layer.parameters, false, std::move(made));
}

std::vector<Values> initial_parameters(const NetworkLayer& layer, std::uint64_t seed) {
  const bool table = std::holds_alternative<Embedding>(layer.settings);
  std::vector<Values> values;
  values.reserve(layer.parameters.size());
  for (const Parameter& parameter : layer.parameters) {
    // Every parameter has a stream of its own.
    NormalNumbers numbers(mixed(mixed(seed) + values.size()));
    Values value(parameter.shape.elements(), 0.0);
    const std::string& name = parameter.name;
    if (name.ends_with("scale")) {
      for (double& element : value) element = 1;
    } else if (!name.ends_with("shift") && !name.ends_with("bias")) {
      const double deviation = starting_deviation(parameter.shape, table);
      for (double& element : value) element = deviation * numbers.next();
    }
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace plumbline
