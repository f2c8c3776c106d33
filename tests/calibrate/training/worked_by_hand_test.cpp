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
  const reference::AttentionForward causal = reference::attention(qkv, {1, 2, {1, 1, 1}, true});
  check_close(causal.context, {2, 3.5});
  check_close(causal.logsumexp, {0, std::log(4.0)});
  const reference::AttentionForward all = reference::attention(qkv, {1, 2, {1, 1, 1}, false});
  check_close(all.context, {3, 3.5});
  check_close(all.logsumexp, {std::log(2.0), std::log(4.0)});
  // Causal, with gradients 0 and 1 of the context. Of v: the probabilities 1/4 and 3/4 of token 1.
  // Its probabilities have the gradients 2 and 4, 3.5 in the mean, so its scores 1/4 (2 - 3.5) =
  // -3/8 and 3/4 (4 - 3.5) = 3/8. Of its q: 3/8 ln 3; of both k, as q = 1: -3/8 and 3/8.
  check_close(reference::attention_gradient({0, 1}, qkv, causal.logsumexp, {1, 2, {1, 1, 1}, true}),
              {0, -0.375, 0.25, 0.375 * std::log(3.0), 0.375, 0.75});
}

TEST_CASE("heads take their columns in order, and scores are divided by the root of their size") {
  // Two heads of two features. Token 1, head 0: q = (1, 1) and its own k = (a, a) with
  // a = ln 3 / sqrt(2), so the scores are 0 and 2 a / sqrt(2) = ln 3: a quarter and three quarters.
  // Head 1: q = 0, halves. Token 0 sees itself alone.
  const double a = std::log(3.0) / std::sqrt(2.0);
  const Values qkv{0, 0, 0, 0, 0, 0, 0, 0, 4, 8, 2, 0,  //
                   1, 1, 0, 0, a, a, 5, 5, 8, 0, 4, 6};
  const reference::AttentionForward made = reference::attention(qkv, {1, 2, {2, 2, 2}, true});
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

// Layers of today's language models.

TEST_CASE("an rms norm of 3 and 4 by hand") {
  // The mean square is 25 / 2. With n = (3 r, 4 r) and g = (2, 10), the mean of g n is 23 r.
  const double r = 1 / std::sqrt(12.5 + 1e-5);
  const Case c = one_sample(RmsNorm{}, {2}, {{2, 10}}, {3, 4});
  const Passes passes = run(c);
  check_close(passes.forward.output, {6 * r, 40 * r});
  REQUIRE(passes.forward.kept.size() == 1);
  check_close(passes.forward.kept[0], {r});
  check_close(passes.backward.input_gradient,
              {r * (2 - 3 * r * 23 * r), r * (10 - 4 * r * 23 * r)});
  check_close(passes.parameter_gradients[0], {3 * r, 4 * r});
}

TEST_CASE("a head is turned in pairs, by angles that grow with its token") {
  // One head of 4 and a base of 10^4: numbers 0 and 2 turn by 1, numbers 1 and 3 by 1/100 a token.
  // Rows 0 and 1 are the tokens of one sample, rows 2 and 3 those of another.
  const Values before{1, 2, 3, 4, 1, 1, 0, 0, 5, 6, 7, 8, 0, 0, 1, 2};
  Values turned = before;
  reference::rotate(turned, 4, 4, 2, 10000, false);
  const double sine = std::sin(1.0);
  const double cosine = std::cos(1.0);
  check_close(turned, {1, 2, 3, 4, cosine, std::cos(0.01), sine, std::sin(0.01),  //
                       5, 6, 7, 8, -sine, -2 * std::sin(0.01), cosine, 2 * std::cos(0.01)});
  reference::rotate(turned, 4, 4, 2, 10000, true);
  check_close(turned, before);
  // A base of 4: token 2 turns its first pair by 2 and its second by 1. Two heads in a row.
  Values heads{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1};
  reference::rotate(heads, 8, 4, 3, 4, false);
  check_close(Values(heads.begin() + 16, heads.end()),
              {std::cos(2.0), 0, std::sin(2.0), 0, 0, cosine - sine, 0, cosine + sine});
}

TEST_CASE("products of turned heads depend on the distance of their tokens alone") {
  constexpr std::int64_t kSize = 6;
  constexpr std::int64_t kTokens = 5;
  const Values query{1, -2, 0.5, 3, 0.25, -1};
  const Values key{-0.5, 1, 2, 1.5, -3, 0.75};
  const auto everywhere = [](const Values& head) {
    Values rows;
    for (std::int64_t t = 0; t < kTokens; ++t) rows.insert(rows.end(), head.begin(), head.end());
    reference::rotate(rows, kSize, kSize, kTokens, 20, false);
    return rows;
  };
  const Values queries = everywhere(query);
  const Values keys = everywhere(key);
  const auto product = [&](std::int64_t t, std::int64_t u) {
    double sum = 0;
    for (std::int64_t i = 0; i < kSize; ++i) sum += queries[t * kSize + i] * keys[u * kSize + i];
    return sum;
  };
  for (std::int64_t t = 0; t + 1 < kTokens; ++t) {
    for (std::int64_t u = 0; u + 1 < kTokens; ++u)
      CHECK(std::abs(product(t + 1, u + 1) - product(t, u)) < 1e-13);
  }
  CHECK(std::abs(product(1, 0) - product(0, 0)) > 0.1);
  CHECK(std::abs(product(1, 0) - product(0, 1)) > 0.1);
}

TEST_CASE("an attention block with rotary positions by hand") {
  // The norm makes n = (r, -r) of (1, -1), and -n of (-1, 1). q and k are (a, 0) from the bias and
  // turn by 1 at token 1, so its scores are a^2 cos(1) / sqrt(2) and a^2 / sqrt(2). With a^2 =
  // sqrt(2) ln 3 / (1 - cos 1) they differ by ln 3: a quarter of v = n and three quarters of -n.
  const double r = 1 / std::sqrt(1 + 1e-5);
  const double a = std::sqrt(std::sqrt(2.0) * std::log(3.0) / (1 - std::cos(1.0)));
  const AttentionBlock block{.heads = 1, .norm = NormKind::rms_norm, .rotary = 10000};
  const Case c = one_sample(
      block, {2, 2},
      {{1, 1}, {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1}, {a, 0, a, 0, 0, 0}, {1, 0, 0, 1}, {0, 0}},
      {1, -1, -1, 1});
  const ReferenceForward made = reference_forward(c.call());
  check_close(made.output, {1 + r, -1 - r, -1 - r / 2, 1 + r / 2});
  // The kept queries and keys are turned.
  check_close(made.kept[2],
              {a, 0, a, 0, r, -r,  //
               a * std::cos(1.0), a * std::sin(1.0), a * std::cos(1.0), a * std::sin(1.0), -r, r});
}

TEST_CASE("an attention block with norms of heads by hand") {
  // One token sees itself alone, so q and k do not count but in what is kept: q = (3, 4) and k =
  // (6, 8) of the bias, with mean squares of 12.5 and 50.
  const AttentionBlock block{.heads = 1, .norm = NormKind::rms_norm, .qk_norm = true};
  const Case c = one_sample(
      block, {1, 2},
      {{1, 1}, Values(12, 0.0), {3, 4, 6, 8, 5, 7}, {2, 3}, {1, 10}, {1, 0, 0, 1}, {0, 0}}, {1, 1});
  const Passes passes = run(c);
  const double of_query = 1 / std::sqrt(12.5 + 1e-5);
  const double of_key = 1 / std::sqrt(50 + 1e-5);
  check_close(passes.forward.output, {6, 8});
  check_close(passes.forward.kept[2], {of_query, of_key});
  check_close(passes.forward.kept[3], {3, 4, 6, 8});
  check_close(passes.forward.kept[4], {6 * of_query, 12 * of_query, 6 * of_key, 80 * of_key, 5, 7});
  check_close(passes.parameter_gradients[3], {0, 0});
  check_close(passes.parameter_gradients[4], {0, 0});
}

TEST_CASE("attention with a window of one token is the token's own value") {
  const Values qkv{1, 2, 3,  //
                   4, 5, 6,  //
                   7, 8, 9};
  const reference::Attention shape{1, 3, {1, 1, 1}, true, 1};
  const reference::AttentionForward made = reference::attention(qkv, shape);
  CHECK(made.context == Values{3, 6, 9});
  CHECK(made.logsumexp == Values{1 * 2, 4 * 5, 7 * 8});
  CHECK(reference::attention_gradient({10, 20, 30}, qkv, made.logsumexp, shape) ==
        Values{0, 0, 10, 0, 0, 20, 0, 0, 30});
}

TEST_CASE("attention with a window of two tokens forgets the one before them") {
  // All k are 0, so each token sees means: of 2; of 2 and 4; of 4 and 16.
  const Values qkv{1, 0, 2,  //
                   1, 0, 4,  //
                   1, 0, 16};
  const reference::AttentionForward made = reference::attention(qkv, {1, 3, {1, 1, 1}, true, 2});
  check_close(made.context, {2, 3, 10});
  check_close(made.logsumexp, {0, std::log(2.0), std::log(2.0)});
  // A window as wide as the tokens is none.
  const Values all = reference::attention(qkv, {1, 3, {1, 1, 1}, true}).context;
  CHECK(reference::attention(qkv, {1, 3, {1, 1, 1}, true, 3}).context == all);
  CHECK(reference::attention(qkv, {1, 3, {1, 1, 1}, true, 4}).context == all);
}

/// Rows of `width` numbers with those of keys and values, two heads after four of queries, in them
/// twice: once for each head of queries that has them.
Values for_each_head(const Values& rows, std::int64_t size, std::int64_t width) {
  Values made;
  const auto append = [&](std::int64_t first, std::int64_t count) {
    const auto begin = rows.begin() + first * size * width;
    made.insert(made.end(), begin, begin + count * size * width);
  };
  append(0, 4);                                                              // queries
  for (const std::int64_t head : {4, 4, 5, 5, 6, 6, 7, 7}) append(head, 1);  // keys, values
  return made;
}

/// The way back: the sum over heads that share.
Values over_each_head(const Values& rows, std::int64_t size, std::int64_t width) {
  const std::int64_t head = size * width;
  Values made(rows.begin(), rows.begin() + 4 * head);
  for (std::int64_t h = 4; h < 12; h += 2) {
    for (std::int64_t i = 0; i < head; ++i)
      made.push_back(rows[h * head + i] + rows[(h + 1) * head + i]);
  }
  return made;
}

TEST_CASE("heads that share keys and values are as heads with copies of them") {
  constexpr std::int64_t kSize = 2;
  constexpr std::int64_t kFeatures = 6;
  AttentionBlock block{.heads = 4, .kv_heads = 2, .head_size = kSize, .qk_norm = true, .rotary = 9};
  const Case grouped = case_of(block, {5, kFeatures}, 2);
  block.kv_heads = 4;
  Case copied = case_of(block, {5, kFeatures}, 2);
  copied.parameters = grouped.parameters;
  copied.parameters[2] = for_each_head(grouped.parameters[2], kSize, kFeatures);
  copied.parameters[3] = for_each_head(grouped.parameters[3], kSize, 1);
  copied.input = grouped.input;
  copied.output_gradient = grouped.output_gradient;
  const Passes of_grouped = run(grouped);
  const Passes of_copied = run(copied);
  check_close(of_grouped.forward.output, of_copied.forward.output);
  check_close(of_grouped.backward.input_gradient, of_copied.backward.input_gradient);
  REQUIRE(of_grouped.parameter_gradients.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    Values expected = of_copied.parameter_gradients[i];
    if (i == 2) expected = over_each_head(expected, kSize, kFeatures);
    if (i == 3) expected = over_each_head(expected, kSize, 1);
    check_close(of_grouped.parameter_gradients[i], expected);
  }
}

TEST_CASE("silu by hand, and each activation far out") {
  // The logistic function of ln 3 is 3/4. At 0 the value is 0 and the slope a half.
  const double x = std::log(3.0);
  check_close(reference::activated({0, x, -x, 1}, Activation::silu),
              {0, 0.75 * x, -0.25 * x, 1 / (1 + std::exp(-1.0))});
  check_close(reference::activated_gradient({1, 1, 2}, {0, x, -x}, Activation::silu),
              {0.5, 0.75 * (1 + 0.25 * x), 0.5 * (1 - 0.75 * x)});
  CHECK(reference::activated({-1, 0, 2}, Activation::relu) == Values{0, 0, 2});
  CHECK(reference::activated_gradient({5, 6, 7}, {-1, 0, 2}, Activation::relu) == Values{0, 0, 7});
  const Values some{-3, -0.5, 0, 0.5, 3};
  CHECK(reference::activated(some, Activation::gelu) == reference::gelu(some));
  CHECK(reference::activated_gradient(some, some, Activation::gelu) ==
        reference::gelu_gradient(some, some));
  for (const Activation activation : {Activation::gelu, Activation::silu, Activation::relu}) {
    check_close(reference::activated({-1000, 1000}, activation), {0, 1000});
    check_close(reference::activated_gradient({1, 1}, {-1000, 1000}, activation), {0, 1});
  }
}

TEST_CASE("a gated mlp block by hand") {
  // The norm makes (r, -r). The gate is their difference, 2 r, and what it lets through 3 r; down
  // brings the product to the features once and five times.
  const double r = 1 / std::sqrt(1 + 1e-5);
  MlpBlock block{.hidden = 1, .gated = true, .norm = NormKind::rms_norm, .bias = false};
  const std::vector<Values> parameters{{1, 1}, {1, -1, 3, 0}, {1, 5}};
  for (const Activation activation : {Activation::gelu, Activation::silu}) {
    block.activation = activation;
    const Case c = one_sample(block, {2}, parameters, {1, -1});
    const double product = reference::activated({2 * r}, activation)[0] * 3 * r;
    check_close(reference_forward(c.call()).output, {1 + product, -1 + 5 * product});
  }
  // A relu lets 2 r pass. The product has a gradient of 1 + 5: six times the other factor each.
  block.activation = Activation::relu;
  const Passes open = run(one_sample(block, {2}, parameters, {1, -1}));
  check_close(open.forward.output, {1 + 6 * r * r, -1 + 30 * r * r});
  check_close(open.forward.kept[2], {2 * r, 3 * r});
  check_close(open.forward.kept[3], {6 * r * r});
  check_close(open.backward.left[0], {18 * r, 12 * r});
  check_close(open.parameter_gradients[1], {18 * r * r, -18 * r * r, 12 * r * r, -12 * r * r});
  check_close(open.parameter_gradients[2], {6 * r * r, 6 * r * r});
  // And it closes where the gate is below zero: nothing but the residual is left.
  const Passes closed = run(one_sample(block, {2}, {{1, 1}, {-1, 1, 3, 0}, {1, 5}}, {1, -1}));
  CHECK(closed.forward.output == Values{1, -1});
  CHECK(closed.backward.input_gradient == Values{1, 1});
}

TEST_CASE("a gated mlp has all its gates before what they let through") {
  // Two rows of gates -1 and 2, and of 3 and 5.
  CHECK(reference::gated({-1, 2, 3, 5, 4, -6, 7, 8}, 2, Activation::relu) == Values{0, 10, 28, 0});
  CHECK(reference::gated_gradient({1, 2, 3, 4}, {-1, 2, 3, 5, 4, -6, 7, 8}, 2, Activation::relu) ==
        Values{0, 10, 0, 4, 21, 0, 12, 0});
}

TEST_CASE("a head with an rms norm by hand") {
  // The norm makes (3 r, 4 r), and the only difference of the logits is their sum.
  const double r = 1 / std::sqrt(12.5 + 1e-5);
  Case c = one_sample(Head{.classes = 2, .norm_kind = NormKind::rms_norm}, {2},
                      {{1, 1}, {1, 1, 0, 0}}, {3, 4});
  c.labels = {1};
  const ReferenceForward made = reference_forward(c.call());
  check_close(made.output, {std::log(1 + std::exp(7 * r))});
  check_close(made.kept[1], {3 * r, 4 * r});
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
