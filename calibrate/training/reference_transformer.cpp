// The layers of transformers, one small function for each pass.
//
// SPDX-License-Identifier: MIT
#include <utility>

#include "base/bug.h"
#include "calibrate/training/reference_math.h"
#include "calibrate/training/reference_passes.h"

namespace plumbline::reference {

// The norm at the start of a block, or of a head.

Normalized block_norm(const ForwardPass& pass, NormKind kind) {
  if (kind == NormKind::rms_norm) return rms_norm(pass.input(), pass.parameter("norm.scale"));
  return layer_norm(pass.input(), pass.parameter("norm.scale"), pass.parameter("norm.shift"));
}

/// What it keeps, in front of what comes after.
NamedList with_norm(const Normalized& norm, NormKind kind, const NamedList& after) {
  NamedList kept;
  if (kind == NormKind::layer_norm) kept.push_back({"norm.mean", norm.mean});
  kept.push_back({"norm.rstd", norm.rstd});
  kept.push_back({"norm.output", norm.output});
  kept.insert(kept.end(), after.begin(), after.end());
  return kept;
}

Values block_norm_input_gradient(const InputPass& pass, NormKind kind,
                                 const Values& norm_output_gradient) {
  if (kind == NormKind::rms_norm) {
    return rms_norm_input_gradient(norm_output_gradient, pass.input(), pass.kept("norm.rstd"),
                                   pass.parameter("norm.scale"));
  }
  return layer_norm_input_gradient(norm_output_gradient, pass.input(),
                                   {pass.kept("norm.mean"), pass.kept("norm.rstd")},
                                   pass.parameter("norm.scale"));
}

/// The gradients of its parameters, in front of those that come after.
NamedList with_norm_gradients(const WeightPass& pass, NormKind kind, const NamedList& after) {
  const Values& gradient = pass.left("norm.output_gradient");
  NamedList made;
  if (kind == NormKind::rms_norm) {
    made = {
        {"norm.scale", rms_norm_scale_gradient(gradient, pass.input(), pass.kept("norm.rstd"))}};
  } else {
    made = {
        {"norm.scale", layer_norm_scale_gradient(gradient, pass.input(),
                                                 {pass.kept("norm.mean"), pass.kept("norm.rstd")})},
        {"norm.shift", column_sums(gradient, last_extent(pass.call.layer.input))}};
  }
  made.insert(made.end(), after.begin(), after.end());
  return made;
}

// attention_block

Attention attention_shape(const AttentionBlock& block, const ReferenceCall& call) {
  const std::vector<std::int64_t>& extents = call.layer.input.extents;
  PLUMBLINE_CHECK(extents.size() == 2, extents.size());
  return {call.batch, extents[0], attention_widths(block, extents[1]), block.causal, block.window};
}

/// Normalizes each head of queries and keys; `kept` gets what the backward needs.
void norm_heads(Values& qkv, const AttentionWidths& widths, const ForwardPass& pass,
                NamedList& kept) {
  const std::int64_t heads = widths.heads + widths.kv_heads;
  const Values before = taken_columns(qkv, widths.qkv(), 0, widths.queries() + widths.keys());
  const Normalized queries = rms_norm(taken_columns(qkv, widths.qkv(), 0, widths.queries()),
                                      pass.parameter("queries.scale"));
  const Normalized keys =
      rms_norm(taken_columns(qkv, widths.qkv(), widths.queries(), widths.keys()),
               pass.parameter("keys.scale"));
  put_columns(qkv, widths.qkv(), 0, queries.output);
  put_columns(qkv, widths.qkv(), widths.queries(), keys.output);
  Values rstd(queries.rstd.size() + keys.rstd.size());
  put_columns(rstd, heads, 0, queries.rstd);
  put_columns(rstd, heads, widths.heads, keys.rstd);
  kept.push_back({"heads.rstd", std::move(rstd)});
  kept.push_back({"heads.input", before});
}

/// The backward of it, in place; `scales` gets the gradients of both scales.
void norm_heads_gradient(Values& qkv_gradient, const AttentionWidths& widths, const InputPass& pass,
                         NamedList& scales) {
  const std::int64_t turning = widths.queries() + widths.keys();
  const std::int64_t heads = widths.heads + widths.kv_heads;
  const auto part = [&](std::string_view name, std::int64_t first, std::int64_t first_head,
                        std::int64_t its_heads) {
    const std::int64_t taken = its_heads * widths.head_size;
    const Values gradient = taken_columns(qkv_gradient, widths.qkv(), first, taken);
    const Values x = taken_columns(pass.kept("heads.input"), turning, first, taken);
    const Values rstd = taken_columns(pass.kept("heads.rstd"), heads, first_head, its_heads);
    scales.push_back({name, rms_norm_scale_gradient(gradient, x, rstd)});
    put_columns(qkv_gradient, widths.qkv(), first,
                rms_norm_input_gradient(gradient, x, rstd, pass.parameter(name)));
  };
  part("queries.scale", 0, 0, widths.heads);
  part("keys.scale", widths.queries(), widths.heads, widths.kv_heads);
}

/// Turns queries and keys to their positions, or back.
void turn(Values& qkv, const AttentionBlock& block, const Attention& shape, bool back) {
  const std::int64_t turning = shape.widths.queries() + shape.widths.keys();
  Values heads = taken_columns(qkv, shape.widths.qkv(), 0, turning);
  rotate(heads, turning, shape.widths.head_size, shape.tokens, block.rotary, back);
  put_columns(qkv, shape.widths.qkv(), 0, heads);
}

ForwardMade forward(const AttentionBlock& block, const ForwardPass& pass) {
  const Attention shape = attention_shape(block, pass.call);
  const AttentionWidths& widths = shape.widths;
  const Normalized norm = block_norm(pass, block.norm);
  NamedList kept;
  Values qkv =
      product(norm.output, pass.parameter("qkv.weight"), last_extent(pass.call.layer.input));
  if (block.bias != AttentionBias::none) add_to_rows(qkv, pass.parameter("qkv.bias"));
  if (block.qk_norm) norm_heads(qkv, widths, pass, kept);
  if (block.rotary > 0) turn(qkv, block, shape, false);
  const AttentionForward attended = attention(qkv, shape);
  Values y = product(attended.context, pass.parameter("projection.weight"), widths.queries());
  if (block.bias == AttentionBias::all) add_to_rows(y, pass.parameter("projection.bias"));
  add(y, pass.input());
  kept.push_back({"qkv", qkv});
  kept.push_back({"logsumexp", attended.logsumexp});
  kept.push_back({"context", attended.context});
  return {std::move(y), with_norm(norm, block.norm, kept)};
}

InputMade backward_input(const AttentionBlock& block, const InputPass& pass) {
  const Attention shape = attention_shape(block, pass.call);
  const Values context_gradient = product_input_gradient(
      pass.output_gradient, pass.parameter("projection.weight"), shape.widths.queries());
  Values qkv_gradient =
      attention_gradient(context_gradient, pass.kept("qkv"), pass.kept("logsumexp"), shape);
  if (block.rotary > 0) turn(qkv_gradient, block, shape, true);
  NamedList scales;
  if (block.qk_norm) norm_heads_gradient(qkv_gradient, shape.widths, pass, scales);
  const Values norm_output_gradient = product_input_gradient(
      qkv_gradient, pass.parameter("qkv.weight"), last_extent(pass.call.layer.input));
  Values input_gradient = block_norm_input_gradient(pass, block.norm, norm_output_gradient);
  add(input_gradient, pass.output_gradient);
  return {std::move(input_gradient),
          {{"qkv.gradient", qkv_gradient}, {"norm.output_gradient", norm_output_gradient}},
          std::move(scales)};
}

NamedList backward_weight(const AttentionBlock& block, const WeightPass& pass) {
  const std::int64_t features = last_extent(pass.call.layer.input);
  const AttentionWidths widths = attention_widths(block, features);
  const Values& qkv_gradient = pass.left("qkv.gradient");
  NamedList made{
      {"qkv.weight", product_weight_gradient(qkv_gradient, pass.kept("norm.output"), features)}};
  if (block.bias != AttentionBias::none)
    made.push_back({"qkv.bias", column_sums(qkv_gradient, widths.qkv())});
  made.push_back(
      {"projection.weight",
       product_weight_gradient(pass.output_gradient, pass.kept("context"), widths.queries())});
  if (block.bias == AttentionBias::all)
    made.push_back({"projection.bias", column_sums(pass.output_gradient, features)});
  return with_norm_gradients(pass, block.norm, made);
}

// mlp_block

ForwardMade forward(const MlpBlock& block, const ForwardPass& pass) {
  const Normalized norm = block_norm(pass, block.norm);
  Values hidden =
      product(norm.output, pass.parameter("up.weight"), last_extent(pass.call.layer.input));
  if (block.bias) add_to_rows(hidden, pass.parameter("up.bias"));
  const Values middle = block.gated ? gated(hidden, block.hidden, block.activation)
                                    : activated(hidden, block.activation);
  Values y = product(middle, pass.parameter("down.weight"), block.hidden);
  if (block.bias) add_to_rows(y, pass.parameter("down.bias"));
  add(y, pass.input());
  return {std::move(y), with_norm(norm, block.norm, {{"hidden", hidden}, {"activated", middle}})};
}

InputMade backward_input(const MlpBlock& block, const InputPass& pass) {
  const Values gradient =
      product_input_gradient(pass.output_gradient, pass.parameter("down.weight"), block.hidden);
  const Values& hidden = pass.kept("hidden");
  const Values hidden_gradient =
      block.gated ? gated_gradient(gradient, hidden, block.hidden, block.activation)
                  : activated_gradient(gradient, hidden, block.activation);
  const Values norm_output_gradient = product_input_gradient(
      hidden_gradient, pass.parameter("up.weight"), last_extent(pass.call.layer.input));
  Values input_gradient = block_norm_input_gradient(pass, block.norm, norm_output_gradient);
  add(input_gradient, pass.output_gradient);
  return {std::move(input_gradient),
          {{"hidden.gradient", hidden_gradient}, {"norm.output_gradient", norm_output_gradient}}};
}

NamedList backward_weight(const MlpBlock& block, const WeightPass& pass) {
  const std::int64_t features = last_extent(pass.call.layer.input);
  const Values& hidden_gradient = pass.left("hidden.gradient");
  NamedList made{
      {"up.weight", product_weight_gradient(hidden_gradient, pass.kept("norm.output"), features)}};
  if (block.bias) made.push_back({"up.bias", column_sums(hidden_gradient, block.up())});
  made.push_back({"down.weight", product_weight_gradient(pass.output_gradient,
                                                         pass.kept("activated"), block.hidden)});
  if (block.bias) made.push_back({"down.bias", column_sums(pass.output_gradient, features)});
  return with_norm_gradients(pass, block.norm, made);
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
    const Normalized norm = block_norm(pass, head.norm_kind);
    kept = with_norm(norm, head.norm_kind, {});
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
  return {block_norm_input_gradient(pass, head.norm_kind, x_gradient),
          {{"norm.output_gradient", x_gradient}}};
}

NamedList backward_weight(const Head& head, const WeightPass& pass) {
  const Values gradient = logits_gradient(pass);
  const Values& x = head.norm ? pass.kept("norm.output") : pass.input();
  NamedList made{
      {"weight", product_weight_gradient(gradient, x, last_extent(pass.call.layer.input))}};
  if (head.bias) made.push_back({"bias", column_sums(gradient, head.classes)});
  return head.norm ? with_norm_gradients(pass, head.norm_kind, made) : made;
}

}  // namespace plumbline::reference
