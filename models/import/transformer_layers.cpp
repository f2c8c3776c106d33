// One function for each kind of layer.
//
// SPDX-License-Identifier: MIT
#include "models/import/transformer_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/import/layer_builder.h"

namespace plumbline {
namespace {

/// The kinds of layers.
class Deriver : LayerBuilder {
 public:
  Deriver(const TransformerShape& shape, const TransformerOptions& options)
      : LayerBuilder(shape, options) {}

  LayerDerivation embedding() const {
    LayerDerivation layer;
    layer.kind = "embedding";
    layer.parameters.push_back({"table of tokens", "V h", n_.V * n_.h});
    if (shape_.learned_positions)
      layer.parameters.push_back({"table of positions", "P h", n_.P * n_.h});
    add_kept_tokens(layer, "output");
    layer.output = hidden_bytes();
    // A row is read and written for each token; the gradient of the whole table is written.
    layer.forward_traffic = hidden_bytes() * (shape_.learned_positions ? 3 : 2);
    layer.weight_traffic = hidden_bytes() + n_.e * sum(layer.parameters);
    if (by_tokens()) {
      layer.gathered = whole_bytes();
      layer.input_gathered = whole_bytes();  // for the gradients of the table
    } else if (is_shared()) {
      layer.all_reduced = whole_bytes();
    }
    if (dropout_.embedding.value_or(0) > 0) drop_tokens(layer);
    return layer;
  }

  LayerDerivation attention() const {
    return shape_.latent ? latent_attention() : plain_attention();
  }

  LayerDerivation plain_attention() const {
    LayerDerivation layer;
    layer.kind = "attention";
    const SaturatingCount inputs = (n_.a + 2 * n_.g) * n_.d;
    add_norm(layer);
    add_product(layer, "queries, keys, values", "h (a + 2 g) d", n_.h * inputs);
    if (shape_.attention_input_bias)
      layer.parameters.push_back({"their biases", "(a + 2 g) d", inputs});
    if (shape_.query_key_norm) {
      const std::int64_t rows = shape_.layer_norm ? 4 : 2;
      layer.parameters.push_back({"norms of q and k", fmt::format("{} d", rows), rows * n_.d});
    }
    const SaturatingCount pairs = n_.T * n_.s * n_.a * n_.d;
    if (options_.flash_attention) {
      // Dao 2023 (FlashAttention-2), section 4.1: half the pairs are masked; the backward computes
      // the scores again and takes 2.5 times as many FLOPs.
      layer.flops.push_back({{"scores and their sums", "2 T s a d", 2 * pairs}, 5, false});
    } else {
      layer.flops.push_back({{"scores and their sums", "4 T s a d", 4 * pairs}, 4, false});
    }
    add_product(layer, "projection", "a d h", n_.a * n_.d * n_.h);
    if (shape_.attention_output_bias) layer.parameters.push_back({"its bias", "h", n_.h});

    add_norm_output(layer);
    keep_heads(layer);
    if (shape_.query_key_norm)
      layer.kept.push_back(
          {"q and k before their norms", "e T (a + g) d", n_.e * n_.T * (n_.a + n_.g) * n_.d});
    finish_attention(layer, n_.d, {"a d", n_.a * n_.d});
    const SaturatingCount sent_keys = key_repeats() * n_.g;
    send_context(layer, {"keys and values", "2 g d", 2 * n_.g * n_.d},
                 {"queries, keys, values and what attention makes of them",
                  fmt::format("2 (a + {}) d", keys_symbol()), 2 * (n_.a + sent_keys) * n_.d});
    return layer;
  }

  /// In training keys and values are made of the compressed tokens, as queries are.
  LayerDerivation latent_attention() const {
    LayerDerivation layer;
    layer.kind = "attention";
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
      layer.parameters.push_back({"biases of what is compressed",
                                  compressed ? "q + c + r" : "c + r",
                                  (compressed ? n_.q : 0) + n_.c + n_.r});
    }
    // A product over n + r numbers makes the scores, one over v their sums, and the backward of
    // each takes two; with flash attention as in plain_attention, and the scores once more.
    const SaturatingCount pairs = n_.T * n_.s * n_.a;
    const std::int64_t both = options_.flash_attention ? 1 : 2;  // halves of the pairs
    const std::string_view twice = options_.flash_attention ? "" : "2 ";
    layer.flops.push_back(
        {{"scores", fmt::format("{}T s a (n + r)", twice), both * pairs * of_query},
         options_.flash_attention ? 6 : 4,
         false});
    layer.flops.push_back(
        {{"their sums", fmt::format("{}T s a v", twice), both * pairs * n_.v}, 4, false});
    add_product(layer, "projection", "a v h", n_.a * n_.v * n_.h);
    if (shape_.attention_output_bias) layer.parameters.push_back({"its bias", "h", n_.h});

    add_norm_output(layer);
    const bool fp8 = options_.fp8_linear;
    if (compressed) {
      layer.kept.push_back({"compressed queries, before and behind their norm",
                            fp8 ? "(e + l) T q" : "2 e T q", (n_.e + n_.l) * n_.T * n_.q});
    }
    layer.kept.push_back({"compressed keys and values, the same",
                          fp8 ? "T (e (c + r) + l c)" : "e T (2 c + r)",
                          n_.T * (n_.e * (n_.c + n_.r) + n_.l * n_.c)});
    layer.kept.push_back({"queries, keys, values", "e T a (2 n + 2 r + v)",
                          n_.e * n_.T * n_.a * (2 * of_query + n_.v)});
    recompute_heads(layer, compressed);
    finish_attention(layer, of_query, {"a v", n_.a * n_.v});
    send_context(layer, {"keys and values", "a (n + r + v)", n_.a * (of_query + n_.v)},
                 {"queries, keys, values and what attention makes of them", "2 a (n + r + v)",
                  2 * n_.a * (of_query + n_.v)});
    return layer;
  }

  LayerDerivation dense_mlp() const {
    LayerDerivation layer;
    layer.kind = "mlp";
    const bool has_norm = shape_.order != BlockOrder::shared_norm;
    if (has_norm) add_norm(layer);
    const std::int64_t matrices = shape_.gated ? 3 : 2;
    layer.parameters.push_back({shape_.gated ? "gate, up, down" : "up, down",
                                fmt::format("{} h f", matrices), matrices * n_.h * n_.f});
    if (shape_.feed_forward_bias) {
      layer.parameters.push_back(
          {"their biases", shape_.gated ? "2 f + h" : "f + h", (matrices - 1) * n_.f + n_.h});
    }
    add_linear(layer,
               {shape_.gated ? "gate, up, down" : "up, down", fmt::format("{} T h f", 2 * matrices),
                2 * matrices * n_.T * n_.h * n_.f},
               layer_part::kDenseMlp);
    if (has_norm) add_norm_output(layer);
    keep_inner(layer, "", "T f", n_.T * n_.f, layer_part::kDenseActivation, layer_part::kDenseMlp);
    layer.again_reads += again(layer_part::kDenseMlp,
                               n_.e * matrices * n_.h * n_.f + 2 * hidden_bytes());  // in and out
    add_kept_tokens(layer, "output, the residual added");
    finish(layer, sum(layer.parameters), {});
    drop_residual(layer);
    share_products(layer, layer_part::kDenseMlp, has_norm, true);
    return layer;
  }

  LayerDerivation experts_mlp() const {
    LayerDerivation layer;
    layer.kind = "moe";
    add_experts(layer);
    multiply_experts(layer);
    keep_experts(layer);
    finish_experts(layer);
    drop_residual(layer);
    send_tokens(layer);
    return layer;
  }

  /// A module that predicts the token behind the one that the module before it predicts, with a
  /// block as `block`: what that has made and the embedding of its token, each normalised, are
  /// projected to one, and go through the block and a norm (DeepSeek-AI 2024, "DeepSeek-V3",
  /// section 2.2). It hands on what `passed` others have made, too: the head is shared by all.
  LayerDerivation mtp_module(const LayerDerivation& block, std::int64_t passed) const {
    LayerDerivation layer;
    add_norm(layer);
    const SaturatingCount table = n_.V * n_.h;
    layer.parameters.push_back({"a copy of the embedding's table", "V h", table});
    layer.borrowed = table;
    add_norm(layer);
    add_product(layer, "projection of both", "2 h u", 2 * n_.h * n_.u);
    add_kept_tokens(layer, "the token's embedding");
    add_norm_output(layer, layer_part::kOtherNorm);
    add_norm_output(layer, layer_part::kOtherNorm);
    add_kept_tokens(layer, "output of the projection");
    add_norm(layer);  // behind the block, for the head
    add_norm_output(layer, n_.e, "e", layer_part::kOtherNorm);
    finish(layer, 3 * n_.h + 2 * n_.h * n_.u, {});
    layer.weight_traffic += n_.e * table;  // of it only the gradient is moved as a whole
    // The embedding is added up over the group, both inputs of the projection are gathered in front
    // of it, and its columns behind.
    layer.forward_traffic += hidden_bytes();  // the embedding's rows
    if (by_tokens()) {
      layer.gathered = 4 * whole_bytes();
      layer.input_gathered = 4 * whole_bytes();
      for (SaturatingCount* traffic :
           {&layer.forward_traffic, &layer.input_traffic, &layer.weight_traffic})
        *traffic += 4 * whole_bytes();
    } else if (is_shared()) {
      layer.all_reduced = whole_bytes();
      layer.gathered = whole_bytes();
      layer.input_all_reduced = 2 * whole_bytes();
    }
    layer = joined(std::move(layer), block);
    layer.kind = "mtp";
    layer.output = (passed + 1) * hidden_bytes();
    return layer;
  }

  LayerDerivation head() const {
    LayerDerivation layer;
    layer.kind = "head";
    add_norm(layer);
    const SaturatingCount matrix = n_.h * n_.V;
    const SaturatingCount outputs = n_.m + 1;  // of the blocks, and of each module
    layer.parameters.push_back(
        {shape_.tied ? "a copy of the embedding's table" : "matrix", "h V", matrix});
    if (shape_.tied) layer.borrowed = matrix;
    if (shape_.head_bias) layer.parameters.push_back({"its bias", "V", n_.V});
    const std::string of_all = n_.m.value() > 0 ? " (m + 1)" : "";
    layer.flops.push_back({{"matrix", "2" + of_all + " T h V", 2 * outputs * n_.T * matrix}});
    add_norm_output(layer, n_.e, "e", layer_part::kOtherNorm);
    const SaturatingCount logits = outputs * n_.T * n_.V;
    if (options_.fused_loss.value_or(true)) {
      layer.kept.push_back({"logits for the loss, fp32", "4" + of_all + " T V", 4 * logits});
    } else {
      layer.kept.push_back({"logits", "e" + of_all + " T V", n_.e * logits});
      layer.kept.push_back(
          {"logarithms of their softmax, fp32", "4" + of_all + " T V", 4 * logits});
    }
    finish(layer, sum(layer.parameters), {});
    share_products(layer, layer_part::kNone);
    layer.output = {};
    // The group adds up the loss alone: a number for each token.
    layer.all_reduced = {};
    if (by_tokens()) {
      layer.gathered = outputs * whole_bytes();
      layer.input_gathered = outputs * whole_bytes();
      for (SaturatingCount* traffic :
           {&layer.forward_traffic, &layer.input_traffic, &layer.weight_traffic})
        *traffic += 2 * n_.m * whole_bytes();
    } else if (is_shared()) {
      layer.input_all_reduced = outputs * whole_bytes();
    }
    return layer;
  }

 private:
  /// Numbers of an expert.
  SaturatingCount expert_numbers() const { return 3 * n_.h * n_.x; }
  /// The parameters of the shared experts together.
  SaturatingCount shared_numbers() const { return 3 * n_.h * n_.y; }
  /// The numbers of a device's tokens, with a copy for each of their experts.
  SaturatingCount routed_numbers() const { return n_.k * n_.M * n_.h; }
  SaturatingCount routed_bytes() const { return n_.e * routed_numbers(); }
  std::string routed_symbol() const { return n_.M.value() == n_.T.value() ? "T" : "R"; }
  /// Devices that divide an expert: each of them has the tokens of all.
  std::int64_t expert_parts() const { return is_exchanged() ? options_.expert_tensor_parallel : 1; }
  /// The symbol for the tokens of all of these.
  std::string gathered_symbol() const {
    return expert_parts() > 1 ? fmt::format("{} {}", expert_parts(), routed_symbol())
                              : routed_symbol();
  }

  /// The matrices of router and experts.
  void add_experts(LayerDerivation& layer) const {
    add_norm(layer);
    layer.parameters.push_back({"router", "h E", n_.h * n_.E});
    layer.parameters.push_back({"gate, up, down of the experts",
                                is_exchanged() ? "3 L h x" : "3 E h x", n_.L * expert_numbers(),
                                is_exchanged()});
    if (has_shared())
      layer.parameters.push_back(
          {"gate, up, down of the shared experts", "3 h y", shared_numbers()});
    const std::int64_t unused = shape_.experts - shape_.experts_per_token;
    layer.idle_parameters = unused * expert_numbers();
  }

  /// Their products.
  void multiply_experts(LayerDerivation& layer) const {
    const std::int64_t parts = expert_parts();
    const std::string m = routed_symbol();
    const std::string gathered = gathered_symbol();
    const SaturatingCount routed = 2 * n_.M * n_.h * n_.E;
    layer.flops.push_back({{"router", "2 " + m + " h E", routed}});
    layer.recompute_flops += again(layer_part::kExperts, routed);
    add_linear(layer,
               {"gate, up, down of k experts", "6 k " + gathered + " h x",
                parts * 6 * n_.k * n_.M * n_.h * n_.x},
               layer_part::kExperts);
    if (has_shared())
      add_linear(layer,
                 {"gate, up, down of the shared experts", "6 T h y", 2 * n_.T * shared_numbers()},
                 layer_part::kSharedExperts);
  }

  /// Adds the tensors that experts keep until the backward.
  void keep_experts(LayerDerivation& layer) const {
    const std::int64_t parts = expert_parts();
    const std::string m = routed_symbol();
    const std::string gathered = gathered_symbol();
    add_norm_output(layer, n_.e, "e");  // the router multiplies it as it is
    const auto keep_routed = [&](std::string what, std::string formula, SaturatingCount bytes) {
      layer.kept.push_back(
          {std::move(what), std::move(formula), bytes, false, again(layer_part::kExperts, bytes)});
    };
    keep_routed("the router's shares, fp32", "4 " + m + " E", 4 * n_.M * n_.E);
    keep_routed("tokens as each expert gets them", fmt::format("k {} {} h", of_linear(), gathered),
                parts * n_.l * routed_numbers());
    keep_inner(layer, "", "k " + gathered + " x", parts * n_.k * n_.M * n_.x,
               layer_part::kExpertActivation, layer_part::kExperts);
    if (!options_.fused_swiglu)
      keep_routed("outputs of the experts", "k e " + m + " h", routed_bytes());
    if (has_shared()) {
      if (options_.fp8_linear) {
        add_norm_output(layer, layer_part::kSharedInput);
        layer.kept.back().what += ", for the shared experts";
      }
      keep_inner(layer, " of the shared experts", "T y", n_.T * n_.y, layer_part::kSharedActivation,
                 layer_part::kSharedExperts);
    }
    add_kept_tokens(layer, "output, the residual added");
  }

  /// Adds the bytes that experts read and write.
  void finish_experts(LayerDerivation& layer) const {
    // With tokens enough every expert has some.
    const SaturatingCount choices = expert_parts() * n_.k * n_.M;
    const std::int64_t busy = std::min(choices.value(), n_.L.value());
    const SaturatingCount own = n_.h * n_.E + busy * expert_numbers();
    const SaturatingCount touched = n_.h + own + shared_numbers();
    layer.again_reads += again(layer_part::kExperts, n_.e * own) +
                         again(layer_part::kSharedExperts, n_.e * shared_numbers());
    if (options_.fused_swiglu) {  // outputs are only passed on, their gradients read twice
      finish(layer, touched, 2 * routed_bytes());
      layer.weight_traffic += routed_bytes();
    } else {
      finish(layer, touched, {});
    }
  }

  /// Adds the bytes that devices send each other in front of experts and behind.
  void send_tokens(LayerDerivation& layer) const {
    // Whole experts take their own tokens as they are; shared ones are products as any other.
    if (!is_exchanged() || has_shared())
      share_products(layer, has_shared() ? layer_part::kSharedExperts : layer_part::kExperts);
    if (is_exchanged())  // there and back
      layer.exchanged =
          ((options_.fp8_dispatch ? SaturatingCount{1} : n_.e) + n_.e) * routed_numbers();
    layer.again_exchanged = again(layer_part::kExperts, layer.exchanged);
    const std::int64_t parts = expert_parts();
    if (parts > 1) {
      layer.expert_gathered = parts * layer.exchanged;
      // The sums are written and read before they are scattered, and their gradients gathered.
      layer.forward_traffic += 2 * parts * routed_bytes();
      layer.input_traffic += 2 * parts * routed_bytes();
      layer.again_expert_gathered = again(layer_part::kExperts, layer.expert_gathered);
      layer.again_reads += again(layer_part::kExperts, 2 * parts * routed_bytes());
    }
  }
};

}  // namespace

std::vector<LayerDerivation> derive_layers(const TransformerShape& shape,
                                           const TransformerOptions& options) {
  const Deriver deriver(shape, options);
  const LayerDerivation attention = deriver.attention();
  std::vector<LayerDerivation> layers;
  layers.reserve(2 * static_cast<std::size_t>(shape.blocks) + 2);
  layers.push_back(deriver.embedding());
  for (std::int64_t i = 0; i < shape.blocks; ++i) {
    LayerDerivation mlp = shape.has_experts(i) ? deriver.experts_mlp() : deriver.dense_mlp();
    if (options.split_blocks) {
      layers.push_back(attention);
      layers.push_back(std::move(mlp));
    } else {
      layers.push_back(joined(attention, mlp));
    }
  }
  if (options.mtp) {
    const bool has_experts = shape.has_experts(shape.blocks - 1);
    const LayerDerivation block =
        joined(attention, has_experts ? deriver.experts_mlp() : deriver.dense_mlp());
    for (std::int64_t i = 0; i < shape.further_predictions; ++i)
      layers.push_back(deriver.mtp_module(block, i + 1));
  }
  layers.push_back(deriver.head());
  return layers;
}

SaturatingCount replicated_parameters(const LayerDerivation& layer,
                                      const TransformerOptions& options) {
  SaturatingCount replicated;
  if (options.group() == options.tensor_parallel) return replicated;
  for (const Term& term : layer.parameters) {
    if (!term.is_split) replicated += term.value;
  }
  return replicated;
}

SaturatingCount replicated_of(const TransformerShape& shape, TransformerOptions options) {
  options.tensor_parallel = 1;
  options.sequence_parallel = false;
  SaturatingCount replicated;
  SaturatingCount borrowed;
  for (const LayerDerivation& layer : derive_layers(shape, options)) {
    replicated += replicated_parameters(layer, options);
    borrowed += layer.borrowed;
  }
  return {replicated.value() - borrowed.value()};
}

}  // namespace plumbline
