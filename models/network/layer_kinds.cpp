// The kinds of layers: the output, parameters, kept tensors and FLOPs of each.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/network/exact_elements.h"
#include "models/network/layer_misfit.h"
#include "models/network/network.h"

namespace plumbline {
namespace {

// FLOPs. A matrix product or convolution costs two for each multiply-add, once in each of F, I and
// W. Multiply-adds on padding, or on the zero state before the first token, count too. Adding a
// bias and summing its gradient are not counted. The core of attention counts the whole square of
// tokens, causal or not, or with a window all its tokens for each; its softmax is not counted. All
// other work is in this table.

/// FLOPs for each element. exp, tanh and root count only the few instructions that they take.
struct ElementCost {
  std::int64_t forward = 0;
  std::int64_t backward_input = 0;
  std::int64_t backward_weight = 0;
};

constexpr ElementCost kReluCost{1, 1, 0};
constexpr ElementCost kGeluCost{8, 14, 0};  ///< The tanh form.
constexpr ElementCost kSiluCost{4, 8, 0};
constexpr ElementCost kGateCost{1, 2, 0};      ///< The product of a gated MLP.
constexpr ElementCost kRotationCost{3, 3, 0};  ///< For each number that turns.
constexpr ElementCost kLayerNormCost{8, 11, 3};
constexpr ElementCost kRmsNormCost{4, 8, 2};
/// The same, where the gradient of the scale comes with I.
constexpr ElementCost kHeadNormCost{4, 10, 0};
constexpr ElementCost kBatchNormCost{8, 11,
                                     0};   ///< The sums of I are the gradients of scale, shift.
constexpr ElementCost kAddCost{1, 1, 0};   ///< The residual, and its gradient on the way back.
constexpr ElementCost kLossCost{5, 2, 2};  ///< For each class: softmax; p - onehot, in W again.
constexpr ElementCost kLstmCellCost{12, 20, 0};  ///< For each hidden number of a token.
constexpr ElementCost kLookUpCost{0, 0, 1};      ///< W adds the gradient to the row of the token.
constexpr ElementCost kPositionCost{1, 0, 1};

/// Products of tokens x tokens x features in the core of attention. Forward: scores and context.
/// Backward: scores recomputed, and the gradients of v, of the probabilities, of q and of k.
constexpr std::int64_t kAttentionForwardProducts = 2;
constexpr std::int64_t kAttentionBackwardProducts = 5;

const ElementCost& cost_of(Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return kGeluCost;
    case Activation::silu:
      return kSiluCost;
    case Activation::relu:
      break;
  }
  return kReluCost;
}

using Extents = std::vector<std::int64_t>;

/// All extents but the last.
Shape rows_of(const Shape& shape) {
  return {Extents(shape.extents.begin(), shape.extents.end() - 1)};
}

Shape with_last(const Shape& shape, std::int64_t last) {
  Shape changed = shape;
  changed.extents.back() = last;
  return changed;
}

/// The extents of a picture after a square window with these settings has gone over it.
Shape windowed(const Shape& image, std::int64_t channels, const Conv2d& window) {
  PLUMBLINE_CHECK(window.kernel >= 1 && window.stride >= 1 && window.padding >= 0, window.kernel,
                  window.stride, window.padding);
  const auto along = [&](std::int64_t extent) {
    return (extent + 2 * window.padding - window.kernel) / window.stride + 1;
  };
  return {{channels, along(image.extents[1]), along(image.extents[2])}};
}

/// A layer that is being derived, and the sums of its FLOPs.
class Derivation {
 public:
  Derivation(const LayerSettings& settings, const NetworkInput& input) : input_(input) {
    layer_.settings = settings;
    layer_.input = input.shape;
    layer_.output = input.shape;  // most kinds keep the shape
  }

  Result<NetworkLayer> result(const Mark& mark) &&;

  void derive(const Linear& kind) {
    layer_.output = with_last(in(), kind.features);
    add_matrix("weight", kind.features, last());
    if (kind.bias) add_parameter("bias", {kind.features});
    layer_.splits = true;
  }

  void derive(const Relu&) { add_work(exact_elements(in()), kReluCost); }
  void derive(const Gelu&) { add_work(exact_elements(in()), kGeluCost); }

  void derive(const LayerNorm&) {
    add_parameter("scale", {last()});
    add_parameter("shift", {last()});
    keep_statistic("mean", rows_of(in()));
    keep_statistic("rstd", rows_of(in()));
    add_work(exact_elements(in()), kLayerNormCost);
    layer_.splits = true;
  }

  void derive(const RmsNorm&) {
    add_parameter("scale", {last()});
    keep_statistic("rstd", rows_of(in()));
    add_work(exact_elements(in()), kRmsNormCost);
    layer_.splits = true;
  }

  void derive(const AttentionBlock& kind) {
    const std::int64_t tokens = in().extents.front();
    const std::int64_t features = last();
    const AttentionWidths widths = attention_widths(kind, features);
    PLUMBLINE_CHECK(widths.heads % widths.kv_heads == 0, widths.heads, widths.kv_heads);
    PLUMBLINE_CHECK(kind.window == 0 || kind.causal, kind.window);
    AttentionBlock known = kind;
    known.kv_heads = widths.kv_heads;
    known.head_size = widths.head_size;
    layer_.settings = known;
    const Shape qkv{{tokens, widths.qkv()}};
    const Shape turning{{tokens, widths.queries() + widths.keys()}};
    add_inner_norm(kind.norm);
    add_matrix("qkv.weight", widths.qkv(), features);
    if (kind.bias != AttentionBias::none) add_parameter("qkv.bias", {widths.qkv()});
    if (kind.qk_norm) {
      layer_.parameters.push_back({"queries.scale", {{widths.head_size}}, true});
      layer_.parameters.push_back({"keys.scale", {{widths.head_size}}, true});
      keep_statistic("heads.rstd", {{tokens, widths.heads + widths.kv_heads}});
      keep("heads.input", turning);
      add_work(exact_elements(turning), kHeadNormCost);
    }
    if (kind.rotary > 0) add_work(exact_elements(turning), kRotationCost);
    keep("qkv", qkv);
    keep_statistic("logsumexp", {{kind.heads, tokens}});
    keep("context", {{tokens, widths.queries()}});
    const std::int64_t seen = kind.window > 0 ? std::min(kind.window, tokens) : tokens;
    const SaturatingCount product = SaturatingCount(2) * tokens * seen * widths.queries();
    forward_ += product * kAttentionForwardProducts;
    backward_input_ += product * kAttentionBackwardProducts;
    add_matrix("projection.weight", features, widths.queries());
    if (kind.bias == AttentionBias::all) add_parameter("projection.bias", {features});
    add_work(exact_elements(in()), kAddCost);
    leave("qkv.gradient", qkv);
    leave("norm.output_gradient", in());
    layer_.splits = true;
  }

  void derive(const MlpBlock& kind) {
    MlpBlock known = kind;
    if (known.hidden == 0) known.hidden = 4 * last();
    layer_.settings = known;
    const Shape up = with_last(in(), known.up());
    const Shape inner = with_last(in(), known.hidden);
    add_inner_norm(kind.norm);
    add_matrix("up.weight", known.up(), last());
    if (kind.bias) add_parameter("up.bias", {known.up()});
    keep("hidden", up);
    add_work(exact_elements(inner), cost_of(kind.activation));
    if (kind.gated) add_work(exact_elements(inner), kGateCost);
    keep("activated", inner);
    add_matrix("down.weight", last(), known.hidden);
    if (kind.bias) add_parameter("down.bias", {last()});
    add_work(exact_elements(in()), kAddCost);
    leave("hidden.gradient", up);
    leave("norm.output_gradient", in());
    layer_.splits = true;
  }

  void derive(const Embedding& kind) {
    PLUMBLINE_CHECK(in().extents.size() == 1, to_text(in()));
    Embedding known = kind;
    known.vocabulary = *input_.vocabulary;
    layer_.settings = known;
    layer_.output = {{in().extents.front(), kind.features}};
    add_parameter("weight", {known.vocabulary, kind.features});
    add_work(exact_elements(layer_.output), kLookUpCost);
    if (kind.positions) {
      add_parameter("positions", layer_.output.extents);
      add_work(exact_elements(layer_.output), kPositionCost);
    }
    layer_.splits = true;
  }

  void derive(const Head& kind) {
    const Shape logits = with_last(in(), kind.classes);
    if (kind.norm) {
      add_inner_norm(kind.norm_kind);
      leave("norm.output_gradient", in());
    }
    add_matrix("weight", kind.classes, last());
    if (kind.bias) add_parameter("bias", {kind.classes});
    keep("probabilities", logits);
    add_work(exact_elements(logits), kLossCost);
    layer_.output = {};
    layer_.splits = true;
  }

  void derive(const Conv2d& kind) {
    layer_.output = windowed(in(), kind.channels, kind);
    add_convolution("weight", in().extents.front(), layer_.output, kind.kernel);
    if (kind.bias) add_parameter("bias", {kind.channels});
    layer_.splits = true;
  }

  void derive(const MaxPool& kind) {
    layer_.output = windowed(in(), in().extents.front(),
                             Conv2d{0, kind.kernel, kind.stride, kind.padding, false});
    const SaturatingCount outputs = exact_elements(layer_.output);
    const SaturatingCount comparisons = outputs * kind.kernel * kind.kernel;
    forward_ += comparisons;
    backward_input_ += comparisons + outputs;  // finds the maximum again and adds the gradient
  }

  void derive(const BatchNorm&) { add_batch_norm("", in()); }

  void derive(const Flatten&) { layer_.output = {{exact_elements(in()).value()}}; }

  void derive(const ResidualBlock& kind) {
    const std::int64_t channels = in().extents.front();
    const Shape out = windowed(in(), kind.channels, Conv2d{0, 3, kind.stride, 1, false});
    layer_.output = out;
    add_convolution("conv1.weight", channels, out, 3);
    keep("conv1", out);
    add_batch_norm("norm1.", out);
    add_work(exact_elements(out), kReluCost);
    keep("relu1", out);
    add_convolution("conv2.weight", kind.channels, out, 3);
    keep("conv2", out);
    add_batch_norm("norm2.", out);
    leave("conv1.gradient", out);
    leave("conv2.gradient", out);
    if (kind.stride != 1 || kind.channels != channels) {
      add_convolution("shortcut.weight", channels, out, 1);
      keep("shortcut", out);
      add_batch_norm("shortcut_norm.", out);
      leave("shortcut.gradient", out);
    }
    forward_ += exact_elements(out) * kAddCost.forward;
    backward_input_ += exact_elements(in()) * kAddCost.backward_input;
    add_work(exact_elements(out), kReluCost);
    layer_.splits = true;
  }

  void derive(const Lstm& kind) {
    const std::int64_t tokens = in().extents.front();
    layer_.output = {{tokens, kind.hidden}};
    add_matrix("input.weight", 4 * kind.hidden, last());
    add_matrix("hidden.weight", 4 * kind.hidden, kind.hidden);
    add_parameter("bias", {4 * kind.hidden});
    keep("gates", {{tokens, 4 * kind.hidden}});
    keep("cells", layer_.output);
    add_work(exact_elements(layer_.output), kLstmCellCost);
    if (kind.residual) {
      keep("hidden", layer_.output);
      add_work(exact_elements(layer_.output), kAddCost);
    }
    leave("gates.gradient", {{tokens, 4 * kind.hidden}});
    layer_.splits = true;
  }

 private:
  const Shape& in() const { return layer_.input; }
  std::int64_t last() const { return in().extents.back(); }

  void add_parameter(std::string name, Extents extents) {
    layer_.parameters.push_back({std::move(name), {std::move(extents)}, false});
  }
  void keep(std::string name, Shape shape) {
    layer_.kept.push_back({std::move(name), std::move(shape), true, false});
  }
  void keep_statistic(std::string name, Shape shape) {
    layer_.kept.push_back({std::move(name), std::move(shape), true, true});
  }
  void leave(std::string name, Shape shape) {
    layer_.left_for_weights.push_back({std::move(name), std::move(shape), true, false});
  }

  void add_product(SaturatingCount multiply_adds) {
    forward_ += SaturatingCount(2) * multiply_adds;
    backward_input_ += SaturatingCount(2) * multiply_adds;
    backward_weight_ += SaturatingCount(2) * multiply_adds;
  }
  void add_work(SaturatingCount elements, const ElementCost& cost) {
    forward_ += elements * cost.forward;
    backward_input_ += elements * cost.backward_input;
    backward_weight_ += elements * cost.backward_weight;
  }

  /// A matrix with these rows and columns, applied to every row of the input.
  void add_matrix(std::string name, std::int64_t rows, std::int64_t columns) {
    add_parameter(std::move(name), {rows, columns});
    add_product(exact_elements(rows_of(in())) * rows * columns);
  }

  void add_convolution(std::string name, std::int64_t in_channels, const Shape& out,
                       std::int64_t kernel) {
    add_parameter(std::move(name), {out.extents.front(), in_channels, kernel, kernel});
    add_product(exact_elements(out) * in_channels * kernel * kernel);
  }

  /// The norm at the start of a block. Its output is kept.
  void add_inner_norm(NormKind kind) {
    const bool is_centred = kind == NormKind::layer_norm;
    add_parameter("norm.scale", {last()});
    if (is_centred) add_parameter("norm.shift", {last()});
    if (is_centred) keep_statistic("norm.mean", rows_of(in()));
    keep_statistic("norm.rstd", rows_of(in()));
    keep("norm.output", in());
    add_work(exact_elements(in()), is_centred ? kLayerNormCost : kRmsNormCost);
  }

  void add_batch_norm(const std::string& prefix, const Shape& shape) {
    const Shape channels{{shape.extents.front()}};
    layer_.parameters.push_back({prefix + "scale", channels, true});
    layer_.parameters.push_back({prefix + "shift", channels, true});
    layer_.kept.push_back({prefix + "mean", channels, false, true});
    layer_.kept.push_back({prefix + "rstd", channels, false, true});
    add_work(exact_elements(shape), kBatchNormCost);
  }

  const NetworkInput& input_;
  NetworkLayer layer_;
  SaturatingCount forward_;
  SaturatingCount backward_input_;
  SaturatingCount backward_weight_;
};

Result<NetworkLayer> Derivation::result(const Mark& mark) && {
  SaturatingCount parameters;
  for (const Parameter& parameter : layer_.parameters)
    parameters += exact_elements(parameter.shape);
  SaturatingCount kept = exact_elements(layer_.input) + exact_elements(layer_.output);
  for (const KeptTensor& tensor : layer_.kept) kept += exact_elements(tensor.shape);
  for (const KeptTensor& tensor : layer_.left_for_weights) kept += exact_elements(tensor.shape);
  const char* const help = "layers of this size cannot be run: make an extent smaller";
  if (!parameters.is_exact()) return input_error(mark, "has more than 2^53 parameters", help);
  if (!kept.is_exact()) {
    return input_error(mark, "handles more than 2^53 numbers for each sample", help);
  }
  if (!(forward_ + backward_input_ + backward_weight_).is_exact()) {
    return input_error(mark, "computes more than 2^53 FLOPs for each sample", help);
  }
  layer_.forward_flops = static_cast<double>(forward_.value());
  layer_.backward_input_flops = static_cast<double>(backward_input_.value());
  layer_.backward_weight_flops = static_cast<double>(backward_weight_.value());
  return std::move(layer_);
}

}  // namespace

Result<NetworkLayer> derive_layer(const LayerSettings& settings, const NetworkInput& input,
                                  const Mark& mark) {
  if (auto misfit = find_misfit(settings, input)) {
    const std::string given = input.vocabulary ? "token ids" : to_text(input.shape);
    return input_error(mark, fmt::format("takes {}, but gets {}", misfit->wanted, given),
                       std::move(misfit->help));
  }
  Derivation derivation(settings, input);
  std::visit([&](const auto& kind) { derivation.derive(kind); }, settings);
  return std::move(derivation).result(mark);
}

}  // namespace plumbline
