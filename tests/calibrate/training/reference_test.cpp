// The reference layers: worked by hand, and every gradient against finite differences.
//
// SPDX-License-Identifier: MIT
#include "calibrate/training/reference.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "calibrate/training/initial_parameters.h"
#include "calibrate/training/reference_math.h"

namespace plumbline {
namespace {

using Extents = std::vector<std::int64_t>;

// Layers by hand, as the contract of the kinds has them.

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

void fill(NetworkLayer& layer, const AttentionBlock& block) {
  const std::int64_t t = layer.input.extents[0];
  const std::int64_t d = layer.input.extents[1];
  layer.output = layer.input;
  layer.parameters = {parameter("norm.scale", {d}),           parameter("norm.shift", {d}),
                      parameter("qkv.weight", {3 * d, d}),    parameter("qkv.bias", {3 * d}),
                      parameter("projection.weight", {d, d}), parameter("projection.bias", {d})};
  layer.kept = {row_statistic("norm.mean", {t}),
                row_statistic("norm.rstd", {t}),
                tensor("norm.output", {t, d}),
                tensor("qkv", {t, 3 * d}),
                row_statistic("logsumexp", {block.heads, t}),
                tensor("context", {t, d})};
  layer.left_for_weights = {tensor("qkv.gradient", {t, 3 * d}),
                            tensor("norm.output_gradient", {t, d})};
  layer.splits = true;
}

void fill(NetworkLayer& layer, const MlpBlock& block) {
  const Extents& extents = layer.input.extents;
  const std::int64_t d = extents.back();
  layer.output = layer.input;
  layer.parameters = {parameter("norm.scale", {d}),
                      parameter("norm.shift", {d}),
                      parameter("up.weight", {block.hidden, d}),
                      parameter("up.bias", {block.hidden}),
                      parameter("down.weight", {d, block.hidden}),
                      parameter("down.bias", {d})};
  layer.kept = {row_statistic("norm.mean", rows_of(extents)),
                row_statistic("norm.rstd", rows_of(extents)), tensor("norm.output", extents),
                tensor("hidden", with_last(extents, block.hidden)),
                tensor("gelu", with_last(extents, block.hidden))};
  layer.left_for_weights = {tensor("hidden.gradient", with_last(extents, block.hidden)),
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
    layer.parameters = {parameter("norm.scale", {f}), parameter("norm.shift", {f})};
    layer.kept = {row_statistic("norm.mean", rows_of(extents)),
                  row_statistic("norm.rstd", rows_of(extents)), tensor("norm.output", extents)};
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

NetworkLayer layer_of(const LayerSettings& settings, Extents input) {
  NetworkLayer layer;
  layer.name = "layer";
  layer.settings = settings;
  layer.input = {std::move(input)};
  std::visit([&](const auto& kind) { fill(layer, kind); }, settings);
  return layer;
}

// Micro-batches with numbers in them.

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

/// A layer with all that one micro-batch needs.
struct Case {
  std::string text;
  NetworkLayer layer;
  std::int64_t batch = 1;
  std::vector<Values> parameters;
  Values input;
  Values labels;
  Values output_gradient;

  ReferenceCall call() const { return {layer, batch, parameters, input, labels}; }
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

Case case_of(const LayerSettings& settings, Extents input, std::int64_t batch,
             std::uint64_t seed = 1) {
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

std::vector<Case> cases_without_batch_norm() {
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

/// The seeds keep every relu away from its kink; the check of the gradients watches over it.
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

/// All three passes; the gradients of the parameters from wherever they come.
struct Passes {
  ReferenceForward forward;
  ReferenceBackward backward;
  std::vector<Values> parameter_gradients;
};

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

// Finite differences.

double inner_product(const Values& a, const Values& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Which elements of what a forward leaves are zero: it changes where a relu crosses its kink.
std::vector<bool> zeros(const ReferenceForward& forward) {
  std::vector<bool> result;
  const auto append = [&](const Values& values) {
    for (const double value : values) result.push_back(value == 0);
  };
  append(forward.output);
  for (const Values& kept : forward.kept) append(kept);
  return result;
}

/// The derivative by `element` of the inner product of the output with its gradient: central
/// differences of fourth order.
double numeric_gradient(const Case& c, double& element, const std::vector<bool>& zeros_before) {
  constexpr double kStep = 2e-4;
  const double before = element;
  const auto at = [&](double offset) {
    element = before + offset;
    const ReferenceForward forward = reference_forward(c.call());
    element = before;
    REQUIRE_MESSAGE(zeros(forward) == zeros_before, "the case lies at a kink: take another seed");
    return inner_product(forward.output, c.output_gradient);
  };
  return (8 * (at(kStep) - at(-kStep)) - (at(2 * kStep) - at(-2 * kStep))) / (12 * kStep);
}

/// The largest relative error of a gradient by `values`, which are part of the case. Elements next
/// to nothing beside the largest one count as a thousandth of it.
double gradient_error(const Case& c, Values& values, const Values& gradient,
                      const std::vector<bool>& zeros_before) {
  REQUIRE(gradient.size() == values.size());
  double largest = 1e-3;
  for (const double element : gradient) largest = std::max(largest, std::abs(element));
  double error = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = numeric_gradient(c, values[i], zeros_before);
    const double scale = std::max({std::abs(expected), std::abs(gradient[i]), 1e-3 * largest});
    error = std::max(error, std::abs(gradient[i] - expected) / scale);
  }
  return error;
}

TEST_CASE("every gradient of every kind is that of finite differences") {
  for (Case& c : all_cases()) {
    CAPTURE(c.text);
    const Passes passes = run(c);
    const std::vector<bool> zeros_before = zeros(passes.forward);
    if (std::holds_alternative<Embedding>(c.layer.settings)) {
      CHECK(passes.backward.input_gradient.empty());
    } else {
      CHECK(gradient_error(c, c.input, passes.backward.input_gradient, zeros_before) < 1e-6);
    }
    for (std::size_t i = 0; i < c.parameters.size(); ++i) {
      CAPTURE(c.layer.parameters[i].name);
      CHECK(gradient_error(c, c.parameters[i], passes.parameter_gradients[i], zeros_before) < 1e-6);
    }
  }
}

// Laws.

Values nothing_like(const Values& values) {
  return Values(values.size(), std::numeric_limits<double>::quiet_NaN());
}

TEST_CASE("the backward for the weights reads no parameters") {
  for (Case& c : all_cases()) {
    CAPTURE(c.text);
    const ReferenceForward forward = reference_forward(c.call());
    const ReferenceBackward backward =
        reference_backward_input(c.call(), forward, c.output_gradient);
    const std::vector<Values> expected =
        reference_backward_weight(c.call(), forward, backward, c.output_gradient);
    for (Values& values : c.parameters) values = nothing_like(values);
    CHECK(reference_backward_weight(c.call(), forward, backward, c.output_gradient) == expected);
  }
}

TEST_CASE("the backward of a relu reads its output, that of a gelu and of a max pool the input") {
  Case relu = case_of(Relu{}, {4}, 2);
  const Passes of_relu = run(relu);
  relu.input = nothing_like(relu.input);
  CHECK(
      reference_backward_input(relu.call(), of_relu.forward, relu.output_gradient).input_gradient ==
      of_relu.backward.input_gradient);

  for (const Case& c : {case_of(Gelu{}, {4}, 2), case_of(MaxPool{}, {1, 4, 4}, 2)}) {
    Passes passes = run(c);
    passes.forward.output = nothing_like(passes.forward.output);
    CHECK(reference_backward_input(c.call(), passes.forward, c.output_gradient).input_gradient ==
          passes.backward.input_gradient);
  }
}

Values part(const Values& values, std::int64_t of, std::int64_t parts) {
  const std::int64_t size = std::ssize(values) / parts;
  return Values(values.begin() + of * size, values.begin() + (of + 1) * size);
}

/// One of the equal parts of a micro-batch.
Case part(const Case& c, std::int64_t of, std::int64_t parts) {
  Case half = c;
  half.batch = c.batch / parts;
  half.input = part(c.input, of, parts);
  half.labels = part(c.labels, of, parts);
  half.output_gradient = part(c.output_gradient, of, parts);
  return half;
}

double largest_difference(const Values& a, const Values& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST_CASE("without batch norm, samples stand alone and gradients are sums over them") {
  for (const Case& c : cases_without_batch_norm()) {
    CAPTURE(c.text);
    const Passes whole = run(c);
    const Passes first = run(part(c, 0, 2));
    const Passes second = run(part(c, 1, 2));
    CHECK(part(whole.forward.output, 0, 2) == first.forward.output);
    CHECK(part(whole.forward.output, 1, 2) == second.forward.output);
    CHECK(part(whole.backward.input_gradient, 0, 2) == first.backward.input_gradient);
    CHECK(part(whole.backward.input_gradient, 1, 2) == second.backward.input_gradient);
    for (std::size_t i = 0; i < c.parameters.size(); ++i) {
      Values sum = first.parameter_gradients[i];
      reference::add(sum, second.parameter_gradients[i]);
      CHECK(largest_difference(sum, whole.parameter_gradients[i]) < 1e-12);
    }
  }
}

TEST_CASE("causal attention does not look ahead, and attention that is not causal does") {
  for (const bool causal : {true, false}) {
    CAPTURE(causal);
    Case c = case_of(AttentionBlock{2, causal}, {5, 4}, 1);
    const Values before = reference_forward(c.call()).output;
    c.input[3 * 4 + 1] += 0.5;  // token 3
    const Values after = reference_forward(c.call()).output;
    const auto same = [&](std::int64_t token) {
      return std::equal(before.begin() + token * 4, before.begin() + (token + 1) * 4,
                        after.begin() + token * 4);
    };
    for (std::int64_t token = 0; token < 3; ++token) CHECK(same(token) == causal);
    CHECK(!same(3));
    CHECK(!same(4));
  }
}

struct MeanAndVariance {
  double mean = 0;
  double variance = 0;
};

MeanAndVariance statistics(const Values& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, squares / count};
}

// A variance v comes out of a norm as v / (v + epsilon).
double normed_variance(double variance) { return variance / (variance + 1e-5); }

TEST_CASE("layer_norm makes mean 0 and variance 1 of each row, and keeps both as they were") {
  Case c = case_of(LayerNorm{}, {3, 5}, 2);
  c.parameters = initial_parameters(c.layer, 1);
  const ReferenceForward forward = reference_forward(c.call());
  for (std::int64_t row = 0; row < 6; ++row) {
    const MeanAndVariance in = statistics(part(c.input, row, 6));
    const MeanAndVariance out = statistics(part(forward.output, row, 6));
    CHECK(std::abs(out.mean) < 1e-14);
    CHECK(std::abs(out.variance - normed_variance(in.variance)) < 1e-14);
    CHECK(std::abs(forward.kept[0][row] - in.mean) < 1e-15);
    CHECK(std::abs(forward.kept[1][row] - 1 / std::sqrt(in.variance + 1e-5)) < 1e-14);
  }
}

TEST_CASE("batch_norm makes each channel's mean its shift and the deviation its scale") {
  Case c = case_of(BatchNorm{}, {2, 3, 2}, 3);
  c.parameters = {{2, 0.5}, {-1, 3}};
  const ReferenceForward forward = reference_forward(c.call());
  for (std::int64_t channel = 0; channel < 2; ++channel) {
    Values in;
    Values out;
    for (std::int64_t sample = 0; sample < 3; ++sample) {
      const Values in_part = part(c.input, sample * 2 + channel, 6);
      const Values out_part = part(forward.output, sample * 2 + channel, 6);
      in.insert(in.end(), in_part.begin(), in_part.end());
      out.insert(out.end(), out_part.begin(), out_part.end());
    }
    const double scale = c.parameters[0][channel];
    CHECK(std::abs(statistics(out).mean - c.parameters[1][channel]) < 1e-14);
    CHECK(std::abs(statistics(out).variance -
                   scale * scale * normed_variance(statistics(in).variance)) < 1e-13);
    CHECK(std::abs(forward.kept[0][channel] - statistics(in).mean) < 1e-15);
  }
}

// Worked by hand.

/// A micro-batch of one sample with an output gradient of ones.
Case one_sample(const LayerSettings& settings, Extents extents, std::vector<Values> parameters,
                Values input) {
  Case c = case_of(settings, std::move(extents), 1);
  c.parameters = std::move(parameters);
  c.input = std::move(input);
  c.output_gradient.assign(c.output_gradient.size(), 1.0);
  return c;
}

void check_close(const Values& values, const Values& expected) {
  CHECK(largest_difference(values, expected) < 1e-14);
}

TEST_CASE("a linear layer of 2 x 2 by hand") {
  Case c = one_sample(Linear{2, true}, {2}, {{1, 2, 3, 4}, {10, 20}}, {5, 6});
  c.output_gradient = {1, 2};
  const Passes passes = run(c);
  CHECK(passes.forward.output == Values{5 + 12 + 10, 15 + 24 + 20});
  CHECK(passes.backward.input_gradient == Values{1 + 6, 2 + 8});
  CHECK(passes.parameter_gradients[0] == Values{5, 6, 10, 12});
  CHECK(passes.parameter_gradients[1] == Values{1, 2});
}

TEST_CASE("relu and gelu by hand") {
  const Case relu = one_sample(Relu{}, {3}, {}, {-1, 0, 2});
  CHECK(run(relu).forward.output == Values{0, 0, 2});
  CHECK(run(relu).backward.input_gradient == Values{0, 0, 1});
  // At 0 the value is 0 and the slope a half. At 1, sqrt(2/pi) x 1.044715 = 0.83357 has the tanh
  // 0.68238, and half of 1.68238 is 0.84119. Far out it is 0 or x.
  const Case gelu = one_sample(Gelu{}, {4}, {}, {0, 1, -20, 20});
  const Passes passes = run(gelu);
  CHECK(passes.forward.output[0] == 0);
  CHECK(std::abs(passes.forward.output[1] - 0.841192) < 1e-6);
  CHECK(std::abs(passes.forward.output[2]) < 1e-14);
  CHECK(passes.forward.output[3] == 20);
  CHECK(passes.backward.input_gradient[0] == 0.5);
}

TEST_CASE("attention of one head over two tokens by hand") {
  // One feature, so scores are not scaled. q = 0 and 1, k = 0 and ln 3, v = 2 and 4.
  // Token 1 scores 0 and ln 3: a quarter of 2 and three quarters of 4, and the sum of the
  // exponentials is 4. Token 0 scores 0 and 0: the mean of 2 and 4, or, causal, itself alone.
  const Values qkv{0, 0, 2, 1, std::log(3.0), 4};
  const reference::AttentionForward causal = reference::attention(qkv, {1, 2, 1, 1, true});
  check_close(causal.context, {2, 3.5});
  check_close(causal.logsumexp, {0, std::log(4.0)});
  const reference::AttentionForward all = reference::attention(qkv, {1, 2, 1, 1, false});
  check_close(all.context, {3, 3.5});
  check_close(all.logsumexp, {std::log(2.0), std::log(4.0)});
  // Causal, with gradients 0 and 1 of the context. Of v: the probabilities 1/4 and 3/4 of token 1.
  // Its probabilities have the gradients 2 and 4, 3.5 in the mean, so its scores 1/4 (2 - 3.5) =
  // -3/8 and 3/4 (4 - 3.5) = 3/8. Of its q: 3/8 ln 3; of both k, as q = 1: -3/8 and 3/8.
  check_close(reference::attention_gradient({0, 1}, qkv, causal.logsumexp, {1, 2, 1, 1, true}),
              {0, -0.375, 0.25, 0.375 * std::log(3.0), 0.375, 0.75});
}

TEST_CASE("heads take their columns in order, and scores are divided by the root of their size") {
  // Two heads of two features. Token 1, head 0: q = (1, 1) and its own k = (a, a) with
  // a = ln 3 / sqrt(2), so the scores are 0 and 2 a / sqrt(2) = ln 3: a quarter and three quarters.
  // Head 1: q = 0, halves. Token 0 sees itself alone.
  const double a = std::log(3.0) / std::sqrt(2.0);
  const Values qkv{0, 0, 0, 0, 0, 0, 0, 0, 4, 8, 2, 0,  //
                   1, 1, 0, 0, a, a, 5, 5, 8, 0, 4, 6};
  const reference::AttentionForward made = reference::attention(qkv, {1, 2, 4, 2, true});
  check_close(made.context, {4, 8, 2, 0, 7, 2, 3, 3});
  check_close(made.logsumexp, {0, std::log(4.0), 0, std::log(2.0)});
}

TEST_CASE("an attention block of one head over two tokens by hand") {
  // The rows (1, -1) and (-1, 1) have mean 0 and variance 1: the norm makes n and -n of them, with
  // n = (r, -r). q = k = 0 gives equal probabilities, v is the norm's output, the projection
  // doubles and adds (1, 2).
  const double r = 1 / std::sqrt(1 + 1e-5);
  const std::vector<Values> parameters{
      {1, 1},       {0, 0}, {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1}, {0, 0, 0, 0, 0, 0},
      {2, 0, 0, 2}, {1, 2}};
  const Values input{1, -1, -1, 1};
  // Token 0 sees n alone, token 1 the mean of n and -n.
  const Case causal = one_sample(AttentionBlock{1, true}, {2, 2}, parameters, input);
  check_close(reference_forward(causal.call()).output, {2 + 2 * r, 1 - 2 * r, 0, 3});
  const Case all = one_sample(AttentionBlock{1, false}, {2, 2}, parameters, input);
  check_close(reference_forward(all.call()).output, {2, 1, 0, 3});
}

TEST_CASE("an mlp block by hand") {
  // The norm makes (r, -r); up takes their sum and their difference, 0 and 2 r; gelu(0) = 0; down
  // brings gelu(2 r) to the first feature.
  const double r = 1 / std::sqrt(1 + 1e-5);
  const Case c = one_sample(
      MlpBlock{2}, {2}, {{1, 1}, {0, 0}, {1, 1, 1, -1}, {0, 0}, {5, 1, 7, 0}, {0, 10}}, {1, -1});
  check_close(reference_forward(c.call()).output, {1 + reference::gelu({2 * r})[0], 9});
}

TEST_CASE("an embedding by hand") {
  const Case c = one_sample(Embedding{3, 2, true}, {3},
                            {{1, 2, 3, 4, 5, 6}, {10, 20, 30, 40, 50, 60}}, {2, 0, 2});
  const Passes passes = run(c);
  CHECK(passes.forward.output == Values{15, 26, 31, 42, 55, 66});
  // Id 2 twice, id 0 once, id 1 never.
  CHECK(passes.parameter_gradients[0] == Values{1, 1, 0, 0, 2, 2});
  CHECK(passes.parameter_gradients[1] == Values{1, 1, 1, 1, 1, 1});
}

TEST_CASE("equal logits lose the logarithm of the number of classes") {
  Case c =
      one_sample(Head{4, false, true}, {2, 3}, {Values(12, 0.0), {7, 7, 7, 7}}, {1, 2, 3, 4, 5, 6});
  c.labels = {3, 1};
  const Passes passes = run(c);
  check_close(passes.forward.output, {std::log(4.0)});
  check_close(passes.forward.kept[0], Values(8, 0.25));
  // Each of the two rows bears half: (1/4 - 1) / 2 for its label, 1/4 / 2 for the others; the bias
  // gathers both rows.
  check_close(passes.parameter_gradients[1], {0.25, -0.25, 0.25, -0.25});
}

TEST_CASE("a sure head loses next to nothing, and large logits do not overflow") {
  Case c = one_sample(Head{2, false, false}, {1}, {{1000, -1000}}, {1});
  c.labels = {0};
  CHECK(reference_forward(c.call()).output == Values{0});
  c.labels = {1};
  CHECK(reference_forward(c.call()).output == Values{2000});
}

TEST_CASE("a convolution by hand, with stride and padding") {
  const Values image{1, 2, 3,  //
                     4, 5, 6,  //
                     7, 8, 9};
  const Values kernel{1, 2,  //
                      3, 4};
  const Case plain = one_sample(Conv2d{1, 2, 1, 0, true}, {1, 3, 3}, {kernel, {100}}, image);
  const Passes passes = run(plain);
  CHECK(passes.forward.output == Values{100 + 1 + 4 + 12 + 20, 100 + 2 + 6 + 15 + 24,
                                        100 + 4 + 10 + 21 + 32, 100 + 5 + 12 + 24 + 36});
  // An element of the picture gathers those of the kernel that pass over it, and the reverse.
  CHECK(passes.backward.input_gradient == Values{1, 3, 2, 4, 10, 6, 3, 7, 4});
  CHECK(passes.parameter_gradients[0] == Values{12, 16, 24, 28});
  CHECK(passes.parameter_gradients[1] == Values{4});
  // Places at (-1, -1), (-1, 1), (1, -1) and (1, 1).
  const Case padded = one_sample(Conv2d{1, 2, 2, 1, false}, {1, 3, 3}, {kernel}, image);
  CHECK(reference_forward(padded.call()).output == Values{4, 6 + 12, 8 + 28, 5 + 12 + 24 + 36});
}

TEST_CASE("convolution sums over input channels, each output channel with weights of its own") {
  // 1 x 1 kernels are a linear layer over the channels.
  const Case c =
      one_sample(Conv2d{2, 1, 1, 0, false}, {2, 1, 2}, {{1, 10, 100, 1000}}, {1, 2, 3, 4});
  CHECK(reference_forward(c.call()).output == Values{31, 42, 3100, 4200});
}

TEST_CASE("max_pool takes the first of equal elements, and padding never wins") {
  const Case ties = one_sample(MaxPool{2, 2, 0}, {1, 2, 4}, {}, {1, 7, 3, 3, 7, 7, 3, 3});
  CHECK(run(ties).forward.output == Values{7, 3});
  CHECK(run(ties).backward.input_gradient == Values{0, 1, 1, 0, 0, 0, 0, 0});
  const Case padded = one_sample(MaxPool{3, 2, 1}, {1, 2, 2}, {}, {-4, -3, -2, -1});
  CHECK(run(padded).forward.output == Values{-1});
  CHECK(run(padded).backward.input_gradient == Values{0, 0, 0, 1});
}

TEST_CASE("a residual block whose convolutions do nothing passes the relu of its input") {
  // The norm of zeros is its shift: -1 is stopped by the first relu, 0.5 is added to the input.
  const Case c = one_sample(ResidualBlock{1, 1}, {1, 2, 2},
                            {Values(9, 0.0), {1}, {-1}, Values(9, 0.0), {1}, {0.5}}, {-2, 0, 1, 2});
  const Passes passes = run(c);
  CHECK(passes.forward.output == Values{0, 0.5, 1.5, 2.5});
  CHECK(passes.backward.input_gradient == Values{0, 1, 1, 1});
  CHECK(passes.parameter_gradients[5] == Values{3});
}

TEST_CASE("two steps of an lstm by hand") {
  // The cell gate takes the input, and the forget gate of a step twice the h before it; all else is
  // 0, whose sigmoid is a half. tanh(ln 3 / 2) = 1/2. Step 0: c = 1/2 x 0 + 1/2 x 1/2 and h = 1/2
  // tanh(1/4). Step 1, of input 0: c = sigmoid(2 h) x 1/4 + 1/2 x 0.
  const Values input{std::log(3.0) / 2, 0};
  const std::vector<Values> parameters{{0, 0, 1, 0}, {0, 2, 0, 0}, {0, 0, 0, 0}};
  const Case c = one_sample(Lstm{1, false}, {2, 1}, parameters, input);
  const double h0 = 0.5 * std::tanh(0.25);
  const double forget = 1 / (1 + std::exp(-2 * h0));
  const double h1 = 0.5 * std::tanh(forget / 4);
  const ReferenceForward plain = reference_forward(c.call());
  check_close(plain.output, {h0, h1});
  check_close(plain.kept[0], {0.5, 0.5, 0.5, 0.5, 0.5, forget, 0, 0.5});
  check_close(plain.kept[1], {0.25, forget / 4});
  const Case with_input = one_sample(Lstm{1, true}, {2, 1}, parameters, input);
  const ReferenceForward residual = reference_forward(with_input.call());
  check_close(residual.output, {h0 + input[0], h1});
  check_close(residual.kept[2], {h0, h1});
}

// Starting values.

TEST_CASE("starting values depend on the seed alone, to the last bit") {
  const NetworkLayer layer = layer_of(MlpBlock{8}, {3, 6});
  CHECK(initial_parameters(layer, 5) == initial_parameters(layer, 5));
  CHECK(initial_parameters(layer, 5) != initial_parameters(layer, 6));
  const NetworkLayer linear = layer_of(Linear{4, false}, {4});
  const Values weight = initial_parameters(linear, 1)[0];
  CHECK(Values(weight.begin(), weight.begin() + 3) ==
        Values{0.2683969718636945, -0.32389193098060787, 0.5924275942379609});
  // Two parameters of one shape do not hold the same numbers.
  const NetworkLayer square = layer_of(Lstm{4, true}, {3, 4});
  CHECK(initial_parameters(square, 1)[0] != initial_parameters(square, 1)[1]);
}

void check_normal(const Values& values, double deviation) {
  const MeanAndVariance found = statistics(values);
  const double spread = 5 / std::sqrt(static_cast<double>(values.size()));  // five deviations
  CHECK(std::abs(found.mean) < spread * deviation);
  CHECK(std::abs(found.variance / (deviation * deviation) - 1) < spread * std::sqrt(2.0));
  // 68.3 % of normal numbers lie within one deviation, 95.4 % within two.
  const auto within = [&](double limit) {
    const auto inside = std::count_if(values.begin(), values.end(),
                                      [&](double value) { return std::abs(value) < limit; });
    return static_cast<double>(inside) / static_cast<double>(values.size());
  };
  CHECK(std::abs(within(deviation) - 0.683) < 0.01 + spread / 2);
  CHECK(std::abs(within(2 * deviation) - 0.954) < 0.01 + spread / 4);
}

TEST_CASE("starting values have the variance of their kind") {
  const std::vector<Values> linear = initial_parameters(layer_of(Linear{200, true}, {64}), 3);
  check_normal(linear[0], 1 / std::sqrt(64.0));
  CHECK(linear[1] == Values(200, 0.0));
  const std::vector<Values> conv =
      initial_parameters(layer_of(Conv2d{64, 3, 1, 1, true}, {16, 8, 8}), 3);
  check_normal(conv[0], 1 / std::sqrt(16.0 * 9));
  const std::vector<Values> embedding =
      initial_parameters(layer_of(Embedding{100, 64, true}, {50}), 3);
  check_normal(embedding[0], 0.02);
  check_normal(embedding[1], 0.02);
  const std::vector<Values> block = initial_parameters(layer_of(MlpBlock{256}, {4, 64}), 3);
  CHECK(block[0] == Values(64, 1.0));
  CHECK(block[1] == Values(64, 0.0));
  check_normal(block[2], 1 / std::sqrt(64.0));
  CHECK(block[3] == Values(256, 0.0));
  check_normal(block[4], 1 / std::sqrt(256.0));
  CHECK(block[5] == Values(64, 0.0));
}

}  // namespace
}  // namespace plumbline
