// One function for each kind of mixer.
//
// SPDX-License-Identifier: MIT
#include "models/import/mixer_layers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bug.h"
#include "models/ops/layer_op.h"

namespace plumbline {

LayerDerivation MixerDeriver::mixer() const {
  switch (shape_.mixer) {
    case Mixer::attention:
      if (!shape_.latent) return plain_attention();
      return shape_.reach(options_.sequence) ? sparse_latent_attention() : latent_attention();
    case Mixer::scan:
      return scan();
    case Mixer::compressed:
      return compressed_attention();
    case Mixer::linear:
      return linear();
    case Mixer::none:
      break;
  }
  PLUMBLINE_CHECK(false, "a block without a mixer has no layer of it");
  return {};
}

LayerDerivation MixerDeriver::plain_attention() const {
  LayerDerivation layer;
  layer.role = "attention";
  const bool alike = n_.w.value() == n_.d.value();
  const std::int64_t tensors = shape_.values_are_keys ? 1 : 2;
  const SaturatingCount inputs =
      alike ? (n_.a + tensors * n_.g) * n_.d : (n_.a + n_.g) * n_.d + n_.g * n_.w;
  const std::string columns = alike ? fmt::format("(a + {}g) d", tensors == 2 ? "2 " : "")
                                    : std::string("((a + g) d + g w)");
  add_norm(layer);
  add_product(layer, "queries, keys, values", "h " + columns, n_.h * inputs);
  if (shape_.attention_input_bias) layer.parameters.push_back({"their biases", columns, inputs});
  if (shape_.query_key_norm && shape_.whole_norms) {
    layer.parameters.push_back({"norms of q and k", "(a + g) d", (n_.a + n_.g) * n_.d});
  } else if (shape_.query_key_norm) {
    const std::int64_t rows = shape_.layer_norm ? 4 : 2;
    layer.parameters.push_back({"norms of q and k", fmt::format("{} d", rows), rows * n_.d});
  }
  add_scores_of_plain(layer);
  const std::string width = alike ? "a d" : "a w";
  add_product(layer, "projection", width + " h", n_.a * n_.w * n_.h);
  if (shape_.attention_output_bias) layer.parameters.push_back({"its bias", "h", n_.h});

  add_norm_output(layer);
  keep_heads(layer);
  if (shape_.query_key_norm)
    layer.kept.push_back(
        {"q and k before their norms", "e T (a + g) d", n_.e * n_.T * (n_.a + n_.g) * n_.d});
  add_further(layer, n_.a * n_.w);
  finish_attention(layer, n_.d, {width, n_.a * n_.w});
  const SaturatingCount sent_keys = key_repeats() * n_.g;
  const std::string exchanged = alike ? fmt::format("2 (a + {}) d", keys_symbol())
                                      : fmt::format("(a + {}) (d + w)", keys_symbol());
  send_context(layer, {"keys and values", alike ? "2 g d" : "g (d + w)", n_.g * (n_.d + n_.w)},
               {"queries, keys, values and what attention makes of them", exchanged,
                (n_.a + sent_keys) * (n_.d + n_.w)});
  return layer;
}

void MixerDeriver::add_scores_of_plain(LayerDerivation& layer) const {
  if (n_.w.value() != n_.d.value())
    return add_scores(layer,
                      options_.flash_attention && shape_.reach(options_.sequence) ? "Z" : "T s",
                      n_.Z, n_.d, n_.w, options_.sequence);
  const SaturatingCount pairs = n_.T * n_.s * n_.a * n_.d;
  if (!options_.flash_attention) {
    layer.flops.push_back({{"scores and their sums", "4 T s a d", 4 * pairs}, 4, false});
  } else if (shape_.reach(options_.sequence)) {
    layer.flops.push_back({{"scores and their sums", "2 Z a d", 2 * n_.Z * n_.a * n_.d}, 5, false});
  } else {
    // Dao 2023 (FlashAttention-2), section 4.1: half the pairs are masked; the backward computes
    // the scores again and takes 2.5 times as many FLOPs.
    layer.flops.push_back({{"scores and their sums", "2 T s a d", 2 * pairs}, 5, false});
  }
}

void MixerDeriver::add_scores(LayerDerivation& layer, const std::string& pairs_formula,
                              SaturatingCount pairs, SaturatingCount query_size,
                              SaturatingCount value_size, std::int64_t keys) const {
  const bool flash = options_.flash_attention;
  const SaturatingCount all = flash ? pairs : 2 * n_.T * keys;
  const std::string of = flash ? pairs_formula : fmt::format("2 T {}", keys);
  layer.flops.push_back(
      {{"scores", fmt::format("{} a {}", of, query_size.value()), all * n_.a * query_size},
       flash ? 6 : 4,
       false});
  layer.flops.push_back(
      {{"their sums", fmt::format("{} a {}", of, value_size.value()), all * n_.a * value_size},
       4,
       false});
}

void MixerDeriver::add_latent_matrices(LayerDerivation& layer) const {
  const SaturatingCount of_query = n_.n + n_.r;
  const bool compressed = shape_.latent->query_rank > 0;
  add_norm(layer);
  if (compressed) {
    add_product(layer, "queries, compressed", "h q", n_.h * n_.q);
    layer.parameters.push_back({"their norm", "q", n_.q});
    add_product(layer, "queries", "q a (n + r)", n_.q * n_.a * of_query);
  } else {
    add_product(layer, "queries", "h a (n + r)", n_.h * n_.a * of_query);
  }
  add_product(layer, "keys and values, compressed", "h (c + r)", n_.h * (n_.c + n_.r));
  layer.parameters.push_back({"their norm", "c", n_.c});
  add_product(layer, "keys and values", "c a (n + v)", n_.c * n_.a * (n_.n + n_.v));
  if (shape_.attention_input_bias) {
    layer.parameters.push_back({"biases of what is compressed", compressed ? "q + c + r" : "c + r",
                                (compressed ? n_.q : 0) + n_.c + n_.r});
  }
}

void MixerDeriver::keep_compressed(LayerDerivation& layer) const {
  const bool fp8 = options_.fp8_linear;
  if (shape_.latent->query_rank > 0) {
    layer.kept.push_back({"compressed queries, before and behind their norm",
                          fp8 ? "(e + l) T q" : "2 e T q", (n_.e + n_.l) * n_.T * n_.q});
  }
  layer.kept.push_back({"compressed keys and values, the same",
                        fp8 ? "T (e (c + r) + l c)" : "e T (2 c + r)",
                        n_.T * (n_.e * (n_.c + n_.r) + n_.l * n_.c)});
}

LayerDerivation MixerDeriver::latent_attention() const {
  LayerDerivation layer;
  layer.role = "attention";
  const SaturatingCount of_query = n_.n + n_.r;
  add_latent_matrices(layer);
  // A product over n + r numbers makes the scores, one over v their sums, and the backward of
  // each takes two; with flash attention as in plain_attention, and the scores once more.
  const SaturatingCount pairs = n_.T * n_.s * n_.a;
  const std::int64_t both = options_.flash_attention ? 1 : 2;  // halves of the pairs
  const std::string_view twice = options_.flash_attention ? "" : "2 ";
  layer.flops.push_back({{"scores", fmt::format("{}T s a (n + r)", twice), both * pairs * of_query},
                         options_.flash_attention ? 6 : 4,
                         false});
  layer.flops.push_back(
      {{"their sums", fmt::format("{}T s a v", twice), both * pairs * n_.v}, 4, false});
  add_product(layer, "projection", "a v h", n_.a * n_.v * n_.h);
  if (shape_.attention_output_bias) layer.parameters.push_back({"its bias", "h", n_.h});

  add_norm_output(layer);
  keep_compressed(layer);
  layer.kept.push_back({"queries, keys, values", "e T a (2 n + 2 r + v)",
                        n_.e * n_.T * n_.a * (2 * of_query + n_.v)});
  recompute_heads(layer, shape_.latent->query_rank > 0);
  add_further(layer, n_.a * n_.v);
  finish_attention(layer, of_query, {"a v", n_.a * n_.v});
  send_context(layer, {"keys and values", "a (n + r + v)", n_.a * (of_query + n_.v)},
               {"queries, keys, values and what attention makes of them", "2 a (n + r + v)",
                2 * n_.a * (of_query + n_.v)});
  return layer;
}

LayerDerivation MixerDeriver::sparse_latent_attention() const {
  LayerDerivation layer;
  layer.role = "attention";
  const SaturatingCount of_key = n_.c + n_.r;
  add_latent_matrices(layer);
  add_scores(layer, "Z", n_.Z, of_key, n_.c, options_.sequence);
  add_product(layer, "projection", "a v h", n_.a * n_.v * n_.h);
  if (shape_.attention_output_bias) layer.parameters.push_back({"its bias", "h", n_.h});
  add_norm_output(layer);
  keep_compressed(layer);
  layer.kept.push_back({"queries", "e T a (n + r)", n_.e * n_.T * n_.a * (n_.n + n_.r)});
  layer.kept.push_back(
      {"queries, keys, values", "e T (a + 1) (c + r)", n_.e * n_.T * (n_.a + 1) * of_key});
  layer.kept.push_back({"sums of compressed values", "e T a c", n_.e * n_.T * n_.a * n_.c});
  add_further(layer, n_.a * n_.v);
  finish_attention(layer, of_key, {"a v", n_.a * n_.v});
  return layer;
}

void MixerDeriver::add_further(LayerDerivation& layer, SaturatingCount projected) const {
  if (shape_.index && shape_.index->is_own) add_index(layer);
  if (shape_.output_gate > 0) add_gate(layer, projected);
  add_tensors(layer, shape_.mixer_tensors);
  add_norms_behind(layer, shape_.mixer_norms);
  add_streams(layer);
}

void MixerDeriver::add_index(LayerDerivation& layer) const {
  const KeyIndex& index = *shape_.index;
  const std::int64_t inputs = index.of_compressed ? shape_.latent ? shape_.latent->query_rank
                                                                  : shape_.compressed->query_rank
                                                  : shape_.hidden;
  add_matrix(layer, "queries of the index", inputs, index.heads * index.size);
  if (shape_.mixer != Mixer::compressed)
    add_matrix(layer, "keys of the index", shape_.hidden, index.size);
  if (index.is_weighted) add_matrix(layer, "weights of its heads", shape_.hidden, index.heads);
  layer.parameters.push_back({"its norms", std::to_string(index.norm_numbers), index.norm_numbers});
  const std::int64_t stride =
      shape_.compressed ? std::max<std::int64_t>(1, shape_.compressed->stride) : 1;
  const std::int64_t of_pair = index.heads * (index.size + (index.is_weighted ? 1 : 0));
  const SaturatingCount pairs = n_.T * (options_.sequence / stride);
  layer.flops.push_back(
      {{"scores of the index",
        fmt::format("{} {}", stride > 1 ? fmt::format("T s / {}", stride) : "T s", of_pair),
        pairs * of_pair},
       4,
       false});
  keep(layer, "queries and keys of the index, weights",
       index.heads * index.size + index.size + (index.is_weighted ? index.heads : 0));
}

void MixerDeriver::add_gate(LayerDerivation& layer, SaturatingCount projected) const {
  add_matrix(layer, "gate of the output", shape_.hidden, shared(shape_.output_gate));
  keep(layer, "gate, and the output before it", shared(shape_.output_gate) + projected.value());
}

LayerDerivation MixerDeriver::compressed_attention() const {
  LayerDerivation layer;
  layer.role = "attention";
  const CompressedAttention& own = *shape_.compressed;
  const std::int64_t d = shape_.head_dim, a = n_.a.value();
  add_norm(layer);
  add_matrix(layer, "queries, compressed", shape_.hidden, own.query_rank);
  layer.parameters.push_back({"their norm", std::to_string(own.query_rank), own.query_rank});
  add_matrix(layer, "queries", own.query_rank, a * d);
  add_matrix(layer, "keys, which are values", shape_.hidden, d);
  layer.parameters.push_back({"their norm", std::to_string(d), d});
  const std::int64_t width = (own.overlaps ? 2 : 1) * d;
  if (own.stride > 0) {
    add_matrix(layer, "keys for several tokens, and their weights", shape_.hidden, 2 * width);
    layer.parameters.push_back({"their positions and norm",
                                fmt::format("{} {} + {}", own.stride, width, d),
                                own.stride * width + d});
  }
  if (shape_.index) {
    const std::int64_t of_index = (own.overlaps ? 2 : 1) * shape_.index->size;
    add_matrix(layer, "keys of the index, and their weights", shape_.hidden, 2 * of_index);
    layer.parameters.push_back(
        {"their positions", fmt::format("{} {}", own.stride, of_index), own.stride * of_index});
    keep(layer, "keys of the index, and their weights", 2 * of_index);
  }
  add_scores(layer, "Z", n_.Z, d, d, options_.sequence);
  if (own.stride > 0) {
    const std::int64_t keys = std::max<std::int64_t>(1, options_.sequence / own.stride);
    const std::int64_t chosen = shape_.index ? std::min(shape_.index->chosen, keys) : keys;
    // Twice the pairs: 2 k n - k^2 of a sample's n keys, each `stride` times.
    const SaturatingCount pairs =
        options_.batch * SaturatingCount{options_.sequence} * chosen * (2 * keys - chosen);
    const SaturatingCount reached =
        pairs.is_exact() ? SaturatingCount{pairs.value() / keys} : pairs;
    add_scores(layer, fmt::format("{}", reached.value()), reached, d, d, keys);
  }
  add_matrix(layer, "projection of groups of heads", a * d / shared(own.output_groups),
             shared(own.output_groups) * own.output_rank);
  add_matrix(layer, "projection", shared(own.output_groups) * own.output_rank, shape_.hidden);
  add_norm_output(layer);
  keep(layer, "compressed queries, before and behind their norm", 2 * own.query_rank);
  keep(layer, "queries before their norm", a * d);
  layer.kept.push_back(
      {"queries, keys, values", fmt::format("e T {}", a * d + d), n_.e * n_.T * (a * d + d)});
  keep(layer, "keys before their norm", d);
  if (own.stride > 0) keep(layer, "keys for several tokens, and their weights", 2 * width);
  keep(layer, "what groups of heads make", shared(own.output_groups) * own.output_rank);
  add_further(layer, {});
  finish_attention(layer, d, {"a d", n_.a * d});
  return layer;
}

LayerDerivation MixerDeriver::scan() const {
  LayerDerivation layer;
  layer.role = "attention";
  const Scan& own = *shape_.scan;
  const std::int64_t h = shape_.hidden, keys = shared(own.keys()), values = shared(own.values());
  const std::int64_t heads = shared(own.heads), key_heads = shared(own.key_heads);
  const std::int64_t channels = 2 * keys + values;
  const bool is_kimi = own.kind == ScanKind::kimi_delta;
  const bool is_mamba = own.kind == ScanKind::mamba2;
  add_norm(layer);
  const std::int64_t scalars = is_mamba || is_kimi ? heads : 2 * heads;
  const std::int64_t gate = is_kimi && own.gate_rank > 0 ? 0 : values;
  add_matrix(layer, "keys, queries, values, gate, steps", h, channels + gate + scalars);
  std::int64_t ranks = 0;
  if (is_kimi) {  // the decay of each number of a key
    add_matrix(layer, "decay, compressed", h, own.key_size);
    add_matrix(layer, "decay", own.key_size, keys);
    ranks += own.key_size + keys;
  }
  if (own.gate_rank > 0) {
    add_matrix(layer, "gate, compressed", h, own.gate_rank);
    add_matrix(layer, "gate", own.gate_rank, values);
    ranks += own.gate_rank + values;
  }
  const std::int64_t kernel = own.convolution + (own.has_convolution_bias ? 1 : 0);
  layer.parameters.push_back(
      {"convolution", fmt::format("{} {}", kernel, channels), kernel * channels});
  layer.flops.push_back({{"convolution", fmt::format("2 T {} {}", own.convolution, channels),
                          2 * n_.T * own.convolution * channels}});
  const std::int64_t decay = own.decay_numbers > 0 ? own.decay_numbers : heads;
  const std::int64_t steps = is_kimi ? keys : heads;
  const std::int64_t norm = is_mamba ? values : own.value_size;
  const std::int64_t skip = is_mamba ? heads : 0;
  layer.parameters.push_back({"decays, biases of steps, skips, norm",
                              fmt::format("{} + {} + {} + {}", decay, steps, skip, norm),
                              decay + steps + skip + norm});
  const ScanOp op{.batch = options_.batch,
                  .tokens = options_.sequence,
                  .heads = heads,
                  .key_heads = is_mamba ? key_heads : heads,
                  .key_size = own.key_size,
                  .value_size = own.value_size,
                  .chunk = own.chunk,
                  .delta = !is_mamba};
  const std::int64_t of_token = pairs_of_token(op);
  layer.flops.push_back({{fmt::format("scan in chunks of {}", std::min(op.chunk, op.tokens)),
                          fmt::format("2 T {}", of_token), 2 * n_.T * of_token},
                         6,
                         false});
  add_matrix(layer, "projection", values, h);
  if (own.has_bias)
    layer.parameters.push_back({"biases of both", fmt::format("{} + h", channels + gate + scalars),
                                channels + gate + scalars + h});
  add_norm_output(layer);
  keep(layer, "products of the input", channels + gate + scalars + ranks);
  keep(layer, "output of the convolution", channels);
  keep(layer, "output of the scan", values);
  layer.kept.push_back({"input of the projection", fmt::format("{} T {}", of_linear(), values),
                        n_.l * n_.T * values});
  add_tensors(layer, shape_.mixer_tensors);
  add_norms_behind(layer, shape_.mixer_norms);
  finish_mixer(layer);
  return layer;
}

LayerDerivation MixerDeriver::linear() const {
  LayerDerivation layer;
  layer.role = "attention";
  add_norm(layer);
  add_product(layer, "matrix in the place of attention", "h u", n_.h * n_.u);
  add_norm_output(layer);
  finish_mixer(layer);
  return layer;
}

void MixerDeriver::add_matrix(LayerDerivation& layer, const std::string& what, std::int64_t inputs,
                              std::int64_t outputs) const {
  add_product(layer, what, fmt::format("{} {}", inputs, outputs),
              SaturatingCount{inputs} * outputs);
}

void MixerDeriver::keep(LayerDerivation& layer, const std::string& what,
                        std::int64_t numbers) const {
  layer.kept.push_back({what, fmt::format("e T {}", numbers), n_.e * n_.T * numbers});
}

}  // namespace plumbline
