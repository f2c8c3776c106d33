// Layers made of one or two pieces, one small function for each pass.
//
// SPDX-License-Identifier: MIT
#include <utility>

#include "calibrate/training/reference_math.h"
#include "calibrate/training/reference_passes.h"

namespace plumbline::reference {

// linear

ForwardMade forward(const Linear& linear, const ForwardPass& pass) {
  Values y = product(pass.input(), pass.parameter("weight"), last_extent(pass.call.layer.input));
  if (linear.bias) add_to_rows(y, pass.parameter("bias"));
  return {std::move(y)};
}

InputMade backward_input(const Linear&, const InputPass& pass) {
  return {product_input_gradient(pass.output_gradient, pass.parameter("weight"),
                                 last_extent(pass.call.layer.input))};
}

NamedList backward_weight(const Linear& linear, const WeightPass& pass) {
  NamedList made{{"weight", product_weight_gradient(pass.output_gradient, pass.input(),
                                                    last_extent(pass.call.layer.input))}};
  if (linear.bias) made.push_back({"bias", column_sums(pass.output_gradient, linear.features)});
  return made;
}

// relu

ForwardMade forward(const Relu&, const ForwardPass& pass) { return {relu(pass.input())}; }

InputMade backward_input(const Relu&, const InputPass& pass) {
  return {relu_gradient(pass.output_gradient, pass.output())};
}

NamedList backward_weight(const Relu&, const WeightPass&) { return {}; }

// gelu

ForwardMade forward(const Gelu&, const ForwardPass& pass) { return {gelu(pass.input())}; }

InputMade backward_input(const Gelu&, const InputPass& pass) {
  return {gelu_gradient(pass.output_gradient, pass.input())};
}

NamedList backward_weight(const Gelu&, const WeightPass&) { return {}; }

// layer_norm

ForwardMade forward(const LayerNorm&, const ForwardPass& pass) {
  Normalized norm = layer_norm(pass.input(), pass.parameter("scale"), pass.parameter("shift"));
  return {std::move(norm.output), {{"mean", norm.mean}, {"rstd", norm.rstd}}};
}

InputMade backward_input(const LayerNorm&, const InputPass& pass) {
  return {layer_norm_input_gradient(pass.output_gradient, pass.input(),
                                    {pass.kept("mean"), pass.kept("rstd")},
                                    pass.parameter("scale"))};
}

NamedList backward_weight(const LayerNorm&, const WeightPass& pass) {
  return {{"scale", layer_norm_scale_gradient(pass.output_gradient, pass.input(),
                                              {pass.kept("mean"), pass.kept("rstd")})},
          {"shift", column_sums(pass.output_gradient, last_extent(pass.call.layer.input))}};
}

// rms_norm

ForwardMade forward(const RmsNorm&, const ForwardPass& pass) {
  Normalized norm = rms_norm(pass.input(), pass.parameter("scale"));
  return {std::move(norm.output), {{"rstd", norm.rstd}}};
}

InputMade backward_input(const RmsNorm&, const InputPass& pass) {
  return {rms_norm_input_gradient(pass.output_gradient, pass.input(), pass.kept("rstd"),
                                  pass.parameter("scale"))};
}

NamedList backward_weight(const RmsNorm&, const WeightPass& pass) {
  return {
      {"scale", rms_norm_scale_gradient(pass.output_gradient, pass.input(), pass.kept("rstd"))}};
}

// lstm

std::int64_t tokens_of(const ReferenceCall& call) {
  PLUMBLINE_CHECK(call.layer.input.extents.size() == 2, call.layer.input.extents.size());
  return call.layer.input.extents[0];
}

ForwardMade forward(const Lstm& lstm, const ForwardPass& pass) {
  Values projected =
      product(pass.input(), pass.parameter("input.weight"), last_extent(pass.call.layer.input));
  add_to_rows(projected, pass.parameter("bias"));
  const LstmForward made = reference::lstm(projected, pass.parameter("hidden.weight"),
                                           tokens_of(pass.call), lstm.hidden);
  NamedList kept{{"gates", made.gates}, {"cells", made.cells}};
  Values y = made.hidden;
  if (lstm.residual) {
    kept.push_back({"hidden", made.hidden});
    add(y, pass.input());
  }
  return {std::move(y), std::move(kept)};
}

InputMade backward_input(const Lstm& lstm, const InputPass& pass) {
  const Values gates_gradient =
      lstm_gradient(pass.output_gradient, pass.kept("gates"), pass.kept("cells"),
                    pass.parameter("hidden.weight"), tokens_of(pass.call), lstm.hidden);
  Values input_gradient = product_input_gradient(gates_gradient, pass.parameter("input.weight"),
                                                 last_extent(pass.call.layer.input));
  if (lstm.residual) add(input_gradient, pass.output_gradient);
  return {std::move(input_gradient), {{"gates.gradient", gates_gradient}}};
}

NamedList backward_weight(const Lstm& lstm, const WeightPass& pass) {
  const Values& gates_gradient = pass.left("gates.gradient");
  const Values& hidden = lstm.residual ? pass.kept("hidden") : pass.output();
  const Values previous = lstm_previous(hidden, tokens_of(pass.call), lstm.hidden);
  return {{"input.weight", product_weight_gradient(gates_gradient, pass.input(),
                                                   last_extent(pass.call.layer.input))},
          {"hidden.weight", product_weight_gradient(gates_gradient, previous, lstm.hidden)},
          {"bias", column_sums(gates_gradient, 4 * lstm.hidden)}};
}

}  // namespace plumbline::reference
