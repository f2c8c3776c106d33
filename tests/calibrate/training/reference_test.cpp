// The reference layers: every gradient against finite differences, and laws that they keep.
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
#include "tests/calibrate/training/hand_made_layers.h"

namespace plumbline::test {
namespace {

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

TEST_CASE("a token does not count where a window has left it behind") {
  Case c = case_of(AttentionBlock{.heads = 2, .window = 2}, {5, 4}, 1);
  const Values before = reference_forward(c.call()).output;
  c.input[1 * 4 + 2] += 0.5;  // token 1
  const Values after = reference_forward(c.call()).output;
  for (std::int64_t token = 0; token < 5; ++token) {
    CAPTURE(token);
    const bool is_same = std::equal(before.begin() + token * 4, before.begin() + (token + 1) * 4,
                                    after.begin() + token * 4);
    CHECK(is_same == (token != 1 && token != 2));
  }
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

TEST_CASE("rms_norm makes each row's mean square 1, and does not move its mean to 0") {
  Case c = case_of(RmsNorm{}, {3, 5}, 2);
  c.parameters = initial_parameters(c.layer, 1);
  const ReferenceForward forward = reference_forward(c.call());
  for (std::int64_t row = 0; row < 6; ++row) {
    const MeanAndVariance in = statistics(part(c.input, row, 6));
    const MeanAndVariance out = statistics(part(forward.output, row, 6));
    const double square = in.mean * in.mean + in.variance;
    const double rstd = forward.kept[0][row];
    CHECK(std::abs(rstd - 1 / std::sqrt(square + 1e-5)) < 1e-14);
    CHECK(std::abs(out.mean - in.mean * rstd) < 1e-14);
    CHECK(std::abs(out.mean * out.mean + out.variance - normed_variance(square)) < 1e-14);
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

}  // namespace
}  // namespace plumbline::test
