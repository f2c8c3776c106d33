// A function for each kind of layer, then numbers.
//
// SPDX-License-Identifier: MIT
#include "tests/calibrate/training/hand_made_layers.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <variant>

namespace plumbline::test {
namespace {

Extents with_last(Extents extents, std::int64_t last) {
  extents.back() = last;
  return extents;
}

Extents rows_of(Extents extents) {
  extents.pop_back();
  return extents;
}

Parameter parameter(std::string name, Extents extents, bool with_input = false) {
  return {std::move(name), {std::move(extents)}, with_input};
}

KeptTensor tensor(std::string name, Extents extents) {
  return {std::move(name), {std::move(extents)}, true, false};
}

KeptTensor row_statistic(std::string name, Extents extents) {
  return {std::move(name), {std::move(extents)}, true, true};
}

KeptTensor channel_statistic(std::string name, std::int64_t channels) {
  return {std::move(name), {{channels}}, false, true};
}

std::int64_t places(std::int64_t extent, std::int64_t kernel, std::int64_t stride,
                    std::int64_t padding) {
  return (extent + 2 * padding - kernel) / stride + 1;
}

void fill(NetworkLayer& layer, const Linear& linear) {
  const std::int64_t inputs = layer.input.extents.back();
  layer.output = {with_last(layer.input.extents, linear.features)};
  layer.parameters = {parameter("weight", {linear.features, inputs})};
  if (linear.bias) layer.parameters.push_back(parameter("bias", {linear.features}));
  layer.splits = true;
}

void fill(NetworkLayer& layer, const Relu&) { layer.output = layer.input; }
void fill(NetworkLayer& layer, const Gelu&) { layer.output = layer.input; }

void fill(NetworkLayer& layer, const LayerNorm&) {
  const Extents& extents = layer.input.extents;
  layer.output = layer.input;
  layer.parameters = {parameter("scale", {extents.back()}), parameter("shift", {extents.back()})};
  layer.kept = {row_statistic("mean", rows_of(extents)), row_statistic("rstd", rows_of(extents))};
  layer.splits = true;
}

void fill(NetworkLayer& layer, const RmsNorm&) {
  const Extents& extents = layer.input.extents;
  layer.output = layer.input;
  layer.parameters = {parameter("scale", {extents.back()})};
  layer.kept = {row_statistic("rstd", rows_of(extents))};
  layer.splits = true;
}

/// The norm at the start of a block or a head.
void fill_norm(NetworkLayer& layer, NormKind kind) {
  const Extents& extents = layer.input.extents;
  const bool is_centred = kind == NormKind::layer_norm;
  layer.parameters = {parameter("norm.scale", {extents.back()})};
  if (is_centred) layer.parameters.push_back(parameter("norm.shift", {extents.back()}));
  if (is_centred) layer.kept.push_back(row_statistic("norm.mean", rows_of(extents)));
  layer.kept.push_back(row_statistic("norm.rstd", rows_of(extents)));
  layer.kept.push_back(tensor("norm.output", extents));
}

void fill(NetworkLayer& layer, const AttentionBlock& block) {
  const std::int64_t t = layer.input.extents[0];
  const std::int64_t d = layer.input.extents[1];
  const std::int64_t size = block.head_size == 0 ? d / block.heads : block.head_size;
  const std::int64_t key_heads = block.kv_heads == 0 ? block.heads : block.kv_heads;
  const std::int64_t q = block.heads * size;
  const std::int64_t k = key_heads * size;
  const std::int64_t qkv = q + k + k;
  layer.output = layer.input;
  fill_norm(layer, block.norm);
  layer.parameters.push_back(parameter("qkv.weight", {qkv, d}));
  if (block.bias == AttentionBias::all || block.bias == AttentionBias::qkv)
    layer.parameters.push_back(parameter("qkv.bias", {qkv}));
  if (block.qk_norm) {
    layer.parameters.push_back(parameter("queries.scale", {size}, true));
    layer.parameters.push_back(parameter("keys.scale", {size}, true));
    layer.kept.push_back(row_statistic("heads.rstd", {t, block.heads + key_heads}));
    layer.kept.push_back(tensor("heads.input", {t, q + k}));
  }
  layer.parameters.push_back(parameter("projection.weight", {d, q}));
  if (block.bias == AttentionBias::all)
    layer.parameters.push_back(parameter("projection.bias", {d}));
  layer.kept.push_back(tensor("qkv", {t, qkv}));
  layer.kept.push_back(row_statistic("logsumexp", {block.heads, t}));
  layer.kept.push_back(tensor("context", {t, q}));
  layer.left_for_weights = {tensor("qkv.gradient", {t, qkv}),
                            tensor("norm.output_gradient", {t, d})};
  layer.splits = true;
}

void fill(NetworkLayer& layer, const MlpBlock& block) {
  const Extents& extents = layer.input.extents;
  const std::int64_t d = extents.back();
  const std::int64_t up = block.gated ? block.hidden + block.hidden : block.hidden;
  layer.output = layer.input;
  fill_norm(layer, block.norm);
  layer.parameters.push_back(parameter("up.weight", {up, d}));
  if (block.bias) layer.parameters.push_back(parameter("up.bias", {up}));
  layer.parameters.push_back(parameter("down.weight", {d, block.hidden}));
  if (block.bias) layer.parameters.push_back(parameter("down.bias", {d}));
  layer.kept.push_back(tensor("hidden", with_last(extents, up)));
  layer.kept.push_back(tensor("activated", with_last(extents, block.hidden)));
  layer.left_for_weights = {tensor("hidden.gradient", with_last(extents, up)),
                            tensor("norm.output_gradient", extents)};
  layer.splits = true;
}

void fill(NetworkLayer& layer, const Embedding& embedding) {
  const std::int64_t t = layer.input.extents[0];
  layer.output = {{t, embedding.features}};
  layer.parameters = {parameter("weight", {embedding.vocabulary, embedding.features})};
  if (embedding.positions)
    layer.parameters.push_back(parameter("positions", {t, embedding.features}));
  layer.splits = true;
}

void fill(NetworkLayer& layer, const Head& head) {
  const Extents& extents = layer.input.extents;
  const std::int64_t f = extents.back();
  if (head.norm) {
    fill_norm(layer, head.norm_kind);
    layer.left_for_weights = {tensor("norm.output_gradient", extents)};
  }
  layer.parameters.push_back(parameter("weight", {head.classes, f}));
  if (head.bias) layer.parameters.push_back(parameter("bias", {head.classes}));
  layer.kept.push_back(tensor("probabilities", with_last(extents, head.classes)));
  layer.splits = true;
}

void fill(NetworkLayer& layer, const Conv2d& conv) {
  const Extents& in = layer.input.extents;
  layer.output = {{conv.channels, places(in[1], conv.kernel, conv.stride, conv.padding),
                   places(in[2], conv.kernel, conv.stride, conv.padding)}};
  layer.parameters = {parameter("weight", {conv.channels, in[0], conv.kernel, conv.kernel})};
  if (conv.bias) layer.parameters.push_back(parameter("bias", {conv.channels}));
  layer.splits = true;
}

void fill(NetworkLayer& layer, const MaxPool& pool) {
  const Extents& in = layer.input.extents;
  layer.output = {{in[0], places(in[1], pool.kernel, pool.stride, pool.padding),
                   places(in[2], pool.kernel, pool.stride, pool.padding)}};
}

void fill(NetworkLayer& layer, const BatchNorm&) {
  const std::int64_t c = layer.input.extents[0];
  layer.output = layer.input;
  layer.parameters = {parameter("scale", {c}, true), parameter("shift", {c}, true)};
  layer.kept = {channel_statistic("mean", c), channel_statistic("rstd", c)};
}

void fill(NetworkLayer& layer, const Flatten&) { layer.output = {{layer.input.elements()}}; }

void fill(NetworkLayer& layer, const ResidualBlock& block) {
  const Extents& in = layer.input.extents;
  const std::int64_t c = block.channels;
  const Extents out{c, places(in[1], 3, block.stride, 1), places(in[2], 3, block.stride, 1)};
  layer.output = {out};
  layer.parameters = {
      parameter("conv1.weight", {c, in[0], 3, 3}), parameter("norm1.scale", {c}, true),
      parameter("norm1.shift", {c}, true),         parameter("conv2.weight", {c, c, 3, 3}),
      parameter("norm2.scale", {c}, true),         parameter("norm2.shift", {c}, true)};
  layer.kept = {tensor("conv1", out),
                channel_statistic("norm1.mean", c),
                channel_statistic("norm1.rstd", c),
                tensor("relu1", out),
                tensor("conv2", out),
                channel_statistic("norm2.mean", c),
                channel_statistic("norm2.rstd", c)};
  layer.left_for_weights = {tensor("conv1.gradient", out), tensor("conv2.gradient", out)};
  if (block.stride != 1 || c != in[0]) {
    layer.parameters.push_back(parameter("shortcut.weight", {c, in[0], 1, 1}));
    layer.parameters.push_back(parameter("shortcut_norm.scale", {c}, true));
    layer.parameters.push_back(parameter("shortcut_norm.shift", {c}, true));
    layer.kept.push_back(tensor("shortcut", out));
    layer.kept.push_back(channel_statistic("shortcut_norm.mean", c));
    layer.kept.push_back(channel_statistic("shortcut_norm.rstd", c));
    layer.left_for_weights.push_back(tensor("shortcut.gradient", out));
  }
  layer.splits = true;
}

void fill(NetworkLayer& layer, const Lstm& lstm) {
  const std::int64_t t = layer.input.extents[0];
  const std::int64_t f = layer.input.extents[1];
  const std::int64_t h = lstm.hidden;
  layer.output = {{t, h}};
  layer.parameters = {parameter("input.weight", {4 * h, f}), parameter("hidden.weight", {4 * h, h}),
                      parameter("bias", {4 * h})};
  layer.kept = {tensor("gates", {t, 4 * h}), tensor("cells", {t, h})};
  if (lstm.residual) layer.kept.push_back(tensor("hidden", {t, h}));
  layer.left_for_weights = {tensor("gates.gradient", {t, 4 * h})};
  layer.splits = true;
}

/// Uniform numbers from a seed.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}

  /// In [0, 1).
  double unit() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state_ >> 11) / 9007199254740992.0;
  }
  double between(double low, double high) { return low + (high - low) * unit(); }
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(unit() * static_cast<double>(limit));
  }
  Values between(double low, double high, std::int64_t count) {
    Values values(count);
    for (double& value : values) value = between(low, high);
    return values;
  }
  Values below(std::int64_t limit, std::int64_t count) {
    Values values(count);
    for (double& value : values) value = static_cast<double>(below(limit));
    return values;
  }

 private:
  std::uint64_t state_;
};

/// Multiples of 0.1 in a random order, none of them 0 and no two equal: far from every kink.
Values distinct_numbers(std::int64_t count, Numbers& numbers) {
  Values values(count);
  const std::int64_t middle = count / 2;
  for (std::int64_t i = 0; i < count; ++i) values[i] = 0.1 * static_cast<double>(i - middle) + 0.05;
  for (std::int64_t i = count - 1; i > 0; --i) std::swap(values[i], values[numbers.below(i + 1)]);
  return values;
}

Values input_of(const NetworkLayer& layer, std::int64_t count, Numbers& numbers) {
  if (const auto* embedding = std::get_if<Embedding>(&layer.settings))
    return numbers.below(embedding->vocabulary, count);
  if (std::holds_alternative<MaxPool>(layer.settings) ||
      std::holds_alternative<Relu>(layer.settings)) {
    return distinct_numbers(count, numbers);
  }
  return numbers.between(-2, 2, count);
}

}  // namespace

NetworkLayer layer_of(const LayerSettings& settings, Extents input) {
  NetworkLayer layer;
  layer.name = "layer";
  layer.settings = settings;
  layer.input = {std::move(input)};
  std::visit([&](const auto& kind) { fill(layer, kind); }, settings);
  return layer;
}

Case case_of(const LayerSettings& settings, Extents input, std::int64_t batch, std::uint64_t seed) {
  Case made;
  made.text = std::to_string(settings.index()) + " on";
  for (const std::int64_t extent : input) made.text += " " + std::to_string(extent);
  made.layer = layer_of(settings, std::move(input));
  made.batch = batch;
  Numbers numbers(seed);
  made.parameters.reserve(made.layer.parameters.size());
  for (const Parameter& p : made.layer.parameters) {
    const bool scale = p.name.ends_with("scale");
    made.parameters.push_back(
        numbers.between(scale ? 0.5 : -0.7, scale ? 1.5 : 0.7, p.shape.elements()));
  }
  made.input = input_of(made.layer, batch * made.layer.input.elements(), numbers);
  if (const auto* head = std::get_if<Head>(&settings)) {
    const std::int64_t rows = made.layer.input.elements() / made.layer.input.extents.back();
    made.labels = numbers.below(head->classes, batch * rows);
  }
  made.output_gradient = numbers.between(-1, 1, batch * made.layer.output.elements());
  return made;
}

namespace {

std::vector<Case> earlier_cases() {
  return {case_of(Linear{3, true}, {4}, 2),
          case_of(Linear{2, false}, {5}, 2),
          case_of(Linear{3, true}, {2, 4}, 2),
          case_of(Linear{1, false}, {3, 1}, 4),
          case_of(Relu{}, {7}, 2),
          case_of(Relu{}, {2, 3, 2}, 2),
          case_of(Gelu{}, {7}, 2),
          case_of(Gelu{}, {3, 4}, 2),
          case_of(LayerNorm{}, {5}, 2),
          case_of(LayerNorm{}, {3, 4}, 2),
          case_of(LayerNorm{}, {2, 2, 3}, 2),
          case_of(AttentionBlock{1, true}, {3, 4}, 2),
          case_of(AttentionBlock{2, true}, {4, 4}, 2),
          case_of(AttentionBlock{2, false}, {3, 6}, 2),
          case_of(AttentionBlock{3, false}, {2, 3}, 2),
          case_of(AttentionBlock{1, true}, {1, 2}, 2),
          case_of(MlpBlock{6}, {4}, 2),
          case_of(MlpBlock{3}, {3, 5}, 2),
          case_of(Embedding{5, 3, false}, {4}, 2),
          case_of(Embedding{3, 2, true}, {4}, 2),
          case_of(Head{3, true, false}, {4}, 2),
          case_of(Head{3, true, true}, {3, 4}, 2),
          case_of(Head{5, false, true}, {4}, 2),
          case_of(Head{2, false, false}, {2, 3}, 2),
          case_of(Conv2d{2, 3, 1, 1, true}, {2, 4, 4}, 2),
          case_of(Conv2d{3, 3, 2, 0, false}, {2, 5, 6}, 2),
          case_of(Conv2d{2, 2, 2, 1, true}, {1, 4, 3}, 2),
          case_of(Conv2d{2, 1, 1, 0, true}, {3, 2, 3}, 2),
          case_of(MaxPool{2, 2, 0}, {2, 4, 5}, 2),
          case_of(MaxPool{3, 2, 1}, {2, 5, 4}, 2),
          case_of(MaxPool{3, 1, 1}, {1, 3, 4}, 2),
          case_of(Flatten{}, {2, 3}, 2),
          case_of(Flatten{}, {2, 2, 3}, 2),
          case_of(Lstm{3, false}, {4, 2}, 2),
          case_of(Lstm{2, false}, {1, 3}, 2),
          case_of(Lstm{3, true}, {4, 3}, 2)};
}

/// The layers of today's language models. Seeds keep every relu away from its kink.
std::vector<Case> language_model_cases() {
  constexpr NormKind kRms = NormKind::rms_norm;
  return {
      case_of(RmsNorm{}, {5}, 2), case_of(RmsNorm{}, {3, 4}, 2), case_of(RmsNorm{}, {2, 2, 3}, 2),
      // Heads that share keys, and heads that do not fill the features.
      case_of(AttentionBlock{.heads = 4, .kv_heads = 2}, {3, 8}, 2),
      case_of(AttentionBlock{.heads = 3, .causal = false, .kv_heads = 1}, {4, 6}, 2),
      case_of(AttentionBlock{.heads = 2, .kv_heads = 2}, {3, 4}, 2),
      case_of(AttentionBlock{.heads = 2, .head_size = 3}, {3, 4}, 2),
      case_of(AttentionBlock{.heads = 3, .causal = false, .head_size = 1}, {3, 5}, 2),
      case_of(AttentionBlock{.heads = 4, .kv_heads = 2, .head_size = 2}, {3, 5}, 2),
      // Rotary positions.
      case_of(AttentionBlock{.heads = 2, .rotary = 10000}, {5, 8}, 2),
      case_of(AttentionBlock{.heads = 2, .causal = false, .rotary = 3}, {4, 4}, 2),
      case_of(AttentionBlock{.heads = 1, .rotary = 1}, {3, 6}, 2),
      case_of(AttentionBlock{.heads = 4, .kv_heads = 2, .head_size = 4, .rotary = 10}, {4, 6}, 2),
      // Norms of heads.
      case_of(AttentionBlock{.heads = 2, .qk_norm = true}, {3, 6}, 2),
      case_of(AttentionBlock{.heads = 4, .kv_heads = 1, .head_size = 3, .qk_norm = true}, {3, 4},
              2),
      case_of(AttentionBlock{.heads = 2, .causal = false, .qk_norm = true, .rotary = 100}, {4, 8},
              2),
      // Windows: of one token, of some, of all, of more than there are.
      case_of(AttentionBlock{.heads = 2, .window = 1}, {4, 4}, 2),
      case_of(AttentionBlock{.heads = 2, .window = 2}, {5, 4}, 2),
      case_of(AttentionBlock{.heads = 1, .window = 4}, {4, 3}, 2),
      case_of(AttentionBlock{.heads = 1, .window = 9}, {4, 3}, 2),
      case_of(AttentionBlock{.heads = 4, .kv_heads = 2, .window = 3}, {6, 8}, 2),
      // Biases and norms.
      case_of(AttentionBlock{.heads = 2, .bias = AttentionBias::qkv}, {3, 4}, 2),
      case_of(AttentionBlock{.heads = 2, .bias = AttentionBias::none}, {3, 4}, 2),
      case_of(AttentionBlock{.heads = 2, .norm = kRms}, {3, 4}, 2),
      case_of(AttentionBlock{.heads = 4,
                             .kv_heads = 2,
                             .head_size = 4,
                             .norm = kRms,
                             .bias = AttentionBias::qkv,
                             .qk_norm = true,
                             .rotary = 10000,
                             .window = 3},
              {5, 6}, 2),
      case_of(AttentionBlock{.heads = 3,
                             .causal = false,
                             .kv_heads = 1,
                             .head_size = 2,
                             .norm = kRms,
                             .bias = AttentionBias::none,
                             .qk_norm = true,
                             .rotary = 50},
              {4, 5}, 2),
      // MLPs.
      case_of(MlpBlock{.hidden = 6, .activation = Activation::silu}, {4}, 2),
      case_of(MlpBlock{.hidden = 3, .activation = Activation::silu}, {3, 5}, 2),
      case_of(MlpBlock{.hidden = 6, .activation = Activation::relu}, {4}, 2),
      case_of(MlpBlock{.hidden = 3, .activation = Activation::relu}, {3, 5}, 2),
      case_of(MlpBlock{.hidden = 6, .gated = true}, {4}, 2),
      case_of(MlpBlock{.hidden = 4, .activation = Activation::silu, .gated = true}, {3, 5}, 2),
      case_of(MlpBlock{.hidden = 4, .activation = Activation::relu, .gated = true}, {3, 5}, 2),
      case_of(MlpBlock{.hidden = 1, .activation = Activation::silu, .gated = true}, {2, 3}, 2),
      case_of(MlpBlock{.hidden = 5, .bias = false}, {3, 4}, 2),
      case_of(MlpBlock{.hidden = 5, .norm = kRms}, {4}, 2),
      case_of(MlpBlock{.hidden = 6,
                       .activation = Activation::silu,
                       .gated = true,
                       .norm = kRms,
                       .bias = false},
              {3, 4}, 2),
      // Heads of networks.
      case_of(Head{.classes = 3, .norm_kind = kRms}, {4}, 2),
      case_of(Head{.classes = 3, .bias = true, .norm_kind = kRms}, {3, 4}, 2),
      case_of(Head{.classes = 2, .norm = false, .norm_kind = kRms}, {2, 3}, 2)};
}

}  // namespace

std::vector<Case> cases_without_batch_norm() {
  std::vector<Case> cases = earlier_cases();
  for (Case& of_language_models : language_model_cases())
    cases.push_back(std::move(of_language_models));
  return cases;
}

std::vector<Case> cases_with_batch_norm() {
  return {case_of(BatchNorm{}, {3, 2, 2}, 2),
          case_of(BatchNorm{}, {2, 3, 1}, 3),
          case_of(BatchNorm{}, {1, 2, 3}, 1),
          case_of(ResidualBlock{2, 1}, {2, 3, 3}, 2, 1),
          case_of(ResidualBlock{3, 1}, {2, 3, 2}, 2, 1),
          case_of(ResidualBlock{2, 2}, {2, 4, 3}, 2, 1),
          case_of(ResidualBlock{3, 2}, {1, 5, 4}, 2, 1)};
}

std::vector<Case> all_cases() {
  std::vector<Case> cases = cases_without_batch_norm();
  for (Case& with : cases_with_batch_norm()) cases.push_back(std::move(with));
  return cases;
}

Passes run(const Case& c) {
  Passes passes;
  passes.forward = reference_forward(c.call());
  passes.backward = reference_backward_input(c.call(), passes.forward, c.output_gradient);
  passes.parameter_gradients =
      reference_backward_weight(c.call(), passes.forward, passes.backward, c.output_gradient);
  for (std::size_t i = 0; i < c.layer.parameters.size(); ++i) {
    const bool with_input = c.layer.parameters[i].with_input;
    CHECK(passes.backward.parameter_gradients[i].empty() == !with_input);
    CHECK(passes.parameter_gradients[i].empty() == with_input);
    if (with_input) passes.parameter_gradients[i] = passes.backward.parameter_gradients[i];
  }
  return passes;
}

double largest_difference(const Values& a, const Values& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

MeanAndVariance statistics(const Values& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, squares / count};
}

}  // namespace plumbline::test
