// The layers of transformers, one small function for each pass.
//
// SPDX-License-Identifier: MIT
#include <utility>

#include "base/bug.h"
#include "calibrate/training/reference_math.h"
#include "calibrate/training/reference_passes.h"

namespace plumbline::reference {

// The norm at the start of a block.

Normalized block_norm(const ForwardPass& pass) {
  return layer_norm(pass.input(), pass.parameter("norm.scale"), pass.parameter("norm.shift"));
}

Values block_norm_input_gradient(const InputPass& pass, const Values& norm_output_gradient) {
  return layer_norm_input_gradient(norm_output_gradient, pass.input(),
                                   {pass.kept("norm.mean"), pass.kept("norm.rstd")},
                                   pass.parameter("norm.scale"));
}

Values block_norm_scale_gradient(const WeightPass& pass) {
  return layer_norm_scale_gradient(pass.left("norm.output_gradient"), pass.input(),
                                   {pass.kept("norm.mean"), pass.kept("norm.rstd")});
}

Values block_norm_shift_gradient(const WeightPass& pass) {
  return column_sums(pass.left("norm.output_gradient"), last_extent(pass.call.layer.input));
}

// attention_block

Attention attention_shape(const AttentionBlock& block, const ReferenceCall& call) {
  const std::vector<std::int64_t>& extents = call.layer.input.extents;
  PLUMBLINE_CHECK(extents.size() == 2, extents.size());
  return {call.batch, extents[0], extents[1], block.heads, block.causal};
}

ForwardMade forward(const AttentionBlock& block, const ForwardPass& pass) {
  const Attention shape = attention_shape(block, pass.call);
  const Normalized norm = block_norm(pass);
  Values qkv = product(norm.output, pass.parameter("qkv.weight"), shape.features);
  add_to_rows(qkv, pass.parameter("qkv.bias"));
  const AttentionForward attended = attention(qkv, shape);
  Values y = product(attended.context, pass.parameter("projection.weight"), shape.features);
  add_to_rows(y, pass.parameter("projection.bias"));
  add(y, pass.input());
  return {std::move(y),
          {{"norm.mean", norm.mean},
           {"norm.rstd", norm.rstd},
           {"norm.output", norm.output},
           {"qkv", qkv},
           {"logsumexp", attended.logsumexp},
           {"context", attended.context}}};
}

InputMade backward_input(const AttentionBlock& block, const InputPass& pass) {
  const Attention shape = attention_shape(block, pass.call);
  const Values context_gradient = product_input_gradient(
      pass.output_gradient, pass.parameter("projection.weight"), shape.features);
  const Values qkv_gradient =
      attention_gradient(context_gradient, pass.kept("qkv"), pass.kept("logsumexp"), shape);
  const Values norm_output_gradient =
      product_input_gradient(qkv_gradient, pass.parameter("qkv.weight"), shape.features);
  Values input_gradient = block_norm_input_gradient(pass, norm_output_gradient);
  add(input_gradient, pass.output_gradient);
  return {std::move(input_gradient),
          {{"qkv.gradient", qkv_gradient}, {"norm.output_gradient", norm_output_gradient}}};
}

NamedList backward_weight(const AttentionBlock&, const WeightPass& pass) {
  const std::int64_t features = last_extent(pass.call.layer.input);
  const Values& qkv_gradient = pass.left("qkv.gradient");
  return {{"norm.scale", block_norm_scale_gradient(pass)},
          {"norm.shift", block_norm_shift_gradient(pass)},
          {"qkv.weight", product_weight_gradient(qkv_gradient, pass.kept("norm.output"), features)},
          {"qkv.bias", column_sums(qkv_gradient, 3 * features)},
          {"projection.weight",
           product_weight_gradient(pass.output_gradient, pass.kept("context"), features)},
          {"projection.bias", column_sums(pass.output_gradient, features)}};
}

// mlp_block

ForwardMade forward(const MlpBlock& block, const ForwardPass& pass) {
  const Normalized norm = block_norm(pass);
  Values hidden =
      product(norm.output, pass.parameter("up.weight"), last_extent(pass.call.layer.input));
  add_to_rows(hidden, pass.parameter("up.bias"));
  const Values gelu = reference::gelu(hidden);
  Values y = product(gelu, pass.parameter("down.weight"), block.hidden);
  add_to_rows(y, pass.parameter("down.bias"));
  add(y, pass.input());
  return {std::move(y),
          {{"norm.mean", norm.mean},
           {"norm.rstd", norm.rstd},
           {"norm.output", norm.output},
           {"hidden", hidden},
           {"gelu", gelu}}};
}

InputMade backward_input(const MlpBlock& block, const InputPass& pass) {
  const Values gelu_gradient =
      product_input_gradient(pass.output_gradient, pass.parameter("down.weight"), block.hidden);
  const Values hidden_gradient = reference::gelu_gradient(gelu_gradient, pass.kept("hidden"));
  const Values norm_output_gradient = product_input_gradient(
      hidden_gradient, pass.parameter("up.weight"), last_extent(pass.call.layer.input));
  Values input_gradient = block_norm_input_gradient(pass, norm_output_gradient);
  add(input_gradient, pass.output_gradient);
  return {std::move(input_gradient),
          {{"hidden.gradient", hidden_gradient}, {"norm.output_gradient", norm_output_gradient}}};
}

NamedList backward_weight(const MlpBlock& block, const WeightPass& pass) {
  const std::int64_t features = last_extent(pass.call.layer.input);
  const Values& hidden_gradient = pass.left("hidden.gradient");
  return {
      {"norm.scale", block_norm_scale_gradient(pass)},
      {"norm.shift", block_norm_shift_gradient(pass)},
      {"up.weight", product_weight_gradient(hidden_gradient, pass.kept("norm.output"), features)},
      {"up.bias", column_sums(hidden_gradient, block.hidden)},
      {"down.weight",
       product_weight_gradient(pass.output_gradient, pass.kept("gelu"), block.hidden)},
      {"down.bias", column_sums(pass.output_gradient, features)}};
}

// embedding

ForwardMade forward(const Embedding& embedding, const ForwardPass& pass) {
  Values y = lookup(pass.input(), pass.parameter("weight"), embedding.features);
  // Every sample is one row of tokens x features.
  if (embedding.positions) add_to_rows(y, pass.parameter("positions"));
  return {std::move(y)};
}

InputMade backward_input(const Embedding&, const InputPass&) { return {}; }

NamedList backward_weight(const Embedding& embedding, const WeightPass& pass) {
  NamedList made{
      {"weight", lookup_gradient(pass.output_gradient, pass.input(), embedding.vocabulary)}};
  if (embedding.positions)
    made.push_back(
        {"positions", column_sums(pass.output_gradient, pass.call.layer.output.elements())});
  return made;
}

// head

ForwardMade forward(const Head& head, const ForwardPass& pass) {
  const ReferenceCall& call = pass.call;
  NamedList kept;
  Values x = pass.input();
  if (head.norm) {
    const Normalized norm = block_norm(pass);
    kept = {{"norm.mean", norm.mean}, {"norm.rstd", norm.rstd}, {"norm.output", norm.output}};
    x = norm.output;
  }
  Values logits = product(x, pass.parameter("weight"), last_extent(call.layer.input));
  if (head.bias) add_to_rows(logits, pass.parameter("bias"));
  CrossEntropy result = cross_entropy(logits, call.labels, head.classes, call.batch);
  kept.push_back({"probabilities", std::move(result.probabilities)});
  return {std::move(result.loss), std::move(kept)};
}

/// The gradient of the logits. Both I and W compute it from the probabilities.
template <class Pass>
Values logits_gradient(const Pass& pass) {
  return cross_entropy_gradient(pass.output_gradient, pass.kept("probabilities"), pass.call.labels);
}

InputMade backward_input(const Head& head, const InputPass& pass) {
  Values x_gradient = product_input_gradient(logits_gradient(pass), pass.parameter("weight"),
                                             last_extent(pass.call.layer.input));
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
  made.push_back(
      {"weight", product_weight_gradient(gradient, x, last_extent(pass.call.layer.input))});
  if (head.bias) made.push_back({"bias", column_sums(gradient, head.classes)});
  return made;
}

}  // namespace plumbline::reference
