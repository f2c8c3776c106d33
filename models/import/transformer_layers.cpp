// One function for each kind of layer.
//
// SPDX-License-Identifier: MIT
#include "models/import/transformer_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/import/mixer_layers.h"

namespace plumbline {
namespace {

/// The kinds of layers.
class Deriver : public MixerDeriver {
 public:
  using MixerDeriver::MixerDeriver;

  LayerDerivation embedding() const {
    LayerDerivation layer;
    layer.role = "embedding";
    layer.parameters.push_back({"table of tokens", "V h", n_.V * n_.h});
    if (shape_.learned_positions)
      layer.parameters.push_back({"table of positions", "P h", n_.P * n_.h});
    add_kept_tokens(layer, "output");
    layer.output = stream_bytes();
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

  LayerDerivation dense_mlp() const {
    LayerDerivation layer;
    layer.role = "mlp";
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
    add_beside(layer);
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
    layer.role = "moe";
    add_experts(layer);
    multiply_experts(layer);
    add_beside(layer);
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
    layer.role = "mtp";
    layer.output = (passed + 1) * stream_bytes();
    return layer;
  }

  LayerDerivation head() const {
    LayerDerivation layer;
    layer.role = "head";
    add_norm(layer);
    const SaturatingCount matrix = n_.h * n_.V;
    const SaturatingCount outputs = n_.m + 1;  // of the blocks, and of each module
    layer.parameters.push_back(
        {shape_.tied ? "a copy of the embedding's table" : "matrix", "h V", matrix});
    if (shape_.tied) layer.borrowed = matrix;
    if (shape_.head_bias) layer.parameters.push_back({"its bias", "V", n_.V});
    join_streams(layer);
    add_tensors(layer, shape_.head_tensors);
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
  std::int64_t matrices() const { return shape_.gated ? 3 : 2; }
  std::string_view matrix_names() const { return shape_.gated ? "gate, up, down" : "up, down"; }
  /// The symbol for the numbers of a token as experts take it.
  std::string_view width() const { return shape_.expert_hidden > 0 ? "i" : "h"; }
  /// Numbers of an expert's matrices.
  SaturatingCount expert_numbers() const { return matrices() * n_.i * n_.x; }
  /// Numbers of its biases.
  SaturatingCount bias_numbers() const {
    return shape_.expert_bias ? (matrices() - 1) * n_.x + n_.i : SaturatingCount{};
  }
  /// The parameters of the shared experts together.
  SaturatingCount shared_numbers() const { return matrices() * n_.h * n_.y; }
  /// The numbers of a device's tokens, with a copy for each of their experts.
  SaturatingCount routed_numbers() const { return n_.k * n_.M * n_.i; }

  /// Numbers of the products to the experts' width and back.
  SaturatingCount beside_numbers() const {
    return shape_.expert_hidden > 0 ? 2 * n_.h * n_.i : SaturatingCount{};
  }

  /// Adds what few MLPs have: products to the experts' width and back, small tensors, norms behind.
  void add_beside(LayerDerivation& layer) const {
    if (shape_.experts > 0 && shape_.expert_hidden > 0) {
      layer.parameters.push_back({"to the experts' width, and back", "2 h i", beside_numbers()});
      add_linear(layer,
                 {"to the experts' width, and back", "4 " + routed_symbol() + " h i",
                  2 * n_.M * beside_numbers()},
                 layer_part::kExperts);
      layer.kept.push_back({"tokens of that width, before and behind",
                            "2 e " + routed_symbol() + " i", 2 * n_.e * n_.M * n_.i});
    }
    if (shape_.shared_gate > 0)
      add_product(layer, "gate of the shared experts", fmt::format("h {}", shape_.shared_gate),
                  shape_.shared_gate * n_.h);
    add_tensors(layer, shape_.mlp_tensors);
    add_norms_behind(layer, shape_.mlp_norms);
    add_streams(layer);
  }

  /// Adds the sum of residual streams in front of the head.
  void join_streams(LayerDerivation& layer) const {
    const std::int64_t streams = shape_.streams;
    if (streams == 1) return;
    add_product(layer, "weights of the residual streams", fmt::format("{} {} h", streams, streams),
                streams * streams * n_.h);
    layer.parameters.push_back(
        {"their biases and scale", fmt::format("{} + 1", streams), streams + 1});
  }
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
    const std::string_view own = is_exchanged() ? "L" : "E";
    layer.parameters.push_back({fmt::format("{} of the experts", matrix_names()),
                                fmt::format("{} {} {} x", matrices(), own, width()),
                                n_.L * expert_numbers(), is_exchanged()});
    if (shape_.expert_bias) {
      layer.parameters.push_back(
          {"biases of the experts",
           fmt::format("{} ({}x + {})", own, shape_.gated ? "2 " : "", width()),
           n_.L * bias_numbers(), is_exchanged()});
      layer.parameters.push_back({"bias of the router", "E", n_.E});
    }
    if (has_shared())
      layer.parameters.push_back({fmt::format("{} of the shared experts", matrix_names()),
                                  fmt::format("{} h y", matrices()), shared_numbers()});
    const std::int64_t unused = shape_.experts - shape_.experts_per_token;
    layer.idle_parameters = unused * (expert_numbers() + bias_numbers());
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
               {fmt::format("{} of k experts", matrix_names()),
                fmt::format("{} k {} {} x", 2 * matrices(), gathered, width()),
                parts * 2 * n_.k * n_.M * expert_numbers()},
               layer_part::kExperts);
    if (has_shared())
      add_linear(layer,
                 {fmt::format("{} of the shared experts", matrix_names()),
                  fmt::format("{} T h y", 2 * matrices()), 2 * n_.T * shared_numbers()},
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
    keep_routed("tokens as each expert gets them",
                fmt::format("k {} {} {}", of_linear(), gathered, width()),
                parts * n_.l * routed_numbers());
    keep_inner(layer, "", "k " + gathered + " x", parts * n_.k * n_.M * n_.x,
               layer_part::kExpertActivation, layer_part::kExperts);
    if (!options_.fused_swiglu)
      keep_routed("outputs of the experts", fmt::format("k e {} {}", m, width()), routed_bytes());
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
    const SaturatingCount touched = n_.h + own + shared_numbers() + beside_numbers();
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

namespace {

/// The layers of a model, kind of block by kind of block.
class ModelDeriver {
 public:
  ModelDeriver(const TransformerShape& shape, const TransformerOptions& options)
      : shape_(shape), options_(options) {
    const std::size_t kinds = std::max<std::size_t>(1, shape.kinds.size());
    shapes_.reserve(kinds);
    for (std::size_t kind = 0; kind < kinds; ++kind) shapes_.push_back(shape.of_kind(kind));
    derivers_.reserve(kinds);
    for (const TransformerShape& one : shapes_) derivers_.emplace_back(one, options);
  }

  std::vector<LayerDerivation> layers() const {
    const Deriver ends(shape_, options_);
    std::vector<LayerDerivation> layers;
    layers.reserve(2 * static_cast<std::size_t>(shape_.blocks) + 2);
    add(layers, ends.embedding());
    for (std::int64_t i = 0; i < shape_.blocks; ++i) add_block(layers, i);
    if (options_.mtp) add_modules(layers);
    add(layers, ends.head());
    return layers;
  }

 private:
  std::size_t kind_of(std::int64_t block) const {
    return shape_.kinds.empty() ? 0 : shape_.kind_of[static_cast<std::size_t>(block)];
  }

  void add(std::vector<LayerDerivation>& layers, LayerDerivation layer) const {
    layer.kind = layer.role;
    layers.push_back(std::move(layer));
  }

  /// A part of a block is called as it is, a block that has one part alone as a block.
  void add_of_block(std::vector<LayerDerivation>& layers, std::int64_t block, bool is_whole,
                    LayerDerivation layer) const {
    const bool has_both = layer.role.ends_with("block");
    layer.block_kind = kind_of(block);
    layer.block = block;
    layer.is_part = !is_whole;
    layer.kind = (shape_.kinds.empty() ? "" : shape_.kinds[layer.block_kind].prefix) +
                 (is_whole && !has_both ? "block" : layer.role);
    layers.push_back(std::move(layer));
  }

  static LayerDerivation mlp(const Deriver& deriver, bool has_experts) {
    return has_experts ? deriver.experts_mlp() : deriver.dense_mlp();
  }

  /// Its mixer and its MLP, as one layer or two, or what it has of both.
  void add_block(std::vector<LayerDerivation>& layers, std::int64_t block) const {
    const std::size_t kind = kind_of(block);
    const TransformerShape& own = shapes_[kind];
    const Deriver& deriver = derivers_[kind];
    const bool has_mixer = own.mixer != Mixer::none;
    const bool has_experts = shape_.has_experts(block);
    const bool has_both = has_mixer && own.has_mlp;
    if (has_both && !options_.split_blocks)
      return add_of_block(layers, block, true, joined(deriver.mixer(), mlp(deriver, has_experts)));
    if (has_mixer) add_of_block(layers, block, !has_both, deriver.mixer());
    if (own.has_mlp) add_of_block(layers, block, !has_both, mlp(deriver, has_experts));
  }

  void add_modules(std::vector<LayerDerivation>& layers) const {
    const TransformerShape own = further_shape(shape_);
    const Deriver deriver(own, options_);
    const LayerDerivation block =
        joined(deriver.mixer(), mlp(deriver, has_experts_in_module(shape_)));
    for (std::int64_t i = 0; i < shape_.further_predictions; ++i)
      add(layers, deriver.mtp_module(block, i + 1));
  }

  const TransformerShape& shape_;
  const TransformerOptions& options_;
  std::vector<TransformerShape> shapes_;
  std::vector<Deriver> derivers_;
};

}  // namespace

std::vector<LayerDerivation> derive_layers(const TransformerShape& shape,
                                           const TransformerOptions& options) {
  return ModelDeriver(shape, options).layers();
}

TransformerShape further_shape(const TransformerShape& shape) {
  TransformerShape one = shape.of_kind(shape.kinds.empty() ? 0 : shape.kind_of.back());
  if (shape.further_block) one.set_block(*shape.further_block);
  return one;
}

bool has_experts_in_module(const TransformerShape& shape) {
  return shape.further_block ? shape.further_block->experts > 0
                             : shape.has_experts(shape.blocks - 1);
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
