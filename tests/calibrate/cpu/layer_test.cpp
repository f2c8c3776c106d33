// The fp32 kernels against the reference layers: every kind, and the example networks as chains.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/layer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "calibrate/cpu/approximation.h"
#include "calibrate/cpu/gemm.h"
#include "calibrate/training/initial_parameters.h"
#include "calibrate/training/reference.h"
#include "models/network/network_reader.h"
#include "tests/support/layer_cases.h"
#include "tests/support/text_source.h"

namespace plumbline {
namespace {

using test::derived;
using test::difference;
using test::elements_of;
using test::Extents;
using test::Floats;
using test::nothing;
using test::Numbers;
using test::ReferencePasses;
using test::run_reference;
using test::to_values;

/// The tolerance as a share of the largest element of a tensor.
constexpr double kTolerance = 2e-5;
/// The same for kinds without norms and softmax, in which nothing cancels.
constexpr double kSmallTolerance = 2e-6;

double tolerance(std::string_view kind) {
  const bool cancels = kind == "attention_block" || kind == "mlp_block" || kind == "layer_norm" ||
                       kind == "rms_norm" || kind == "head" || kind == "residual_block";
  return cancels ? kTolerance : kSmallTolerance;
}

/// Whether there are kernels; tells where there are none.
bool has_kernels() {
  if (cpu_library().empty()) {
    MESSAGE("skipped: this build has no oneDNN");
    return false;
  }
  use_one_thread();
  return true;
}

bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// Layers with their tensors.

/// A layer's tensors of one micro-batch. What passes write starts as not a number.
struct Tensors {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> labels;
  Floats input;
  Floats output;
  std::vector<Floats> kept;
  std::vector<Floats> left;
  std::vector<Floats> parameters;
  std::vector<Floats> gradients;
  Floats output_gradient;
  Floats input_gradient;

  explicit Tensors(const NetworkLayer& layer, std::int64_t batch)
      : output(nothing(batch * layer.output.elements())),
        input_gradient(nothing(batch * layer.input.elements())) {
    kept.reserve(layer.kept.size());
    for (const KeptTensor& tensor : layer.kept) kept.push_back(nothing(elements_of(tensor, batch)));
    left.reserve(layer.left_for_weights.size());
    for (const KeptTensor& tensor : layer.left_for_weights)
      left.push_back(nothing(elements_of(tensor, batch)));
  }

  CpuCall call() {
    CpuCall made;
    made.input = input.data();
    made.ids = ids.data();
    made.labels = labels.data();
    made.output = output.data();
    for (Floats& tensor : kept) made.kept.push_back(tensor.data());
    for (Floats& tensor : left) made.left.push_back(tensor.data());
    for (const Floats& tensor : parameters) made.parameters.push_back(tensor.data());
    for (Floats& tensor : gradients) made.gradients.push_back(tensor.data());
    made.output_gradient = output_gradient.data();
    made.input_gradient = input_gradient.data();
    return made;
  }
};

/// A layer and numbers for one micro-batch of it.
struct Case {
  std::string text;
  NetworkLayer layer;
  std::int64_t batch = 1;
  Tensors tensors;
};

Case case_of(const LayerSettings& settings, const Extents& input, std::int64_t batch,
             std::uint64_t seed = 1) {
  const NetworkLayer layer = derived(settings, input);
  Tensors tensors(layer, batch);
  Numbers numbers(seed);
  for (const Parameter& p : layer.parameters) {
    // Products stay near 1.
    const double inputs =
        p.shape.extents.size() > 1
            ? static_cast<double>(p.shape.elements()) / static_cast<double>(p.shape.extents.front())
            : 1;
    const bool scale = p.name.ends_with("scale");
    const double high = scale ? 1.5 : 1.5 / std::sqrt(inputs);
    tensors.parameters.push_back(numbers.between(scale ? 0.5 : -high, high, p.shape.elements()));
    tensors.gradients.push_back(numbers.between(-1, 1, p.shape.elements()));
  }
  const std::int64_t elements = batch * layer.input.elements();
  if (const auto* embedding = std::get_if<Embedding>(&settings)) {
    tensors.ids = numbers.below(embedding->vocabulary, elements);
  } else {
    tensors.input = numbers.between(-2, 2, elements);
  }
  if (const auto* head = std::get_if<Head>(&settings))
    tensors.labels = numbers.below(head->classes, elements / layer.input.extents.back());
  tensors.output_gradient = numbers.between(-1, 1, batch * layer.output.elements());
  return {std::string(kind_name(settings)) + " on " + to_text(layer.input), layer, batch,
          std::move(tensors)};
}

std::vector<Case> earlier_cases() {
  return {case_of(Linear{3, true}, {4}, 2),
          case_of(Linear{70, true}, {50}, 33),
          case_of(Linear{40, false}, {9, 30}, 3),
          case_of(Linear{1, false}, {1}, 1),
          case_of(Relu{}, {77}, 3),
          case_of(Relu{}, {2, 3, 5}, 2),
          case_of(Gelu{}, {77}, 3),
          case_of(Gelu{}, {5, 40}, 2),
          case_of(LayerNorm{}, {100}, 3),
          case_of(LayerNorm{}, {33}, 2),
          case_of(LayerNorm{}, {4, 2, 5}, 2),
          case_of(LayerNorm{}, {150, 64}, 4),
          case_of(AttentionBlock{1, true}, {3, 4}, 2),
          case_of(AttentionBlock{4, true}, {64, 32}, 2),
          case_of(AttentionBlock{2, true}, {150, 16}, 2),
          case_of(AttentionBlock{2, false}, {150, 16}, 2),
          case_of(AttentionBlock{3, false}, {33, 51}, 1),
          case_of(AttentionBlock{1, true}, {1, 2}, 2),
          case_of(MlpBlock{6}, {4}, 2),
          case_of(MlpBlock{0}, {20, 48}, 3),
          case_of(Embedding{50, 24, false}, {30}, 3),
          case_of(Embedding{7, 33, true}, {10}, 4),
          case_of(Head{3, true, false}, {4}, 2),
          case_of(Head{200, true, true}, {150, 24}, 2),
          case_of(Head{10, false, true}, {64}, 8),
          case_of(Head{2, false, false}, {2, 3}, 2),
          case_of(Conv2d{8, 3, 1, 1, true}, {16, 32, 32}, 2),
          case_of(Conv2d{5, 3, 1, 1, false}, {3, 7, 9}, 2),
          case_of(Conv2d{5, 3, 2, 1, true}, {20, 33, 30}, 2),
          case_of(Conv2d{4, 5, 1, 2, true}, {3, 8, 6}, 1),
          case_of(Conv2d{3, 3, 2, 0, false}, {2, 5, 6}, 2),
          case_of(Conv2d{2, 2, 2, 1, true}, {1, 4, 3}, 2),
          case_of(Conv2d{6, 1, 1, 0, true}, {3, 5, 4}, 2),
          case_of(Conv2d{6, 1, 2, 0, true}, {3, 5, 4}, 2),
          case_of(Conv2d{2, 7, 1, 3, false}, {2, 2, 3}, 2),
          case_of(Conv2d{2, 4, 1, 3, false}, {2, 3, 2}, 2),
          case_of(Conv2d{2, 3, 1, 2, true}, {2, 4, 4}, 2),
          case_of(MaxPool{2, 2, 0}, {2, 4, 5}, 2),
          case_of(MaxPool{2, 1, 0}, {2, 4, 5}, 2),
          case_of(MaxPool{2, 2, 1}, {2, 4, 5}, 2),
          case_of(MaxPool{3, 2, 1}, {2, 9, 8}, 2),
          case_of(MaxPool{3, 1, 1}, {1, 3, 4}, 2),
          case_of(MaxPool{8, 8, 0}, {4, 8, 8}, 2),
          case_of(BatchNorm{}, {3, 6, 5}, 3),
          case_of(BatchNorm{}, {5, 16, 16}, 4),
          case_of(BatchNorm{}, {2, 2, 3}, 1),
          case_of(Flatten{}, {2, 3, 5}, 2),
          case_of(ResidualBlock{4, 1}, {4, 6, 7}, 2),
          case_of(ResidualBlock{6, 1}, {3, 6, 5}, 2),
          case_of(ResidualBlock{6, 2}, {3, 9, 8}, 3),
          case_of(ResidualBlock{4, 2}, {4, 8, 8}, 2),
          case_of(Lstm{3, false}, {4, 2}, 2),
          case_of(Lstm{40, false}, {12, 20}, 3),
          case_of(Lstm{36, true}, {9, 36}, 2),
          case_of(Lstm{5, true}, {1, 5}, 1)};
}

/// The layers of today's language models.
std::vector<Case> language_model_cases() {
  constexpr NormKind kRms = NormKind::rms_norm;
  return {
      case_of(RmsNorm{}, {100}, 3), case_of(RmsNorm{}, {33}, 2), case_of(RmsNorm{}, {4, 2, 5}, 2),
      case_of(RmsNorm{}, {150, 64}, 4),
      // Heads that share keys, and heads that do not fill the features.
      case_of(AttentionBlock{.heads = 4, .kv_heads = 2}, {3, 8}, 2),
      case_of(AttentionBlock{.heads = 6, .kv_heads = 2, .head_size = 16}, {150, 32}, 2),
      case_of(AttentionBlock{.heads = 3, .causal = false, .kv_heads = 1}, {150, 48}, 2),
      case_of(AttentionBlock{.heads = 2, .head_size = 5}, {33, 24}, 3),
      // Rotary positions and norms of heads.
      case_of(AttentionBlock{.heads = 2, .rotary = 10000}, {70, 32}, 2),
      case_of(AttentionBlock{.heads = 3, .causal = false, .head_size = 2, .rotary = 1}, {9, 7}, 2),
      case_of(AttentionBlock{.heads = 2, .qk_norm = true}, {33, 14}, 2),
      case_of(AttentionBlock{.heads = 4, .kv_heads = 1, .head_size = 33, .qk_norm = true}, {20, 24},
              3),
      // Windows, over one block of queries and over more.
      case_of(AttentionBlock{.heads = 2, .window = 1}, {37, 16}, 2),
      case_of(AttentionBlock{.heads = 2, .window = 5}, {150, 16}, 2),
      case_of(AttentionBlock{.heads = 4, .kv_heads = 2, .window = 64}, {150, 16}, 2),
      case_of(AttentionBlock{.heads = 2, .window = 100}, {333, 16}, 1),
      case_of(AttentionBlock{.heads = 4, .kv_heads = 2, .window = 7}, {333, 16}, 1),
      case_of(AttentionBlock{.heads = 2, .window = 37}, {37, 16}, 1),
      case_of(AttentionBlock{.heads = 2, .window = 1000}, {37, 16}, 1),
      // Biases and norms.
      case_of(AttentionBlock{.heads = 2, .bias = AttentionBias::qkv}, {20, 16}, 2),
      case_of(AttentionBlock{.heads = 2, .bias = AttentionBias::none}, {20, 16}, 2),
      case_of(AttentionBlock{.heads = 2, .norm = kRms}, {20, 16}, 2),
      case_of(AttentionBlock{.heads = 4,
                             .kv_heads = 2,
                             .head_size = 24,
                             .norm = kRms,
                             .bias = AttentionBias::qkv,
                             .qk_norm = true,
                             .rotary = 10000,
                             .window = 50},
              {150, 40}, 2),
      case_of(AttentionBlock{.heads = 3,
                             .causal = false,
                             .kv_heads = 1,
                             .head_size = 10,
                             .norm = kRms,
                             .bias = AttentionBias::none,
                             .qk_norm = true,
                             .rotary = 500000},
              {21, 16}, 3),
      // MLPs.
      case_of(MlpBlock{.hidden = 6, .activation = Activation::silu}, {4}, 2),
      case_of(MlpBlock{.hidden = 77, .activation = Activation::silu}, {20, 48}, 3),
      case_of(MlpBlock{.hidden = 77, .activation = Activation::relu}, {20, 48}, 3),
      case_of(MlpBlock{.hidden = 50, .gated = true}, {20, 48}, 3),
      case_of(MlpBlock{.hidden = 50, .activation = Activation::silu, .gated = true}, {5, 48}, 3),
      case_of(MlpBlock{.hidden = 50, .activation = Activation::relu, .gated = true}, {5, 48}, 3),
      case_of(MlpBlock{.hidden = 1, .activation = Activation::silu, .gated = true}, {3}, 2),
      case_of(MlpBlock{.hidden = 50, .bias = false}, {20, 48}, 3),
      case_of(MlpBlock{.hidden = 50, .norm = kRms}, {48}, 3),
      case_of(MlpBlock{.hidden = 130,
                       .activation = Activation::silu,
                       .gated = true,
                       .norm = kRms,
                       .bias = false},
              {20, 48}, 3),
      // Heads of networks.
      case_of(Head{.classes = 3, .norm_kind = kRms}, {4}, 2),
      case_of(Head{.classes = 200, .bias = true, .norm_kind = kRms}, {150, 24}, 2)};
}

std::vector<Case> all_cases() {
  std::vector<Case> cases = earlier_cases();
  for (Case& c : language_model_cases()) cases.push_back(std::move(c));
  return cases;
}

// Both codes.

/// F, I and W of the kernels. W sees no parameters: it needs none.
void run(CpuLayer& layer, const CpuCall& call) {
  layer.forward(call);
  layer.backward_input(call);
  CpuCall for_weights = call;
  for_weights.parameters.clear();
  layer.backward_weight(for_weights);
}

ReferencePasses run_reference(const Case& c) {
  const Tensors& t = c.tensors;
  std::vector<Values> parameters;
  parameters.reserve(t.parameters.size());
  for (const Floats& parameter : t.parameters) parameters.push_back(to_values(parameter));
  return run_reference(c.layer, c.batch, parameters,
                       t.ids.empty() ? to_values(t.input) : to_values(t.ids), to_values(t.labels),
                       to_values(t.output_gradient));
}

/// The worst difference of each kind: told at the end.
using Worst = std::map<std::string, double>;

TEST_CASE("the kernels of every kind make what the reference makes") {
  if (!has_kernels()) return;
  Worst worst;
  for (Case& c : all_cases()) {
    CAPTURE(c.text);
    Tensors& t = c.tensors;
    const std::vector<Floats> gradients_before = t.gradients;
    const ReferencePasses expected = run_reference(c);
    run(*cpu_layer(c.layer, c.batch), t.call());
    double& of_kind = worst[std::string(kind_name(c.layer.settings))];
    const auto check = [&](const std::string& what, const Floats& found, const Values& truth) {
      CAPTURE(what);
      const double off = difference(found, truth);
      CHECK(off < tolerance(kind_name(c.layer.settings)));
      of_kind = std::max(of_kind, off);
    };
    check("output", t.output, expected.forward.output);
    for (std::size_t i = 0; i < t.kept.size(); ++i)
      check(c.layer.kept[i].name, t.kept[i], expected.forward.kept[i]);
    for (std::size_t i = 0; i < t.left.size(); ++i)
      check(c.layer.left_for_weights[i].name, t.left[i], expected.backward.left[i]);
    if (t.ids.empty()) check("input gradient", t.input_gradient, expected.backward.input_gradient);
    // Gradients are added to what is there.
    for (std::size_t i = 0; i < t.gradients.size(); ++i) {
      Values sum = to_values(gradients_before[i]);
      REQUIRE(sum.size() == expected.gradients[i].size());
      for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += expected.gradients[i][j];
      check(c.layer.parameters[i].name + " gradient", t.gradients[i], sum);
    }
  }
  for (const auto& [kind, off] : worst) MESSAGE(kind, ": ", off);
}

TEST_CASE("the same call makes the same bits, and other calls between leave nothing behind") {
  if (!has_kernels()) return;
  for (Case& c : all_cases()) {
    CAPTURE(c.text);
    Tensors& t = c.tensors;
    const std::vector<Floats> gradients_before = t.gradients;
    const auto layer = cpu_layer(c.layer, c.batch);
    run(*layer, t.call());
    const Tensors once = t;
    // Other numbers.
    for (Floats& parameter : t.parameters) std::reverse(parameter.begin(), parameter.end());
    run(*layer, t.call());
    t.parameters = once.parameters;
    t.gradients = gradients_before;
    run(*layer, t.call());
    CHECK(same_bits(t.output, once.output));
    if (t.ids.empty()) CHECK(same_bits(t.input_gradient, once.input_gradient));
    for (std::size_t i = 0; i < t.kept.size(); ++i) CHECK(same_bits(t.kept[i], once.kept[i]));
    for (std::size_t i = 0; i < t.left.size(); ++i) CHECK(same_bits(t.left[i], once.left[i]));
    for (std::size_t i = 0; i < t.gradients.size(); ++i)
      CHECK(same_bits(t.gradients[i], once.gradients[i]));
  }
}

TEST_CASE("without the gradient of the input all else is as with it") {
  if (!has_kernels()) return;
  for (Case& c : all_cases()) {
    CAPTURE(c.text);
    Tensors& t = c.tensors;
    const std::vector<Floats> gradients_before = t.gradients;
    const auto layer = cpu_layer(c.layer, c.batch);
    run(*layer, t.call());
    const Tensors with = t;
    t.gradients = gradients_before;
    for (Floats& tensor : t.left) tensor = nothing(std::ssize(tensor));
    CpuCall call = t.call();
    call.input_gradient = nullptr;
    run(*layer, call);
    for (std::size_t i = 0; i < t.left.size(); ++i) CHECK(same_bits(t.left[i], with.left[i]));
    for (std::size_t i = 0; i < t.gradients.size(); ++i)
      CHECK(same_bits(t.gradients[i], with.gradients[i]));
  }
}

TEST_CASE("a sure head loses next to nothing, and large logits do not overflow") {
  if (!has_kernels()) return;
  Case c = case_of(Head{2, false, false}, {1}, 1);
  c.tensors.parameters[0] = {1000, -1000};
  c.tensors.input = {1};
  const auto layer = cpu_layer(c.layer, 1);
  c.tensors.labels = {0};
  layer->forward(c.tensors.call());
  CHECK(c.tensors.output[0] == 0);
  c.tensors.labels = {1};
  layer->forward(c.tensors.call());
  CHECK(c.tensors.output[0] == 2000);
}

TEST_CASE("max_pool takes the first of equal elements") {
  if (!has_kernels()) return;
  Case c = case_of(MaxPool{2, 2, 0}, {1, 2, 4}, 1);
  c.tensors.input = {1, 7, 3, 3, 7, 7, 3, 3};
  c.tensors.output_gradient = {1, 1};
  run(*cpu_layer(c.layer, 1), c.tensors.call());
  CHECK(c.tensors.output == Floats{7, 3});
  CHECK(c.tensors.input_gradient == Floats{0, 1, 1, 0, 0, 0, 0, 0});
  Case larger = case_of(MaxPool{3, 3, 0}, {1, 3, 3}, 1);
  larger.tensors.input = {1, 2, 5, 5, 4, 5, 5, 5, 3};
  larger.tensors.output_gradient = {1};
  run(*cpu_layer(larger.layer, 1), larger.tensors.call());
  CHECK(larger.tensors.output == Floats{5});
  CHECK(larger.tensors.input_gradient == Floats{0, 0, 1, 0, 0, 0, 0, 0, 0});
}

// Networks.

/// All layers of a network, forward and backward in double precision.
struct ReferenceNetwork {
  const Network& network;
  std::int64_t batch;
  std::vector<std::vector<Values>> parameters;
  Values input;
  Values labels;
  Values loss_weights;

  /// The weighted sum of the losses of the samples.
  double loss() const {
    Values x = input;
    for (std::size_t i = 0; i < network.layers.size(); ++i)
      x = reference_forward({network.layers[i], batch, parameters[i], x, labels}).output;
    double sum = 0;
    for (std::size_t s = 0; s < x.size(); ++s) sum += loss_weights[s] * x[s];
    return sum;
  }

  /// The gradients of every parameter; `output` takes the losses.
  std::vector<std::vector<Values>> gradients(Values& output) const {
    std::vector<Values> inputs{input};
    std::vector<ReferenceForward> forwards;
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
      forwards.push_back(
          reference_forward({network.layers[i], batch, parameters[i], inputs[i], labels}));
      inputs.push_back(forwards.back().output);
    }
    output = inputs.back();
    std::vector<std::vector<Values>> made(network.layers.size());
    Values gradient = loss_weights;
    for (std::size_t i = network.layers.size(); i-- > 0;) {
      ReferencePasses passes =
          run_reference(network.layers[i], batch, parameters[i], inputs[i], labels, gradient);
      made[i] = std::move(passes.gradients);
      gradient = std::move(passes.backward.input_gradient);
    }
    return made;
  }
};

/// Starting values, rounded to fp32, and an input.
ReferenceNetwork reference_network(const Network& network, std::int64_t batch) {
  Numbers numbers(7);
  ReferenceNetwork made{network, batch, {}, {}, {}, {}};
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    made.parameters.push_back(initial_parameters(network.layers[i], 100 + i));
    for (Values& parameter : made.parameters.back()) {
      // Biases and shifts away from 0, where gradients could hide.
      for (double& value : parameter)
        value = static_cast<float>(value + 0.01 * numbers.between(-1, 1));
    }
  }
  const std::int64_t elements = batch * network.input.shape.elements();
  made.input = network.input.vocabulary
                   ? to_values(numbers.below(*network.input.vocabulary, elements))
                   : to_values(numbers.between(-1.5, 1.5, elements));
  const NetworkLayer& last = network.layers.back();
  made.labels = to_values(numbers.below(std::get<Head>(last.settings).classes,
                                        batch * last.input.elements() / last.input.extents.back()));
  made.loss_weights = to_values(numbers.between(0.2, 1, batch));
  return made;
}

template <class Number>
std::vector<Number> to_numbers(const Values& values) {
  std::vector<Number> made;
  made.reserve(values.size());
  for (const double value : values) made.push_back(static_cast<Number>(value));
  return made;
}

/// The kernels' gradients of all parameters; `output` takes the losses.
std::vector<std::vector<Floats>> kernel_gradients(const ReferenceNetwork& from, Floats& output) {
  const std::vector<NetworkLayer>& layers = from.network.layers;
  std::vector<Tensors> tensors;
  std::vector<std::unique_ptr<CpuLayer>> kernels;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    tensors.emplace_back(layers[i], from.batch);
    kernels.push_back(cpu_layer(layers[i], from.batch));
    Tensors& t = tensors.back();
    for (const Values& parameter : from.parameters[i]) {
      t.parameters.push_back(to_numbers<float>(parameter));
      t.gradients.emplace_back(parameter.size(), 0.0F);
    }
    if (i > 0) {
      t.input = tensors[i - 1].output;
    } else if (from.network.input.vocabulary) {
      t.ids = to_numbers<std::int32_t>(from.input);
    } else {
      t.input = to_numbers<float>(from.input);
    }
    t.labels = to_numbers<std::int32_t>(from.labels);
    kernels.back()->forward(t.call());
  }
  output = tensors.back().output;
  std::vector<std::vector<Floats>> made(layers.size());
  for (std::size_t i = layers.size(); i-- > 0;) {
    Tensors& t = tensors[i];
    t.output_gradient = i + 1 < layers.size() ? tensors[i + 1].input_gradient
                                              : to_numbers<float>(from.loss_weights);
    CpuCall call = t.call();
    if (i == 0) call.input_gradient = nullptr;
    kernels[i]->backward_input(call);
    kernels[i]->backward_weight(call);
    made[i] = std::move(t.gradients);
  }
  return made;
}

/// How an example is made smaller: pieces of its text that are replaced.
struct Narrowing {
  std::string file;
  std::vector<std::pair<std::string, std::string>> replacements;
};

std::vector<Narrowing> examples() {
  return {{"mlp", {{"shape: [1024]", "shape: [24]"}, {"features: 1024", "features: 24"}}},
          {"gpt-small",
           {{"tokens: 64, vocabulary: 2048", "tokens: 9, vocabulary: 31"},
            {"features: 128", "features: 16"}}},
          {"gnmt-lstm",
           {{"tokens: 32, vocabulary: 4096", "tokens: 5, vocabulary: 31"},
            {"features: 128", "features: 12"},
            {"hidden: 128", "hidden: 12"}}},
          {"resnet-small",
           {{"[3, 32, 32]", "[3, 16, 16]"},
            {"channels: 16", "channels: 4"},
            {"channels: 32", "channels: 6"},
            {"channels: 64", "channels: 8"},
            {"kernel: 8", "kernel: 4"}}},
          {"vgg-small",
           {{"[3, 32, 32]", "[3, 16, 16]"},
            {"channels: 32", "channels: 4"},
            {"channels: 64", "channels: 6"},
            {"channels: 128", "channels: 8"},
            {"features: 256", "features: 12"}}}};
}

std::string path_of(const Narrowing& example) {
  return "examples/networks/" + example.file + ".network.yaml";
}

Network parsed(const Result<Network>& network) {
  REQUIRE_MESSAGE(network, (network ? "" : to_text(network.problems())));
  return *network;
}

Network narrowed(const Narrowing& example) {
  const auto file = read_file(path_of(example), 1 << 20);
  REQUIRE(file);
  Source source = **file;
  for (const auto& replacement : example.replacements) {
    const std::string& from = replacement.first;
    const std::string& to = replacement.second;
    std::size_t found = 0;
    for (std::size_t at = source.text.find(from); at != std::string::npos;
         at = source.text.find(from, at + to.size())) {
      source.text.replace(at, from.size(), to);
      ++found;
    }
    REQUIRE_MESSAGE(found > 0, from);
  }
  return parsed(parse_network(std::make_shared<const Source>(std::move(source))));
}

/// A small network as today's language models are.
Network llama_like() {
  return parsed(parse_network(test::text_source("llama-like.network.yaml", R"(version: 1
kind: network
input: {tokens: 9, vocabulary: 31}
layers:
  - {kind: embedding, features: 16}
  - repeat: 2
    layers:
      - {kind: attention_block, heads: 4, kv_heads: 2, head_size: 6, norm: rms_norm, bias: false,
         qk_norm: true, rotary: 10000, window: 5}
      - {kind: mlp_block, hidden: 21, activation: silu, gated: true, norm: rms_norm, bias: false}
  - {kind: head, norm: rms_norm}
)")));
}

std::vector<Network> small_networks() {
  std::vector<Network> networks;
  for (const Narrowing& example : examples()) networks.push_back(narrowed(example));
  networks.push_back(llama_like());
  return networks;
}

void check_network(const Network& network, double tolerance) {
  CAPTURE(network.name);
  const ReferenceNetwork reference = reference_network(network, 2);
  Values expected_losses;
  const std::vector<std::vector<Values>> expected = reference.gradients(expected_losses);
  Floats losses;
  const std::vector<std::vector<Floats>> found = kernel_gradients(reference, losses);
  CHECK(difference(losses, expected_losses) < kTolerance);
  double worst = 0;
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    CAPTURE(network.layers[i].name);
    for (std::size_t j = 0; j < expected[i].size(); ++j) {
      CAPTURE(network.layers[i].parameters[j].name);
      const double off = difference(found[i][j], expected[i][j]);
      CHECK(off < tolerance);
      worst = std::max(worst, off);
    }
  }
  MESSAGE(network.name, ": losses ", difference(losses, expected_losses), ", gradients ", worst);
}

TEST_CASE("the kernels agree with the reference over whole networks") {
  if (!has_kernels()) return;
  for (const Network& network : small_networks()) check_network(network, kTolerance);
}

TEST_CASE("the kernels agree with the reference over the example networks as they are" *
          doctest::test_suite("slow")) {
  if (!has_kernels()) return;
#if !defined(NDEBUG)
  MESSAGE("skipped: the reference is too slow without optimisation");
#else
  // Here and there an element next to the kink of a relu falls on the other side.
  for (const Narrowing& example : examples())
    check_network(parsed(read_network(path_of(example))), 1e-3);
#endif
}

TEST_CASE("the gradients of whole networks are those of finite differences") {
  for (const Network& network : small_networks()) {
    CAPTURE(network.name);
    ReferenceNetwork reference = reference_network(network, 2);
    Values losses;
    const std::vector<std::vector<Values>> gradients = reference.gradients(losses);
    // The largest gradient of the first parameter of some layers, and of each of a language
    // model's.
    const bool looks_at_all = network.name == "llama-like";
    for (std::size_t i = 0; i < network.layers.size(); i += looks_at_all ? 1 : 3) {
      CAPTURE(network.layers[i].name);
      const std::size_t parameters = std::min<std::size_t>(gradients[i].size(), 1);
      for (std::size_t p = 0; p < (looks_at_all ? gradients[i].size() : parameters); ++p) {
        CAPTURE(network.layers[i].parameters[p].name);
        const Values& gradient = gradients[i][p];
        const auto at =
            std::max_element(gradient.begin(), gradient.end(),
                             [](double a, double b) { return std::abs(a) < std::abs(b); }) -
            gradient.begin();
        double& element = reference.parameters[i][p][at];
        const double before = element;
        constexpr double kStep = 1e-6;
        element = before + kStep;
        const double above = reference.loss();
        element = before - kStep;
        const double below = reference.loss();
        element = before;
        const double numeric = (above - below) / (2 * kStep);
        CHECK(numeric == doctest::Approx(gradient[at]).epsilon(1e-5));
      }
    }
  }
}

// The parts of the kernels.

TEST_CASE("exp, sigmoid and tanh are right to a few units in the last place") {
  double exp_off = 0;
  double sigmoid_off = 0;
  double tanh_off = 0;
  const auto relative = [](float found, double truth) {
    return truth == 0 ? std::abs(static_cast<double>(found)) : std::abs(found / truth - 1);
  };
  for (int i = -86000; i <= 86000; ++i) {
    const float x = static_cast<float>(i) * 1e-3F;
    const double exact = x;
    exp_off = std::max(exp_off, relative(cpu::fast_exp(x), std::exp(exact)));
    sigmoid_off = std::max(sigmoid_off, relative(cpu::fast_sigmoid(x), 1 / (1 + std::exp(-exact))));
    tanh_off = std::max(tanh_off, relative(cpu::fast_tanh(x), std::tanh(exact)));
    const float small = x * 1e-5F;
    tanh_off = std::max(tanh_off, relative(cpu::fast_tanh(small), std::tanh(double{small})));
  }
  CHECK(exp_off < 3e-7);
  CHECK(sigmoid_off < 4e-7);
  CHECK(tanh_off < 4e-7);
  MESSAGE("exp ", exp_off, ", sigmoid ", sigmoid_off, ", tanh ", tanh_off);
  CHECK(cpu::fast_tanh(1000) == 1);
  CHECK(cpu::fast_tanh(-1000) == -1);
  CHECK(cpu::fast_sigmoid(1000) == 1);
  CHECK(cpu::fast_sigmoid(-1000) < 1e-37F);
  CHECK(std::isnan(cpu::fast_exp(std::numeric_limits<float>::quiet_NaN())));
  CHECK(std::isnan(cpu::fast_tanh(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("a product takes strides, turned operands and what is there") {
  if (!has_kernels()) return;
  // [1 2; 3 4] and [5 6; 7 8], each row with one element that does not belong to it.
  const Floats a{1, 2, 99, 3, 4, 99};
  const Floats b{5, 6, 99, 7, 8, 99};
  Floats c = nothing(6);
  multiply({2, 2, 2}, {a.data(), 3}, {b.data(), 3}, {c.data(), 3});
  CHECK(Floats{c[0], c[1], c[3], c[4]} == Floats{19, 22, 43, 50});
  CHECK(std::isnan(c[2]));
  multiply({2, 2, 2}, {a.data(), 3, true}, {b.data(), 3, true}, {c.data(), 3, 10, 2});
  CHECK(Floats{c[0], c[1], c[3], c[4]} ==
        Floats{190 + 2 * 23, 220 + 2 * 31, 430 + 2 * 34, 500 + 2 * 46});
}

}  // namespace
}  // namespace plumbline
