// The reference layers, worked by hand.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cmath>
#include <utility>

#include "calibrate/training/reference.h"
#include "calibrate/training/reference_math.h"
#include "tests/calibrate/training/hand_made_layers.h"

namespace plumbline::test {
namespace {

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

}  // namespace
}  // namespace plumbline::test
