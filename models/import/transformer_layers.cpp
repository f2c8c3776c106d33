// One function for each kind of layer.
// It has over 500 lines: all kinds of layers share the symbols of the formulas.
//
// SPDX-License-Identifier: MIT
#include "models/import/transformer_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace plumbline {
namespace {

/// The sizes on one device, as the formulas name them.
struct Symbols {
  SaturatingCount e;  // bytes of a number
  SaturatingCount l;  // that a linear layer multiplies
  SaturatingCount T;  // tokens of a micro-batch
  SaturatingCount R;  // those between products
  SaturatingCount M;  // those that it sends to experts
  SaturatingCount s;  // tokens of a sample
  SaturatingCount h;  // hidden
  SaturatingCount a;  // heads
  SaturatingCount g;  // key-value heads
  SaturatingCount d;  // of a head
  SaturatingCount f;  // inner width of a dense MLP
  SaturatingCount x;  // inner width of an expert
  SaturatingCount E;  // experts
  SaturatingCount k;  // experts of a token
  SaturatingCount L;  // of them on each device
  SaturatingCount y;  // inner width of the shared experts
  SaturatingCount q;  // rank of compressed queries
  SaturatingCount c;  // of compressed keys and values
  SaturatingCount n;  // of a head of queries and keys, not rotated
  SaturatingCount r;  // rotated
  SaturatingCount v;  // of a head of values
  SaturatingCount V;  // vocabulary
  SaturatingCount P;  // learned positions
  SaturatingCount u;  // columns of the projection in front of a further block
  SaturatingCount m;  // modules that predict further tokens
};

Symbols symbols_of(const TransformerShape& shape, const TransformerOptions& options) {
  const std::int64_t t = options.tensor_parallel;
  const LatentAttention latent = shape.latent.value_or(LatentAttention{});
  const std::int64_t between = options.own_tokens() / (options.sequence_parallel ? t : 1);
  return {.e = bytes_of(options.dtype),
          .l = bytes_of(options.fp8_linear ? NumberFormat::fp8 : options.dtype),
          .T = options.own_tokens(),
          .R = between,
          .M = options.expert_parallel > 1 ? between : options.own_tokens(),
          .s = options.sequence,
          .h = shape.hidden,
          .a = shape.heads / t,
          .g = shape.key_value_heads / t,
          .d = shape.head_dim,
          .f = shape.feed_forward / t,
          .x = shape.expert_feed_forward /
               (options.expert_parallel > 1 ? options.expert_tensor_parallel : t),
          .E = shape.experts,
          .k = shape.experts_per_token,
          .L = shape.experts / options.expert_parallel,
          .y = shape.shared_feed_forward / t,
          .q = latent.query_rank,
          .c = latent.key_value_rank,
          .n = latent.plain,
          .r = latent.rotated,
          .v = latent.value,
          .V = (shape.vocabulary + t - 1) / t,
          .P = shape.learned_positions ? shape.positions : 0,
          .u = (shape.hidden + t - 1) / t,
          .m = options.mtp ? shape.further_predictions : 0};
}

/// Two layers as one: a block of attention and MLP, unless its kind is set.
LayerDerivation joined(LayerDerivation first, const LayerDerivation& second) {
  first.kind = second.kind == "moe" ? "moe_block" : "block";
  first.parameters.insert(first.parameters.end(), second.parameters.begin(),
                          second.parameters.end());
  first.flops.insert(first.flops.end(), second.flops.begin(), second.flops.end());
  first.kept.insert(first.kept.end(), second.kept.begin(), second.kept.end());
  first.recompute_flops += second.recompute_flops;
  first.recompute_fp8_flops += second.recompute_fp8_flops;
  first.again_reads += second.again_reads;
  first.again_all_reduced += second.again_all_reduced;
  first.again_gathered += second.again_gathered;
  first.again_exchanged += second.again_exchanged;
  first.again_expert_gathered += second.again_expert_gathered;
  first.again_keys_and_values += second.again_keys_and_values;
  first.again_exchanged_heads += second.again_exchanged_heads;
  first.dropped += second.dropped;
  first.idle_parameters += second.idle_parameters;
  first.borrowed += second.borrowed;
  first.output = second.output;
  first.forward_traffic += second.forward_traffic;
  first.input_traffic += second.input_traffic;
  first.weight_traffic += second.weight_traffic;
  first.all_reduced += second.all_reduced;
  first.input_all_reduced += second.input_all_reduced;
  first.gathered += second.gathered;
  first.input_gathered += second.input_gathered;
  first.exchanged += second.exchanged;
  first.expert_gathered += second.expert_gathered;
  if (second.keys_and_values.value.value() > 0) first.keys_and_values = second.keys_and_values;
  if (second.exchanged_heads.value.value() > 0) first.exchanged_heads = second.exchanged_heads;
  return first;
}

class Deriver {
 public:
  Deriver(const TransformerShape& shape, const TransformerOptions& options)
      : shape_(shape),
        options_(options),
        dropout_(dropout_of(shape, options)),
        n_(symbols_of(shape, options)) {}

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
    // Of n + r and v numbers: a product for the scores and one for their sums, and for the backward
    // of each two; with flash attention as in plain_attention, and the scores once more.
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
    add_norm(layer);
    const SaturatingCount expert = 3 * n_.h * n_.x;
    layer.parameters.push_back({"router", "h E", n_.h * n_.E});
    layer.parameters.push_back({"gate, up, down of the experts",
                                is_exchanged() ? "3 L h x" : "3 E h x", n_.L * expert,
                                is_exchanged()});
    const SaturatingCount shared = 3 * n_.h * n_.y;
    if (has_shared())
      layer.parameters.push_back({"gate, up, down of the shared experts", "3 h y", shared});
    const std::int64_t unused = shape_.experts - shape_.experts_per_token;
    layer.idle_parameters = unused * expert;
    const std::string m = n_.M.value() == n_.T.value() ? "T" : "R";
    // Those of the devices that divide an expert, too.
    const std::int64_t parts = is_exchanged() ? options_.expert_tensor_parallel : 1;
    const std::string gathered = parts > 1 ? fmt::format("{} {}", parts, m) : m;
    const SaturatingCount routed = 2 * n_.M * n_.h * n_.E;
    layer.flops.push_back({{"router", "2 " + m + " h E", routed}});
    layer.recompute_flops += again(layer_part::kExperts, routed);
    add_linear(layer,
               {"gate, up, down of k experts", "6 k " + gathered + " h x",
                parts * 6 * n_.k * n_.M * n_.h * n_.x},
               layer_part::kExperts);
    if (has_shared())
      add_linear(layer, {"gate, up, down of the shared experts", "6 T h y", 2 * n_.T * shared},
                 layer_part::kSharedExperts);
    add_norm_output(layer, n_.e, "e");  // the router multiplies it as it is
    const SaturatingCount numbers = n_.k * n_.M * n_.h;
    const auto keep_routed = [&](std::string what, std::string formula, SaturatingCount bytes) {
      layer.kept.push_back(
          {std::move(what), std::move(formula), bytes, false, again(layer_part::kExperts, bytes)});
    };
    keep_routed("the router's shares, fp32", "4 " + m + " E", 4 * n_.M * n_.E);
    keep_routed("tokens as each expert gets them", fmt::format("k {} {} h", of_linear(), gathered),
                parts * n_.l * numbers);
    keep_inner(layer, "", "k " + gathered + " x", parts * n_.k * n_.M * n_.x,
               layer_part::kExpertActivation, layer_part::kExperts);
    const SaturatingCount outputs = n_.e * numbers;
    if (!options_.fused_swiglu) keep_routed("outputs of the experts", "k e " + m + " h", outputs);
    if (has_shared()) {
      if (options_.fp8_linear) {
        add_norm_output(layer, layer_part::kSharedInput);
        layer.kept.back().what += ", for the shared experts";
      }
      keep_inner(layer, " of the shared experts", "T y", n_.T * n_.y, layer_part::kSharedActivation,
                 layer_part::kSharedExperts);
    }
    add_kept_tokens(layer, "output, the residual added");
    // With tokens enough every expert has some.
    const SaturatingCount choices = parts * n_.k * n_.M;
    const std::int64_t busy = std::min(choices.value(), n_.L.value());
    const SaturatingCount own = n_.h * n_.E + busy * expert;
    const SaturatingCount touched = n_.h + own + shared;
    layer.again_reads +=
        again(layer_part::kExperts, n_.e * own) + again(layer_part::kSharedExperts, n_.e * shared);
    if (options_.fused_swiglu) {  // outputs are only passed on, their gradients read twice
      finish(layer, touched, 2 * outputs);
      layer.weight_traffic += outputs;
    } else {
      finish(layer, touched, {});
    }
    drop_residual(layer);
    // Whole experts take their own tokens as they are; shared ones are products as any other.
    if (!is_exchanged() || has_shared())
      share_products(layer, has_shared() ? layer_part::kSharedExperts : layer_part::kExperts);
    if (is_exchanged())  // there and back
      layer.exchanged = ((options_.fp8_dispatch ? SaturatingCount{1} : n_.e) + n_.e) * numbers;
    layer.again_exchanged = again(layer_part::kExperts, layer.exchanged);
    if (parts > 1) {
      layer.expert_gathered = parts * layer.exchanged;
      // The sums are written and read before they are scattered, and their gradients gathered.
      layer.forward_traffic += 2 * parts * outputs;
      layer.input_traffic += 2 * parts * outputs;
      layer.again_expert_gathered = again(layer_part::kExperts, layer.expert_gathered);
      layer.again_reads += again(layer_part::kExperts, 2 * parts * outputs);
    }
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
    // Of its output the loss alone: a number for each token.
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
  bool is_shared() const { return options_.tensor_parallel > 1; }
  bool is_exchanged() const { return options_.expert_parallel > 1; }
  bool has_shared() const { return shape_.shared_feed_forward > 0; }
  bool by_tokens() const { return options_.sequence_parallel; }
  /// Of all tokens, as products take them and add them up.
  SaturatingCount whole_bytes() const { return n_.e * n_.T * n_.h; }
  /// Of those that a device keeps between products.
  SaturatingCount hidden_bytes() const { return n_.e * n_.R * n_.h; }
  std::int64_t inner_count() const {
    if (!shape_.gated) return 2;
    return options_.fused_swiglu ? 3 : 4;
  }
  std::string inner_tensors() const {
    if (!shape_.gated) return "up, its activation";
    return options_.fused_swiglu ? "gate, up, their product"
                                 : "gate, its activation, up, their product";
  }

  /// A matrix of `count` numbers, and the product of every token with it.
  void add_product(LayerDerivation& layer, const std::string& what, const std::string& formula,
                   SaturatingCount count) const {
    layer.parameters.push_back({what, formula, count});
    add_linear(layer, {what, "2 T " + formula, 2 * n_.T * count});
  }
  void add_linear(LayerDerivation& layer, Term forward,
                  const LayerPart& part = layer_part::kNone) const {
    run_again(layer, part, forward.value);
    layer.flops.push_back({.forward = std::move(forward), .in_fp8 = options_.fp8_linear});
  }
  /// What selective recomputation makes again of a part.
  SaturatingCount again(const LayerPart& part, SaturatingCount count) const {
    return options_.makes_again(part) ? count : SaturatingCount{};
  }
  /// Adds the FLOPs of linear layers to those that selective recomputation runs again.
  void run_again(LayerDerivation& layer, const LayerPart& part, SaturatingCount flops) const {
    layer.recompute_flops += again(part, flops);
    if (options_.fp8_linear) layer.recompute_fp8_flops += again(part, flops);
  }
  /// The symbol for the bytes of a number that linear layers multiply.
  std::string_view of_linear() const { return options_.fp8_linear ? "l" : "e"; }
  /// Numbers of a token.
  struct Width {
    std::string_view formula;
    SaturatingCount value;
  };
  /// How often keys and values stand on the devices that share a sample.
  std::int64_t key_repeats() const { return options_.repeats_of_keys(n_.g.value()); }
  std::string keys_symbol() const {
    return key_repeats() > 1 ? fmt::format("{} g", key_repeats()) : "g";
  }
  /// Queries, keys and values as attention takes them, repeated where it does so.
  void keep_heads(LayerDerivation& layer) const {
    const SaturatingCount heads = n_.a + 2 * key_repeats() * n_.g;
    const std::string keys = key_repeats() > 1 ? fmt::format("{} g", 2 * key_repeats()) : "2 g";
    layer.kept.push_back(
        {"queries, keys, values", fmt::format("e T (a + {}) d", keys), n_.e * n_.T * heads * n_.d});
  }

  /// What attention has behind its queries, keys and values, whatever their sizes; a head's keys
  /// have `of_key` numbers, what is projected `projected`: attention's own backward needs it, too.
  void finish_attention(LayerDerivation& layer, SaturatingCount of_key, Width projected) const {
    SaturatingCount passing;  // written and read, not kept
    if (options_.flash_attention) {
      const SaturatingCount sums = 4 * n_.T * n_.a;
      layer.kept.push_back({"sums of the softmax, fp32", "4 T a", sums, false,
                            again(layer_part::kCoreAttention, sums)});
    } else {
      const SaturatingCount scores = n_.e * n_.T * n_.s * n_.a;
      layer.kept.push_back(
          {"softmax", "e T s a", scores, false, again(layer_part::kScores, scores)});
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
      layer.kept.push_back({"output of attention, by heads",
                            fmt::format("e T {}", projected.formula), made, false,
                            again(layer_part::kCoreAttention, made)});
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

  /// What attention reads.
  static SaturatingCount queries_keys_values(const LayerDerivation& layer) {
    const auto found = std::find_if(layer.kept.begin(), layer.kept.end(), [](const Term& term) {
      return term.what == "queries, keys, values";
    });
    return found == layer.kept.end() ? SaturatingCount{} : found->value;
  }

  // ---- dropout: Korthikanti et al. 2022, section 4.1; shared as their 4.2 says ----

  /// Forward and backward each read and write the tensor and move its mask; to keep: the mask.
  /// `again`: that selective recomputation makes it once more.
  void drop(LayerDerivation& layer, const std::string& what, std::string_view formula,
            SaturatingCount numbers, bool again) const {
    layer.kept.push_back({"mask of " + what + "'s dropout", std::string(formula), numbers, false,
                          again ? numbers : SaturatingCount{}});
    layer.dropped += numbers;
    const SaturatingCount moved = (2 * n_.e + 1) * numbers;
    layer.forward_traffic += moved;
    layer.input_traffic += moved;
  }
  void drop_tokens(LayerDerivation& layer) const {
    drop(layer, "the output", by_tokens() ? "R h" : "T h", n_.R * n_.h, false);
  }
  void drop_residual(LayerDerivation& layer) const {
    if (dropout_.residual.value_or(0) > 0) drop_tokens(layer);
  }
  /// The softmax is kept for its own backward, and what is left of it for the product.
  void drop_scores(LayerDerivation& layer) const {
    const SaturatingCount numbers = n_.T * n_.s * n_.a;
    drop(layer, "the softmax", "T s a", numbers, options_.makes_again(layer_part::kScores));
    const SaturatingCount bytes = n_.e * numbers;
    layer.kept.push_back(
        {"softmax, dropped", "e T s a", bytes, false, again(layer_part::kScores, bytes)});
  }
  /// What the devices that share a sample send each other of one token: `keys`, or `exchanged` for
  /// that of other heads.
  void send_context(LayerDerivation& layer, const Term& keys, const Term& exchanged) const {
    if (options_.exchanges_heads()) {
      exchange_heads(layer, exchanged);
    } else {
      gather_context(layer, keys);
    }
  }
  /// All that goes out is written and read as it goes, and so are its gradients.
  void exchange_heads(LayerDerivation& layer, const Term& numbers) const {
    const SaturatingCount all = n_.e * n_.T * numbers.value;
    layer.exchanged_heads = {numbers.what, "e T " + numbers.formula, all};
    layer.forward_traffic += 2 * all;
    layer.input_traffic += 2 * all;
    layer.again_exchanged_heads = again(layer_part::kCoreAttention, all);
    layer.again_reads += 2 * layer.again_exchanged_heads;
  }
  /// Keys and values of all tokens are written and read as they come, and in the backward their
  /// gradients as they go. Of one token: `numbers`.
  void gather_context(LayerDerivation& layer, const Term& numbers) const {
    const std::int64_t devices = options_.context_parallel;
    if (devices == 1) return;
    const SaturatingCount all = devices * n_.e * n_.T * numbers.value;
    layer.keys_and_values = {numbers.what, fmt::format("e {} T {}", devices, numbers.formula), all};
    layer.forward_traffic += 2 * all;
    layer.input_traffic += 4 * all;
    layer.again_keys_and_values = again(layer_part::kCoreAttention, all);
    layer.again_reads += 2 * layer.again_keys_and_values;
  }
  void add_norm(LayerDerivation& layer) const {
    layer.parameters.push_back(
        {"norm", shape_.layer_norm ? "2 h" : "h", (shape_.layer_norm ? 2 : 1) * n_.h});
  }
  void add_kept_tokens(LayerDerivation& layer, std::string what) const {
    layer.kept.push_back({std::move(what), by_tokens() ? "e R h" : "e T h", hidden_bytes()});
  }
  /// For linear layers.
  void add_norm_output(LayerDerivation& layer, const LayerPart& part = layer_part::kNorm) const {
    add_norm_output(layer, n_.l, of_linear(), part);
  }
  void add_norm_output(LayerDerivation& layer, SaturatingCount of_number, std::string_view symbol,
                       const LayerPart& part = layer_part::kNorm) const {
    const SaturatingCount bytes = of_number * n_.R * n_.h;
    layer.kept.push_back({"output of the norm",
                          fmt::format("{} {} h", symbol, by_tokens() ? "R" : "T"), bytes, false,
                          again(part, bytes)});
  }
  /// The tensors within an MLP, each of `numbers`: outputs of products, and what is made of these,
  /// the last of which is multiplied.
  /// `activation` is the part that makes the latter, `mlp` that of the products.
  void keep_inner(LayerDerivation& layer, std::string_view of, const std::string& formula,
                  SaturatingCount numbers, const LayerPart& activation,
                  const LayerPart& mlp) const {
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
  /// Of latent attention, from what is compressed: keys and values, queries where they are, too.
  /// Its module makes other queries, too, from the tokens.
  void recompute_heads(LayerDerivation& layer, bool has_queries) const {
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

  /// What all layers that multiply have in common: each kept tensor is written and read once in the
  /// forward, read once in either backward, and its gradient written and read once for the input
  /// and read once for the weights; the weights are read once in a pass, their gradient written.
  void finish(LayerDerivation& layer, SaturatingCount touched, SaturatingCount passing) const {
    const SaturatingCount weights = n_.e * touched;
    const SaturatingCount kept = sum(layer.kept);
    layer.output = hidden_bytes();
    layer.forward_traffic = weights + hidden_bytes() + 2 * kept + passing;
    layer.input_traffic = weights + 3 * kept + passing;
    layer.weight_traffic = weights + 2 * kept;
  }
  /// What a tensor-parallel group does around its products, in front of them and behind: what is
  /// gathered or added up over it is written and read besides. Behind a parallel block's MLP the
  /// group adds up attention with it, which is in no module.
  void share_products(LayerDerivation& layer, const LayerPart& part, bool in_front = true,
                      bool behind = true) const {
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

  const TransformerShape& shape_;
  const TransformerOptions& options_;
  DropoutRates dropout_;
  Symbols n_;
};

}  // namespace

DropoutRates dropout_of(const TransformerShape& shape, const TransformerOptions& options) {
  const auto first = [&](const std::optional<double>& own, const std::optional<double>& of_file) {
    return own ? own : options.dropout ? options.dropout : of_file;
  };
  const DropoutRates& file = shape.facts.dropout;
  return {first(options.attention_dropout, file.attention),
          first(options.hidden_dropout, file.residual),
          first(options.hidden_dropout, file.embedding)};
}

SaturatingCount sum(const std::vector<Term>& terms) {
  SaturatingCount total;
  for (const Term& term : terms) total += term.value;
  return total;
}

SaturatingCount recomputation(const std::vector<Term>& kept) {
  SaturatingCount total;
  for (const Term& term : kept) total += term.again;
  return total;
}

SaturatingCount forward_flops(const LayerDerivation& layer) {
  SaturatingCount total;
  for (const WorkTerm& term : layer.flops) total += term.forward.value;
  return total;
}

SaturatingCount input_flops(const LayerDerivation& layer) {
  SaturatingCount halves;
  for (const WorkTerm& term : layer.flops) halves += term.input_halves * term.forward.value;
  // Every term is even: a multiplication and an addition.
  return halves.is_exact() ? SaturatingCount{halves.value() / 2} : halves;
}

SaturatingCount weight_flops(const LayerDerivation& layer) {
  SaturatingCount total;
  for (const WorkTerm& term : layer.flops) {
    if (term.has_weights) total += term.forward.value;
  }
  return total;
}

SaturatingCount fp8_flops(const LayerDerivation& layer) {
  SaturatingCount total;
  for (const WorkTerm& term : layer.flops) {
    if (term.in_fp8) total += term.forward.value;
  }
  return total;
}

std::vector<std::string> symbol_lines(const TransformerShape& shape,
                                      const TransformerOptions& options) {
  const Symbols n = symbols_of(shape, options);
  const std::int64_t t = options.tensor_parallel;
  const auto shared_by = [](std::int64_t devices, std::int64_t whole, const SaturatingCount& part) {
    return devices == 1 ? std::to_string(whole)
                        : fmt::format("{} / {} = {}", whole, devices, part.value());
  };
  const auto shared = [&](std::int64_t whole, const SaturatingCount& part) {
    return shared_by(t, whole, part);
  };
  std::vector<std::string> lines = {
      fmt::format("e = {} bytes of a number ({})", n.e.value(), name_of(options.dtype)),
      fmt::format("s = {} tokens of a sample", n.s.value()),
      fmt::format(
          "T = {} x s{} = {} tokens of a micro-batch", options.batch,
          options.context_parallel > 1 ? fmt::format(" / {}", options.context_parallel) : "",
          n.T.value()),
      fmt::format("h = {} hidden", n.h.value()),
      shape.latent
          ? fmt::format("a = {} heads; of each n = {} and r = {} rotated numbers of queries and "
                        "keys, v = {} of values",
                        shared(shape.heads, n.a), n.n.value(), n.r.value(), n.v.value())
          : fmt::format("a = {} heads, g = {} of keys and values, d = {} numbers each",
                        shared(shape.heads, n.a), shared(shape.key_value_heads, n.g), n.d.value()),
      fmt::format("V = {} tokens in the vocabulary", shared(shape.vocabulary, n.V))};
  if (options.fp8_linear)
    lines.emplace_back("l = 1 byte of a number that a linear layer multiplies (fp8)");
  if (shape.latent) {
    lines.push_back(fmt::format("c = {} numbers of compressed keys and values{}", n.c.value(),
                                shape.latent->query_rank > 0
                                    ? fmt::format(", q = {} of compressed queries", n.q.value())
                                    : ""));
  }
  if (options.sequence_parallel)
    lines.push_back(
        fmt::format("R = {} of these tokens between products", shared(options.own_tokens(), n.R)));
  if (shape.has_dense_blocks())
    lines.push_back(fmt::format("f = {} inner width of an MLP", shared(shape.feed_forward, n.f)));
  if (shape.experts > 0) {
    lines.push_back(
        fmt::format("E = {} experts, k = {} for each token, x = {} inner width of each",
                    n.E.value(), n.k.value(),
                    options.expert_parallel > 1
                        ? shared_by(options.expert_tensor_parallel, shape.expert_feed_forward, n.x)
                        : shared(shape.expert_feed_forward, n.x)));
  }
  if (options.expert_parallel > 1) {
    const std::int64_t parts = options.expert_tensor_parallel;
    lines.push_back(fmt::format(
        "L = {} / {} = {} experts on {}", n.E.value(), options.expert_parallel, n.L.value(),
        parts > 1 ? fmt::format("every {} devices, in as many parts", parts) : "each device"));
  }
  if (shape.shared_feed_forward > 0)
    lines.push_back(fmt::format("y = {} inner width of the shared experts",
                                shared(shape.shared_feed_forward, n.y)));
  if (n.m.value() > 0) {
    lines.push_back(fmt::format(
        "m = {} modules that predict further tokens, u = {} columns of their projections",
        n.m.value(), shared(shape.hidden, n.u)));
  }
  if (shape.learned_positions) lines.push_back(fmt::format("P = {} positions", n.P.value()));
  return lines;
}

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

}  // namespace plumbline
