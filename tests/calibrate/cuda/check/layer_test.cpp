// The layers of the cuda backend against the reference layers, their kernels run by the host:
// every kind, the products and the updates.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/layers/layer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "calibrate/cpu/optimizer.h"
#include "calibrate/cuda/check/layer_check.h"
#include "calibrate/cuda/libraries/builtin_kernels.h"
#include "models/network/network_reader.h"
#include "tests/support/host_device.h"
#include "tests/support/layer_cases.h"

namespace plumbline {
namespace {

using test::derived;
using test::difference;
using test::elements_of;
using test::Extents;
using test::Floats;
using test::gemm_case;
using test::GemmCase;
using test::HostDevice;
using test::Numbers;
using test::product_of;
using test::rounded_to_bf16;
using test::Stored;
using test::to_values;

CUdeviceptr pointer(const std::vector<std::int32_t>& numbers) {
  return reinterpret_cast<CUdeviceptr>(numbers.data());
}

/// A layer's tensors of one micro-batch. What passes write starts as not a number.
struct Tensors {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> labels;
  Stored input;
  Stored output;
  std::vector<Stored> kept;
  std::vector<Stored> left;
  std::vector<Stored> parameters;
  std::vector<Stored> gradients;
  Stored output_gradient;
  Stored input_gradient;

  CudaCall call() {
    CudaCall made;
    made.input = input.data();
    made.ids = pointer(ids);
    made.labels = pointer(labels);
    made.output = output.data();
    for (Stored& tensor : kept) made.kept.push_back(tensor.data());
    for (Stored& tensor : left) made.left.push_back(tensor.data());
    for (Stored& tensor : parameters) made.parameters.push_back(tensor.data());
    for (Stored& tensor : gradients) made.gradients.push_back(tensor.data());
    made.output_gradient = output_gradient.data();
    made.input_gradient = input_gradient.data();
    return made;
  }
};

/// A layer and numbers for one micro-batch of it.
struct Case {
  std::string text;
  NetworkLayer layer;
  ElementType type;
  std::int64_t batch;
  Tensors tensors;
};

Case case_of(ElementType type, const LayerSettings& settings, const Extents& input,
             std::int64_t batch) {
  NetworkLayer layer = derived(settings, input);
  const bool is_head = std::holds_alternative<Head>(settings);
  const ElementType at_end = is_head ? ElementType::fp32 : type;
  const std::int64_t elements = batch * layer.input.elements();
  const std::int64_t outputs = batch * layer.output.elements();
  Numbers numbers(1);
  Tensors t{
      {}, {}, Stored(type, numbers.between(-2, 2, elements)),  Stored(at_end, outputs), {}, {},
      {}, {}, Stored(at_end, numbers.between(-1, 1, outputs)), Stored(type, elements)};
  for (const KeptTensor& tensor : layer.kept)
    t.kept.emplace_back(tensor.statistic ? ElementType::fp32 : type, elements_of(tensor, batch));
  for (const KeptTensor& tensor : layer.left_for_weights)
    t.left.emplace_back(type, elements_of(tensor, batch));
  for (const Parameter& p : layer.parameters) {
    // Products stay near 1.
    const double inputs =
        p.shape.extents.size() > 1
            ? static_cast<double>(p.shape.elements()) / static_cast<double>(p.shape.extents.front())
            : 1;
    const bool scale = p.name.ends_with("scale");
    const double high = scale ? 1.5 : 1.5 / std::sqrt(inputs);
    t.parameters.emplace_back(type, numbers.between(scale ? 0.5 : -high, high, p.shape.elements()));
    t.gradients.emplace_back(type, numbers.between(-1, 1, p.shape.elements()));
  }
  if (const auto* embedding = std::get_if<Embedding>(&settings))
    t.ids = numbers.below(embedding->vocabulary, elements);
  if (const auto* head = std::get_if<Head>(&settings))
    t.labels = numbers.below(head->classes, elements / layer.input.extents.back());
  std::string text = std::string(kind_name(settings)) + " on " + to_text(layer.input) + ", " +
                     std::string(name(type));
  return {std::move(text), std::move(layer), type, batch, std::move(t)};
}

/// Layers of each kind, with sizes below and above blocks, tiles and chunks of 32, 64 and 256.
std::vector<Case> cases(ElementType type) {
  return {case_of(type, Linear{3, true}, {4}, 2),
          case_of(type, Linear{70, true}, {35}, 66),
          case_of(type, Linear{10, false}, {3, 17}, 3),
          case_of(type, Linear{1, false}, {1}, 1),
          case_of(type, Relu{}, {77}, 3),
          case_of(type, Relu{}, {5, 70}, 15),
          case_of(type, Gelu{}, {77}, 3),
          case_of(type, Flatten{}, {2, 3, 5}, 2),
          case_of(type, LayerNorm{}, {300}, 3),
          case_of(type, LayerNorm{}, {33}, 2),
          case_of(type, LayerNorm{}, {4, 2, 5}, 2),
          case_of(type, LayerNorm{}, {50, 7}, 3),
          case_of(type, AttentionBlock{1, true}, {3, 4}, 2),
          case_of(type, AttentionBlock{2, true}, {37, 8}, 2),
          case_of(type, AttentionBlock{2, false}, {37, 8}, 1),
          case_of(type, AttentionBlock{3, false}, {5, 15}, 3),
          case_of(type, AttentionBlock{1, true}, {1, 2}, 2),
          case_of(type, AttentionBlock{2, true}, {70, 16}, 2),  // in bf16 these are fused
          case_of(type, AttentionBlock{1, false}, {130, 40}, 1),
          case_of(type, AttentionBlock{1, true}, {81, 72}, 1),
          case_of(type, AttentionBlock{1, true}, {3, 8}, 2),
          case_of(type, AttentionBlock{2, true}, {9, 6}, 3),  // more samples than heads
          case_of(type, MlpBlock{6}, {4}, 2),
          case_of(type, MlpBlock{0}, {7, 12}, 3),
          case_of(type, Embedding{50, 24, false}, {12}, 3),
          case_of(type, Embedding{4, 33, true}, {10}, 4),
          case_of(type, Embedding{2, 300, true}, {3}, 2),
          case_of(type, Head{3, true, false}, {4}, 2),
          case_of(type, Head{40, true, true}, {15, 12}, 2),
          case_of(type, Head{300, false, true}, {20}, 3),
          case_of(type, Head{2, false, false}, {2, 3}, 2),
          case_of(type, Head{3, true, true}, {521, 2}, 2),  // more rows than go at a time
          case_of(type, Conv2d{2, 3, 1, 0, true}, {1, 4, 4}, 2),
          case_of(type, Conv2d{3, 3, 1, 1, false}, {2, 5, 4}, 3),
          case_of(type, Conv2d{66, 1, 1, 0, true}, {3, 9, 8}, 2),
          case_of(type, Conv2d{5, 3, 2, 1, true}, {7, 13, 12}, 2),  // the last column is not seen
          case_of(type, Conv2d{4, 5, 3, 2, false}, {8, 11, 11}, 2),
          case_of(type, Conv2d{2, 2, 3, 0, true}, {1, 6, 7}, 1),    // some are never seen
          case_of(type, Conv2d{3, 3, 1, 1, true}, {2, 14, 13}, 4),  // sums in chunks
          case_of(type, MaxPool{2, 2, 0}, {2, 4, 4}, 2),
          case_of(type, MaxPool{3, 2, 1}, {5, 9, 7}, 3),
          case_of(type, MaxPool{2, 3, 0}, {1, 8, 8}, 2),
          case_of(type, MaxPool{3, 1, 2}, {2, 4, 5}, 1),
          case_of(type, BatchNorm{}, {3, 2, 2}, 4),
          case_of(type, BatchNorm{}, {5, 9, 13}, 5),
          case_of(type, BatchNorm{}, {2, 1, 1}, 6),
          case_of(type, ResidualBlock{3, 1}, {3, 4, 4}, 2),
          case_of(type, ResidualBlock{4, 2}, {3, 5, 6}, 2),
          case_of(type, ResidualBlock{5, 1}, {2, 7, 6}, 3),
          case_of(type, Lstm{3, false}, {4, 5}, 2),
          case_of(type, Lstm{5, true}, {3, 5}, 3),
          case_of(type, Lstm{33, false}, {6, 20}, 4),
          case_of(type, Lstm{2, false}, {1, 3}, 1)};
}

/// The layers of today's language models. In bf16, attention is fused where heads have up to 128
/// numbers, a multiple of 8.
std::vector<Case> language_model_cases(ElementType type) {
  constexpr NormKind kRms = NormKind::rms_norm;
  return {
      case_of(type, RmsNorm{}, {300}, 3), case_of(type, RmsNorm{}, {33}, 2),
      case_of(type, RmsNorm{}, {4, 2, 5}, 2), case_of(type, RmsNorm{}, {50, 7}, 3),
      // Heads that share keys, and heads that do not fill the features: by products, then fused.
      case_of(type, AttentionBlock{.heads = 4, .kv_heads = 2}, {5, 16}, 3),
      case_of(type, AttentionBlock{.heads = 3, .causal = false, .kv_heads = 1, .head_size = 5},
              {9, 8}, 2),
      case_of(type, AttentionBlock{.heads = 6, .kv_heads = 2, .head_size = 6}, {37, 12}, 2),
      case_of(type, AttentionBlock{.heads = 2, .kv_heads = 1, .head_size = 136}, {5, 12}, 2),
      case_of(type, AttentionBlock{.heads = 2, .head_size = 8}, {3, 4}, 2),
      case_of(type, AttentionBlock{.heads = 4, .kv_heads = 2, .head_size = 16}, {70, 12}, 2),
      case_of(type, AttentionBlock{.heads = 3, .causal = false, .kv_heads = 1, .head_size = 32},
              {70, 16}, 2),
      case_of(type, AttentionBlock{.heads = 2, .kv_heads = 1, .head_size = 40}, {130, 8}, 1),
      case_of(type, AttentionBlock{.heads = 2, .kv_heads = 1, .head_size = 64}, {70, 8}, 2),
      case_of(type, AttentionBlock{.heads = 2, .causal = false, .kv_heads = 1, .head_size = 72},
              {37, 8}, 2),
      case_of(type, AttentionBlock{.heads = 4, .kv_heads = 2, .head_size = 128}, {37, 8}, 2),
      // Rotary positions and norms of heads.
      case_of(type, AttentionBlock{.heads = 2, .rotary = 10000}, {5, 12}, 2),
      case_of(type, AttentionBlock{.heads = 2, .causal = false, .head_size = 16, .rotary = 10},
              {70, 12}, 2),
      case_of(type, AttentionBlock{.heads = 3, .qk_norm = true}, {7, 15}, 3),
      case_of(type, AttentionBlock{.heads = 2, .kv_heads = 1, .head_size = 40, .qk_norm = true},
              {70, 12}, 2),
      // Windows, by products and fused, over more than a tile of tokens.
      case_of(type, AttentionBlock{.heads = 2, .window = 1}, {9, 6}, 2),
      case_of(type, AttentionBlock{.heads = 2, .window = 5}, {70, 6}, 2),
      case_of(type, AttentionBlock{.heads = 4, .kv_heads = 2, .window = 64}, {70, 12}, 2),
      case_of(type, AttentionBlock{.heads = 1, .window = 100}, {130, 6}, 1),
      case_of(type, AttentionBlock{.heads = 1, .window = 9}, {9, 6}, 2),
      case_of(type, AttentionBlock{.heads = 1, .window = 1000}, {9, 6}, 2),
      case_of(type, AttentionBlock{.heads = 2, .head_size = 16, .window = 1}, {70, 8}, 2),
      case_of(type, AttentionBlock{.heads = 2, .kv_heads = 1, .head_size = 32, .window = 5},
              {130, 8}, 2),
      case_of(type, AttentionBlock{.heads = 2, .kv_heads = 1, .head_size = 40, .window = 64},
              {130, 8}, 1),
      case_of(type, AttentionBlock{.heads = 1, .head_size = 64, .window = 100}, {130, 8}, 1),
      case_of(type, AttentionBlock{.heads = 2, .kv_heads = 1, .head_size = 72, .window = 5},
              {70, 8}, 1),
      case_of(type, AttentionBlock{.heads = 1, .head_size = 128, .window = 64}, {130, 8}, 1),
      case_of(type, AttentionBlock{.heads = 2, .head_size = 16, .window = 1000}, {70, 8}, 1),
      // Biases and norms.
      case_of(type, AttentionBlock{.heads = 2, .bias = AttentionBias::qkv}, {7, 10}, 2),
      case_of(type, AttentionBlock{.heads = 2, .bias = AttentionBias::none}, {7, 10}, 2),
      case_of(type, AttentionBlock{.heads = 2, .norm = kRms}, {7, 10}, 2),
      case_of(type,
              AttentionBlock{.heads = 4,
                             .kv_heads = 2,
                             .head_size = 6,
                             .norm = kRms,
                             .bias = AttentionBias::qkv,
                             .qk_norm = true,
                             .rotary = 10000,
                             .window = 5},
              {9, 20}, 3),
      case_of(type,
              AttentionBlock{.heads = 4,
                             .kv_heads = 2,
                             .head_size = 16,
                             .norm = kRms,
                             .bias = AttentionBias::none,
                             .qk_norm = true,
                             .rotary = 10000,
                             .window = 50},
              {70, 20}, 2),
      case_of(type,
              AttentionBlock{.heads = 2,
                             .causal = false,
                             .kv_heads = 1,
                             .head_size = 128,
                             .norm = kRms,
                             .bias = AttentionBias::none,
                             .qk_norm = true,
                             .rotary = 500000},
              {70, 12}, 1),
      // MLPs.
      case_of(type, MlpBlock{.hidden = 6, .activation = Activation::silu}, {4}, 2),
      case_of(type, MlpBlock{.hidden = 33, .activation = Activation::silu}, {7, 12}, 3),
      // Numbers that no rounding moves over a relu's kink.
      case_of(type, MlpBlock{.hidden = 6, .activation = Activation::relu}, {3, 4}, 2),
      case_of(type, MlpBlock{.hidden = 9, .activation = Activation::relu}, {7, 24}, 2),
      case_of(type, MlpBlock{.hidden = 33, .gated = true}, {7, 12}, 3),
      case_of(type, MlpBlock{.hidden = 33, .activation = Activation::silu, .gated = true}, {7, 12},
              3),
      case_of(type, MlpBlock{.hidden = 5, .activation = Activation::relu, .gated = true}, {3, 4},
              2),
      case_of(type, MlpBlock{.hidden = 33, .bias = false}, {7, 12}, 3),
      case_of(type, MlpBlock{.hidden = 33, .norm = kRms}, {12}, 3),
      case_of(type,
              MlpBlock{.hidden = 70,
                       .activation = Activation::silu,
                       .gated = true,
                       .norm = kRms,
                       .bias = false},
              {7, 12}, 3),
      // Heads of networks.
      case_of(type, Head{.classes = 3, .norm_kind = kRms}, {4}, 2),
      case_of(type, Head{.classes = 40, .bias = true, .norm_kind = kRms}, {15, 12}, 2)};
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  const auto append = [&](std::vector<Case>&& of_type) {
    for (Case& c : of_type) all.push_back(std::move(c));
  };
  for (const ElementType type : {ElementType::fp32, ElementType::bf16}) {
    append(cases(type));
    append(language_model_cases(type));
  }
  append(language_model_cases(ElementType::tf32));
  return all;
}

/// The small ones of them.
std::vector<Case> small_cases() {
  constexpr std::int64_t kMaxElements = 150;
  std::vector<Case> small;
  for (Case& c : all_cases()) {
    if (c.batch * c.layer.input.elements() <= kMaxElements) small.push_back(std::move(c));
  }
  return small;
}

/// The tolerance as a share of the largest element of a tensor. In fp32 it is that of the cpu
/// backend's kernels. In bf16 every written tensor is rounded to 8 significant bits, an error of up
/// to 2^-8 of itself. Kinds that write each tensor from their inputs have only that error (and the
/// sums' own error). Blocks write up to eight tensors, each from the one before; norms and turns of
/// heads write two more each. These errors have both signs, and half of them may add up.
double tolerance(const Case& c) {
  const std::string_view kind = kind_name(c.layer.settings);
  const bool block = kind == "attention_block" || kind == "mlp_block" || kind == "head" ||
                     kind == "residual_block" || kind == "lstm";
  const auto* const attention = std::get_if<AttentionBlock>(&c.layer.settings);
  const int steps =
      attention == nullptr ? 0 : (attention->qk_norm ? 1 : 0) + (attention->rotary > 0 ? 1 : 0);
  if (c.type == ElementType::bf16) return block ? (4 + steps) * 0x1p-8 : 1.01 * 0x1p-8;
  return block || kind.ends_with("_norm") ? 2e-5 : 2e-6;
}

// Both codes.

/// F, I and W of the kernels. W sees no parameters: it needs none.
void run(CudaLayer& layer, const CudaQueue& queue, const CudaCall& call) {
  layer.forward(queue, call);
  layer.backward_input(queue, call);
  CudaCall for_weights = call;
  for_weights.parameters.clear();
  layer.backward_weight(queue, for_weights);
}

TEST_CASE("the kernels of every kind make what the reference makes" * doctest::test_suite("slow")) {
  const HostDevice device;
  std::map<std::string, double> worst;  // of each kind: told at the end
  for (const Case& c : all_cases()) {
    CAPTURE(c.text);
    double& of_kind =
        worst[std::string(kind_name(c.layer.settings)) + " " + std::string(name(c.type))];
    for (const TensorDifference& difference :
         differences_from_reference(device.queue, c.layer, c.type, c.batch)) {
      CAPTURE(difference.tensor);
      CHECK(difference.share < tolerance(c));
      of_kind = std::max(of_kind, difference.share);
    }
  }
  for (const auto& [kind, off] : worst) MESSAGE(kind, ": ", off);
}

TEST_CASE("the same call makes the same bits, and other calls between leave nothing behind" *
          doctest::test_suite("slow")) {
  HostDevice device;
  for (Case& c : small_cases()) {
    CAPTURE(c.text);
    Tensors& t = c.tensors;
    const std::vector<Stored> gradients_before = t.gradients;
    const auto layer = cuda_layer(device.queue, c.layer, c.type, c.batch);
    run(*layer, device.queue, t.call());
    const Tensors once = t;
    // Other numbers.
    Numbers numbers(2);
    for (Stored& parameter : t.parameters)
      parameter = Stored(c.type, numbers.between(-1, 1, std::ssize(parameter.floats())));
    run(*layer, device.queue, t.call());
    t.parameters = once.parameters;
    t.gradients = gradients_before;
    run(*layer, device.queue, t.call());
    CHECK(t.output == once.output);
    CHECK(t.input_gradient == once.input_gradient);
    CHECK(t.kept == once.kept);
    CHECK(t.left == once.left);
    CHECK(t.gradients == once.gradients);
  }
}

TEST_CASE("without the gradient of the input all else is as with it") {
  HostDevice device;
  for (Case& c : small_cases()) {
    CAPTURE(c.text);
    Tensors& t = c.tensors;
    const std::vector<Stored> gradients_before = t.gradients;
    const auto layer = cuda_layer(device.queue, c.layer, c.type, c.batch);
    run(*layer, device.queue, t.call());
    const Tensors with = t;
    t.gradients = gradients_before;
    for (Stored& tensor : t.left) tensor = Stored(c.type, std::ssize(tensor.floats()));
    CudaCall call = t.call();
    call.input_gradient = 0;
    run(*layer, device.queue, call);
    CHECK(t.left == with.left);
    CHECK(t.gradients == with.gradients);
  }
}

TEST_CASE("attention is fused where that is faster, and what was chosen stays" *
          doctest::test_suite("slow")) {
  HostDevice device;
  static double clock = 0;  // a millisecond a launch, and what one kernel takes besides
  static double besides = 0;
  test::note_events_by(clock, device.driver);
  static const FakeKernel* const slow =
      &test::emulated_kernels().at("plumbline_attention_forward_32");
  static decltype(device.driver.cuLaunchKernel) launched = nullptr;
  static int fused = 0;
  launched = device.driver.cuLaunchKernel;
  device.driver.cuLaunchKernel = [](CUfunction function, auto... rest) {
    const bool is_slow = reinterpret_cast<const FakeKernel*>(function) == slow;
    fused += is_slow ? 1 : 0;
    clock += is_slow ? 1 + besides : 1;
    return launched(function, rest...);
  };
  Case c = case_of(ElementType::bf16, AttentionBlock{1, true}, {3, 8}, 2);
  const auto is_fused = [&] {
    const auto layer = cuda_layer(device.queue, c.layer, c.type, c.batch);
    fused = 0;
    run(*layer, device.queue, c.tensors.call());
    return fused > 0;
  };
  const std::string what = "attention bf16 2x3x1*8 causal sms 1";
  CudaChoices choices;
  device.queue.choices = &choices;
  besides = 0;  // 3 launches, and 9 by products
  CHECK(is_fused());
  CHECK(choices == CudaChoices{{what, "fused"}});
  besides = 100;
  CHECK(is_fused());  // as it was chosen
  choices.clear();
  CHECK_FALSE(is_fused());
  CHECK(choices == CudaChoices{{what, "products"}});
  besides = 0;
  CHECK_FALSE(is_fused());
  choices[what] = "another";  // of another version
  CHECK(is_fused());
  CHECK(choices == CudaChoices{{what, "fused"}});

  // Where the memory does not hold the scores, though they were faster.
  static decltype(device.driver.cuMemAlloc) allocated = nullptr;
  allocated = device.driver.cuMemAlloc;
  device.driver.cuMemAlloc = [](CUdeviceptr* data, std::size_t bytes) {
    constexpr std::size_t of_scores = std::size_t{2} * 3 * 3 * 2;
    return bytes == of_scores ? CUDA_ERROR_OUT_OF_MEMORY : allocated(data, bytes);
  };
  besides = 100;
  choices.clear();
  CHECK(is_fused());
  CHECK(choices == CudaChoices{{what, "fused"}});
}

TEST_CASE("what is chosen for attention names heads that share keys, and the window") {
  HostDevice device;
  static double clock = 0;
  test::note_events_by(clock, device.driver);
  CudaChoices choices;
  device.queue.choices = &choices;
  const auto chosen_for = [&](const AttentionBlock& block) {
    choices.clear();
    const Case c = case_of(ElementType::bf16, block, {3, 8}, 2);
    cuda_layer(device.queue, c.layer, c.type, c.batch);
    REQUIRE(choices.size() == 1);
    return choices.begin()->first;
  };
  CHECK(chosen_for({.heads = 4, .kv_heads = 2, .head_size = 8}) ==
        "attention bf16 2x3x4/2*8 causal sms 1");
  CHECK(chosen_for({.heads = 2, .kv_heads = 2, .head_size = 16, .window = 2}) ==
        "attention bf16 2x3x2*16 causal window 2 sms 1");
  CHECK(chosen_for({.heads = 3, .causal = false, .kv_heads = 1, .head_size = 8}) ==
        "attention bf16 2x3x3/1*8 sms 1");
}

TEST_CASE("fused attention and attention by products agree, however heads share keys") {
  HostDevice device;
  static double clock = 0;
  test::note_events_by(clock, device.driver);
  CudaChoices choices;
  device.queue.choices = &choices;
  const std::string what = "attention bf16 3x9x4/2*8 causal window 5 sms 1";
  const Case given =
      case_of(ElementType::bf16,
              AttentionBlock{.heads = 4, .kv_heads = 2, .head_size = 8, .window = 5}, {9, 12}, 3);
  const auto made_by = [&](const std::string& way) {
    choices = CudaChoices{{what, way}};
    Case c = given;
    run(*cuda_layer(device.queue, c.layer, c.type, c.batch), device.queue, c.tensors.call());
    CHECK(choices == CudaChoices{{what, way}});
    return c.tensors;
  };
  const Tensors fused = made_by("fused");
  const Tensors products = made_by("products");
  const auto differ = [&](const Stored& a, const Stored& b) {
    return difference(a.floats(), to_values(b.floats()));
  };
  CHECK(differ(fused.output, products.output) < tolerance(given));
  CHECK(differ(fused.input_gradient, products.input_gradient) < tolerance(given));
  for (std::size_t i = 0; i < fused.gradients.size(); ++i)
    CHECK(differ(fused.gradients[i], products.gradients[i]) < tolerance(given));
}

TEST_CASE("a sure head loses next to nothing, and large logits do not overflow") {
  HostDevice device;
  Case c = case_of(ElementType::fp32, Head{2, false, false}, {1}, 1);
  c.tensors.parameters[0] = Stored(c.type, Floats{1000, -1000});
  c.tensors.input = Stored(c.type, Floats{1});
  const auto layer = cuda_layer(device.queue, c.layer, c.type, 1);
  c.tensors.labels = {0};
  layer->forward(device.queue, c.tensors.call());
  CHECK(c.tensors.output.floats() == Floats{0});
  c.tensors.labels = {1};
  layer->forward(device.queue, c.tensors.call());
  CHECK(c.tensors.output.floats() == Floats{2000});
}

TEST_CASE("activations of large numbers are finite") {
  HostDevice device;
  Case c = case_of(ElementType::fp32, Gelu{}, {4}, 1);
  c.tensors.input = Stored(c.type, Floats{-100, -20, 20, 100});
  c.tensors.output_gradient = Stored(c.type, Floats{1, 1, 1, 1});
  run(*cuda_layer(device.queue, c.layer, c.type, 1), device.queue, c.tensors.call());
  CHECK(c.tensors.output.floats() == Floats{0, 0, 20, 100});
  CHECK(c.tensors.input_gradient.floats() == Floats{0, 0, 1, 1});
}

TEST_CASE("a network without a head is refused") {
  Network network;
  network.name = "net";
  network.layers = {derived(Linear{3, true}, {4})};
  const auto refused = check_for_cuda(network, {});
  REQUIRE(refused);
  CHECK(refused->message == "the network 'net' does not end in a head, so it has no loss");
  network.layers.push_back(derived(Head{3}, {3}));
  CHECK(!check_for_cuda(network, {}));
}

// Products.

TEST_CASE("own products are those of plain loops, turned, strided and in batches") {
  HostDevice device;
  for (const ElementType type : {ElementType::fp32, ElementType::bf16}) {
    for (const CudaGemm& size : {product_of(1, 1, 1), product_of(3, 5, 7, 2), product_of(65, 4, 33),
                                 product_of(4, 66, 16, 3), product_of(64, 64, 17)}) {
      for (const int turned : {0, 1, 2, 3}) {
        for (const std::int64_t apart : {0, 3}) {
          CAPTURE(size.rows);
          CAPTURE(size.columns);
          CAPTURE(turned);
          CAPTURE(apart);
          CudaGemm product = size;
          product.alpha = 0.5F;
          product.beta = turned % 2 == 0 ? 0.0F : 2.0F;
          GemmCase c = gemm_case(type, product, turned, apart);
          device.products->prepare(device.queue, type, c.product);
          Stored again = c.c;
          device.products->multiply(device.queue, type, c.product);
          CHECK(difference(c.c.floats(), c.expected) <
                (type == ElementType::bf16 ? 1.01 * 0x1p-8 : 2e-6));
          c.product.c.data = again.data();
          device.products->multiply(device.queue, type, c.product);
          CHECK(again == c.c);
        }
      }
    }
  }
}

// Updates and conversions.

TEST_CASE("updates are those of the optimizer, over members in order") {
  HostDevice device;
  constexpr std::int64_t kCount = 300;
  constexpr double kRate = 0.1;
  for (const OptimizerKind kind : {OptimizerKind::gradient_descent, OptimizerKind::adam}) {
    for (const std::size_t members : {1, 3}) {
      CAPTURE(name(kind));
      CAPTURE(members);
      Numbers numbers(4);
      Floats weights = numbers.between(-1, 1, kCount);
      Stored stored(ElementType::fp32, weights);
      Stored after(ElementType::fp32, kCount);
      Stored first(ElementType::fp32, Floats(kCount, 0));
      Stored second(ElementType::fp32, Floats(kCount, 0));
      Stored steps(ElementType::fp32, Floats(cuda::kStepFloats, 0));
      Optimizer optimizer(kind, {0, kCount}, kRate);
      for (int step = 0; step < 3; ++step) {
        std::vector<Floats> gradients;
        std::vector<Stored> stored_gradients;
        for (std::size_t m = 0; m < members; ++m) {
          gradients.push_back(numbers.between(-1, 1, kCount));
          stored_gradients.emplace_back(ElementType::fp32, gradients.back());
        }
        std::vector<const float*> pointers;
        std::vector<CUdeviceptr> stored_pointers;
        for (std::size_t m = 0; m < members; ++m) {
          pointers.push_back(gradients[m].data());
          stored_pointers.push_back(stored_gradients[m].data());
        }
        // Into the first of them, as the first member would.
        Stored& sum = stored_gradients.front();
        if (members > 1)
          cuda::add_up(device.queue, ElementType::fp32, sum.data(), stored_pointers, kCount);
        optimizer.step();
        optimizer.update({0, kCount}, pointers, weights.data(), weights.data());
        // In place, and at the last step not.
        const bool apart = step == 2;
        const Stored before = stored;
        const CUdeviceptr to = apart ? after.data() : stored.data();
        if (kind == OptimizerKind::adam) {
          cuda::count_step(device.queue, steps.data());
          cuda::descend_with_moments(device.queue, ElementType::fp32, to, stored.data(), sum.data(),
                                     first.data(), second.data(), steps.data(), kRate, kCount);
        } else {
          cuda::descend(device.queue, ElementType::fp32, to, stored.data(), sum.data(), kRate,
                        kCount);
        }
        if (apart) CHECK(stored == before);
        CHECK(difference((apart ? after : stored).floats(), to_values(weights)) < 1e-6);
      }
    }
  }
}

TEST_CASE("updates in bf16 round once, and moments stay fp32") {
  HostDevice device;
  Stored weights(ElementType::bf16, Floats{1, -2});
  Stored gradient(ElementType::bf16, Floats{1, 0.5F});
  Stored sum(ElementType::bf16, Floats{0, 0});
  cuda::add_up(device.queue, ElementType::bf16, sum.data(), {gradient.data(), gradient.data()}, 2);
  CHECK(sum.floats() == Floats{2, 1});
  cuda::descend(device.queue, ElementType::bf16, weights.data(), weights.data(), sum.data(), 0.01,
                2);
  CHECK(weights.floats() == Floats{rounded_to_bf16(1 - 0.02F), rounded_to_bf16(-2 - 0.01F)});
  Stored first(ElementType::fp32, Floats{0, 0});
  Stored second(ElementType::fp32, Floats{0, 0});
  Stored steps(ElementType::fp32, Floats{0, 0, 0});
  cuda::count_step(device.queue, steps.data());
  cuda::descend_with_moments(device.queue, ElementType::bf16, weights.data(), weights.data(),
                             gradient.data(), first.data(), second.data(), steps.data(), 0.25, 2);
  // The first step of Adam is the rate, whatever the gradient.
  CHECK(weights.floats() == Floats{rounded_to_bf16(rounded_to_bf16(0.98F) - 0.25F),
                                   rounded_to_bf16(rounded_to_bf16(-2.01F) - 0.25F)});
  CHECK(first.floats()[1] == doctest::Approx(0.05).epsilon(1e-6));
  CHECK(steps.floats()[0] == 1);
}

TEST_CASE("numbers become bf16 by rounding to the nearest, ties to even") {
  HostDevice device;
  // No subnormal numbers: tests of the cpu backend have this thread take them as zero.
  Floats numbers = {0,     -0.0F,        1,     1 + 0x1p-8F, 1 + 0x1p-7F + 0x1p-8F,  0x1p-9F,
                    -3.1F, 0x1.fffp127F, 1e38F, -1e-20F,     1 + 0x1p-8F + 0x1p-20F, 65504.F};
  for (const float sign : {1.0F, -1.0F}) numbers.push_back(sign * HUGE_VALF);
  const auto count = std::ssize(numbers);
  Stored from(ElementType::fp32, numbers);
  Stored to(ElementType::bf16, count);
  cuda::from_fp32(device.queue, ElementType::bf16, to.data(), from.data(), count);
  const Floats found = to.floats();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    CAPTURE(numbers[i]);
    CHECK(std::bit_cast<std::uint32_t>(found[i]) ==
          std::bit_cast<std::uint32_t>(rounded_to_bf16(numbers[i])));
  }
  Stored back(ElementType::fp32, count);
  cuda::to_fp32(device.queue, ElementType::bf16, back.data(), to.data(), count);
  CHECK(back.floats() == found);
  // By their bits: not a number stays so, even where its low half alone says it; a subnormal one is
  // rounded as any.
  const auto of_bits = [&](std::uint32_t bits) {
    Stored one(ElementType::fp32, Floats{std::bit_cast<float>(bits)});
    cuda::from_fp32(device.queue, ElementType::bf16, to.data(), one.data(), 1);
    return std::bit_cast<std::uint32_t>(to.floats()[0]);
  };
  CHECK(std::isnan(std::bit_cast<float>(of_bits(0x7f800001U))));
  CHECK(of_bits(0x000ae398U) == 0x000b0000U);
  CHECK(of_bits(0x800a8000U) == 0x800a0000U);
}

TEST_CASE("fills reach every element and no other") {
  HostDevice device;
  for (const ElementType type : {ElementType::fp32, ElementType::bf16}) {
    Stored some(type, 5001);
    cuda::fill(device.queue, type, some.data(), 1.5F, 5000);
    Floats found = some.floats();
    CHECK(std::isnan(found.back()));
    found.pop_back();
    CHECK(found == Floats(5000, 1.5F));
    cuda::noise(device.queue, type, some.data(), 9, 5000);
    found = some.floats();
    CHECK(std::isnan(found.back()));
    found.pop_back();
    double sum = 0;
    for (const float value : found) sum += value;
    CHECK(std::abs(sum / 5000) < 0.03);
    CHECK(*std::max_element(found.begin(), found.end()) <= 1);
    CHECK(*std::min_element(found.begin(), found.end()) >= -1);
  }
}

TEST_CASE("a kernel that is not there is an error of the driver") {
  HostDevice device;
  CHECK_THROWS_AS(device.kernels["plumbline_nothing"], CudaError);
}

}  // namespace
}  // namespace plumbline
