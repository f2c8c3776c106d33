// Products, norms, attention's middle, dropout, and what groups of devices send around them.
//
// SPDX-License-Identifier: MIT
#include "models/import/layer_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace plumbline {
namespace {

/// The bytes that attention reads.
SaturatingCount queries_keys_values(const LayerDerivation& layer) {
  const auto found = std::find_if(layer.kept.begin(), layer.kept.end(), [](const Term& term) {
    return term.what == "queries, keys, values";
  });
  return found == layer.kept.end() ? SaturatingCount{} : found->value;
}

}  // namespace

LayerBuilder::LayerBuilder(const TransformerShape& shape, const TransformerOptions& options)
    : shape_(shape),
      options_(options),
      dropout_(dropout_of(shape, options)),
      n_(symbols_of(shape, options)) {}

void LayerBuilder::add_product(LayerDerivation& layer, const std::string& what,
                               const std::string& formula, SaturatingCount count) const {
  layer.parameters.push_back({what, formula, count});
  add_linear(layer, {what, "2 T " + formula, 2 * n_.T * count});
}

void LayerBuilder::add_linear(LayerDerivation& layer, Term forward, const LayerPart& part) const {
  run_again(layer, part, forward.value);
  layer.flops.push_back({.forward = std::move(forward), .in_fp8 = options_.fp8_linear});
}

void LayerBuilder::run_again(LayerDerivation& layer, const LayerPart& part,
                             SaturatingCount flops) const {
  layer.recompute_flops += again(part, flops);
  if (options_.fp8_linear) layer.recompute_fp8_flops += again(part, flops);
}

void LayerBuilder::add_norm(LayerDerivation& layer) const {
  layer.parameters.push_back(
      {"norm", shape_.layer_norm ? "2 h" : "h", (shape_.layer_norm ? 2 : 1) * n_.h});
}

void LayerBuilder::add_kept_tokens(LayerDerivation& layer, std::string what) const {
  const std::string streams = shape_.streams > 1 ? fmt::format("{} ", shape_.streams) : "";
  layer.kept.push_back(
      {std::move(what), streams + (by_tokens() ? "e R h" : "e T h"), stream_bytes()});
}

void LayerBuilder::add_tensors(LayerDerivation& layer,
                               const std::vector<SmallTensor>& tensors) const {
  for (const SmallTensor& tensor : tensors) {
    const std::int64_t own = tensor.numbers / (tensor.is_divided ? options_.tensor_parallel : 1);
    layer.parameters.push_back({std::string(tensor.what), std::to_string(own), own});
  }
}

void LayerBuilder::add_norms_behind(LayerDerivation& layer, std::int64_t norms) const {
  for (std::int64_t i = 0; i < norms; ++i) {
    add_norm(layer);
    layer.kept.push_back(
        {"input of a further norm", by_tokens() ? "e R h" : "e T h", hidden_bytes()});
  }
}

void LayerBuilder::add_streams(LayerDerivation& layer) const {
  const std::int64_t streams = shape_.streams;
  if (streams == 1) return;
  const std::int64_t weights = streams * (streams + 2);
  add_product(layer, "weights of the residual streams", fmt::format("{} {} h", weights, streams),
              weights * streams * n_.h);
  layer.parameters.push_back(
      {"their biases and scales", fmt::format("{} + 3", weights), weights + 3});
}

void LayerBuilder::finish_mixer(LayerDerivation& layer) const {
  add_streams(layer);
  add_kept_tokens(layer, "output, the residual added");
  finish(layer, sum(layer.parameters), {});
  drop_residual(layer);
  share_products(layer, layer_part::kNone);
}

void LayerBuilder::add_norm_output(LayerDerivation& layer, const LayerPart& part) const {
  add_norm_output(layer, n_.l, of_linear(), part);
}

void LayerBuilder::add_norm_output(LayerDerivation& layer, SaturatingCount of_number,
                                   std::string_view symbol, const LayerPart& part) const {
  const SaturatingCount bytes = of_number * n_.R * n_.h;
  layer.kept.push_back({"output of the norm",
                        fmt::format("{} {} h", symbol, by_tokens() ? "R" : "T"), bytes, false,
                        again(part, bytes)});
}

void LayerBuilder::keep_inner(LayerDerivation& layer, std::string_view of,
                              const std::string& formula, SaturatingCount numbers,
                              const LayerPart& activation, const LayerPart& mlp) const {
  const std::int64_t tensors = inner_count();
  const std::int64_t products = shape_.gated ? 2 : 1;
  const SaturatingCount last = n_.l * numbers;
  const SaturatingCount made = (tensors - products - 1) * n_.e * numbers + last;
  layer.kept.push_back({fmt::format("{}{}", inner_tensors(), of),
                        fmt::format("{} {}",
                                    options_.fp8_linear ? fmt::format("({} e + l)", tensors - 1)
                                                        : fmt::format("{} e", tensors),
                                    formula),
                        (tensors - 1) * n_.e * numbers + last, false,
                        again(activation, made) + again(mlp, products * n_.e * numbers)});
  if (tensors == 3) layer.again_reads += again(activation, n_.e * numbers);  // one is made of two
}

std::int64_t LayerBuilder::inner_count() const {
  if (!shape_.gated) return 2;
  return options_.fused_swiglu ? 3 : 4;
}

std::string LayerBuilder::inner_tensors() const {
  if (!shape_.gated) return "up, its activation";
  return options_.fused_swiglu ? "gate, up, their product"
                               : "gate, its activation, up, their product";
}

std::string LayerBuilder::keys_symbol() const {
  return key_repeats() > 1 ? fmt::format("{} g", key_repeats()) : "g";
}

void LayerBuilder::keep_heads(LayerDerivation& layer) const {
  const SaturatingCount own_keys = key_repeats() * n_.g;
  const std::string keys = key_repeats() > 1 ? fmt::format("{} g", 2 * key_repeats()) : "2 g";
  const bool alike = n_.w.value() == n_.d.value();
  layer.kept.push_back({"queries, keys, values",
                        alike ? fmt::format("e T (a + {}) d", keys)
                              : fmt::format("e T (a d + {} (d + w))", keys_symbol()),
                        n_.e * n_.T * (n_.a * n_.d + own_keys * (n_.d + n_.w))});
}

void LayerBuilder::recompute_heads(LayerDerivation& layer, bool has_queries) const {
  const SaturatingCount of_query = n_.n + n_.r;
  const LayerPart& queries = has_queries ? layer_part::kLatentHeads : layer_part::kLatentQueries;
  const SaturatingCount numbers = again(layer_part::kLatentHeads, n_.c * n_.a * (n_.n + n_.v)) +
                                  again(queries, (has_queries ? n_.q : n_.h) * n_.a * of_query);
  layer.kept.back().again =
      n_.e * n_.T * n_.a *
      (again(layer_part::kLatentHeads, of_query + n_.v) + again(queries, of_query));
  layer.recompute_flops += 2 * n_.T * numbers;
  if (options_.fp8_linear) layer.recompute_fp8_flops += 2 * n_.T * numbers;
  layer.again_reads += n_.e * numbers;
}

void LayerBuilder::finish_attention(LayerDerivation& layer, SaturatingCount of_key,
                                    Width projected) const {
  SaturatingCount passing;  // written and read, not kept
  if (options_.flash_attention) {
    const SaturatingCount sums = 4 * n_.T * n_.a;
    layer.kept.push_back({"sums of the softmax, fp32", "4 T a", sums, false,
                          again(layer_part::kCoreAttention, sums)});
  } else {
    const SaturatingCount scores = n_.e * n_.T * n_.s * n_.a;
    layer.kept.push_back({"softmax", "e T s a", scores, false, again(layer_part::kScores, scores)});
    passing = 2 * scores;
  }
  const SaturatingCount made = n_.e * n_.T * projected.value;
  if (options_.makes_again(layer_part::kCoreAttention)) {
    for (const WorkTerm& term : layer.flops)
      layer.recompute_flops += term.has_weights ? SaturatingCount{} : term.forward.value;
    layer.again_reads += queries_keys_values(layer) + made + passing;
  } else if (!options_.flash_attention) {
    layer.recompute_flops += again(layer_part::kScores, 2 * n_.T * n_.s * n_.a * of_key);
  }
  // In fp8 the projection has a copy of its own, and that of attention's backward is within it.
  const bool has_copy = options_.fp8_linear;
  layer.kept.push_back({"input of the projection",
                        fmt::format("{} T {}", has_copy ? "(e + l)" : "e", projected.formula),
                        (has_copy ? n_.e + n_.l : n_.e) * n_.T * projected.value, false,
                        has_copy ? again(layer_part::kCoreAttention, made) : SaturatingCount{}});
  // Its own backward reads its output as it was made, the projection's as it came back.
  if (options_.exchanges_heads() && options_.flash_attention && !has_copy) {
    layer.kept.push_back({"output of attention, by heads", fmt::format("e T {}", projected.formula),
                          made, false, again(layer_part::kCoreAttention, made)});
  }
  const bool is_parallel = shape_.is_parallel();
  if (is_parallel) {
    passing += 2 * whole_bytes();  // the MLP's output is added to it
  } else {
    add_kept_tokens(layer, "output, the residual added");
  }
  finish(layer, sum(layer.parameters), passing);
  if (dropout_.attention.value_or(0) > 0 && !options_.flash_attention) drop_scores(layer);
  drop_residual(layer);
  share_products(layer, layer_part::kNone, true, !is_parallel);
}

void LayerBuilder::send_context(LayerDerivation& layer, const Term& keys,
                                const Term& exchanged) const {
  if (options_.exchanges_heads()) {
    exchange_heads(layer, exchanged);
  } else {
    gather_context(layer, keys);
  }
}

void LayerBuilder::exchange_heads(LayerDerivation& layer, const Term& numbers) const {
  const SaturatingCount all = n_.e * n_.T * numbers.value;
  layer.exchanged_heads = {numbers.what, "e T " + numbers.formula, all};
  layer.forward_traffic += 2 * all;
  layer.input_traffic += 2 * all;
  layer.again_exchanged_heads = again(layer_part::kCoreAttention, all);
  layer.again_reads += 2 * layer.again_exchanged_heads;
}

void LayerBuilder::gather_context(LayerDerivation& layer, const Term& numbers) const {
  const std::int64_t devices = options_.context_parallel;
  if (devices == 1) return;
  const SaturatingCount all = devices * n_.e * n_.T * numbers.value;
  layer.keys_and_values = {numbers.what, fmt::format("e {} T {}", devices, numbers.formula), all};
  layer.forward_traffic += 2 * all;
  layer.input_traffic += 4 * all;
  layer.again_keys_and_values = again(layer_part::kCoreAttention, all);
  layer.again_reads += 2 * layer.again_keys_and_values;
}

void LayerBuilder::drop(LayerDerivation& layer, const std::string& what, std::string_view formula,
                        SaturatingCount numbers, bool again) const {
  layer.kept.push_back({"mask of " + what + "'s dropout", std::string(formula), numbers, false,
                        again ? numbers : SaturatingCount{}});
  layer.dropped += numbers;
  const SaturatingCount moved = (2 * n_.e + 1) * numbers;
  layer.forward_traffic += moved;
  layer.input_traffic += moved;
}

void LayerBuilder::drop_tokens(LayerDerivation& layer) const {
  drop(layer, "the output", by_tokens() ? "R h" : "T h", n_.R * n_.h, false);
}

void LayerBuilder::drop_residual(LayerDerivation& layer) const {
  if (dropout_.residual.value_or(0) > 0) drop_tokens(layer);
}

void LayerBuilder::drop_scores(LayerDerivation& layer) const {
  const SaturatingCount numbers = n_.T * n_.s * n_.a;
  drop(layer, "the softmax", "T s a", numbers, options_.makes_again(layer_part::kScores));
  const SaturatingCount bytes = n_.e * numbers;
  layer.kept.push_back(
      {"softmax, dropped", "e T s a", bytes, false, again(layer_part::kScores, bytes)});
}

void LayerBuilder::finish(LayerDerivation& layer, SaturatingCount touched,
                          SaturatingCount passing) const {
  const SaturatingCount weights = n_.e * touched;
  const SaturatingCount kept = sum(layer.kept);
  layer.output = stream_bytes();
  layer.forward_traffic = weights + stream_bytes() + 2 * kept + passing;
  layer.input_traffic = weights + 3 * kept + passing;
  layer.weight_traffic = weights + 2 * kept;
}

void LayerBuilder::share_products(LayerDerivation& layer, const LayerPart& part, bool in_front,
                                  bool behind) const {
  const SaturatingCount front = in_front ? whole_bytes() : SaturatingCount{};
  const SaturatingCount back = behind ? whole_bytes() : SaturatingCount{};
  const SaturatingCount again_back = shape_.is_parallel() ? SaturatingCount{} : again(part, back);
  if (by_tokens()) {
    const SaturatingCount both = front + back;
    layer.forward_traffic += both;
    layer.input_traffic += both;
    layer.weight_traffic += both;
    layer.gathered = both;  // gathered in front, reduce-scattered behind
    layer.input_gathered = both;
    layer.again_gathered = again(part, front) + again_back;
    layer.again_reads += layer.again_gathered;
  } else if (is_shared()) {
    layer.all_reduced = back;
    layer.input_all_reduced = front;
    layer.again_all_reduced = again_back;
  }
}

}  // namespace plumbline
