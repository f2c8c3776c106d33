// What is really executed: a chain of layers with shapes, and what each costs in bytes and FLOPs.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"

namespace plumbline {

/// The extents of a tensor, outermost first. Of one sample where a sample is what flows:
/// [features], [tokens, features] or [channels, height, width].
struct Shape {
  std::vector<std::int64_t> extents;

  std::int64_t elements() const;  ///< Their product; 1 for no extents (a number).
  friend bool operator==(const Shape&, const Shape&) = default;
};

/// `[128, 768]`.
std::string to_text(const Shape& shape);

/// What the elements of activations, gradients and parameters are; statistics are always fp32.
enum class ElementType : std::uint8_t { fp32, tf32, bf16 };

/// Their names, in the order of the enumeration.
inline constexpr std::array<std::string_view, 3> kElementTypes = {"fp32", "tf32", "bf16"};

/// Bytes of one element: 4, 4, 2.
std::int64_t bytes_of(ElementType type);
std::string_view name(ElementType type);

// The kinds of layers with their settings. Matrix products act on the last extent, all others
// before it are rows.

/// y = x W^T + b.
struct Linear {
  std::int64_t features = 0;  ///< Of the output.
  bool bias = true;
};
struct Relu {};
/// The tanh form: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel 2016).
struct Gelu {};
/// Over the last extent, epsilon 1e-5, with scale and shift.
struct LayerNorm {};
/// x + projection(attention(QKV(norm(x)))) over [tokens, features].
struct AttentionBlock {
  std::int64_t heads = 1;  ///< Divides the features.
  bool causal = true;
};
/// x + linear(gelu(linear(norm(x)))) over [tokens, features] or [features].
struct MlpBlock {
  std::int64_t hidden = 0;  ///< 0 = 4 x features.
};
/// Token ids to [tokens, features]; the vocabulary is that of the network's input.
struct Embedding {
  std::int64_t vocabulary = 0;  ///< That of the input.
  std::int64_t features = 0;
  bool positions = false;  ///< Adds a learned vector for each position.
};
/// The end of a network: norm, linear, softmax with cross-entropy against one label for each row;
/// its output is the loss of a sample, the mean over its rows.
struct Head {
  std::int64_t classes = 0;
  bool norm = true;
  bool bias = false;
};
/// Square kernels over [channels, height, width].
struct Conv2d {
  std::int64_t channels = 0;  ///< Of the output.
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  bool bias = true;
};
/// Padding never wins; it is smaller than the kernel.
struct MaxPool {
  std::int64_t kernel = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;
};
/// Over the samples of a micro-batch and the last two extents, by channel; epsilon 1e-5; training
/// mode, no running averages.
struct BatchNorm {};
/// To [features].
struct Flatten {};
/// relu(norm(conv(relu(norm(conv(x))))) + shortcut(x)): 3x3 convolutions without bias, the first
/// with the stride, batch norms; the shortcut is a strided 1x1 convolution with its norm where the
/// shape changes, else the input (He et al. 2016).
struct ResidualBlock {
  std::int64_t channels = 0;
  std::int64_t stride = 1;
};
/// Over [tokens, features] from zero states; gates in the order input, forget, cell, output, one
/// bias; with `residual` the input is added to the output.
struct Lstm {
  std::int64_t hidden = 0;
  bool residual = false;
};

using LayerSettings =
    std::variant<Linear, Relu, Gelu, LayerNorm, AttentionBlock, MlpBlock, Embedding, Head, Conv2d,
                 MaxPool, BatchNorm, Flatten, ResidualBlock, Lstm>;

/// "linear", "attention_block", ...: as network files spell it.
std::string_view kind_name(const LayerSettings& settings);

/// A tensor of trained weights.
struct Parameter {
  std::string name;  ///< Within its layer: "weight", "qkv.bias".
  Shape shape;
  bool with_input = false;  ///< Its gradient comes with the input's: in I, not in W.
};

/// A tensor that a pass leaves for a later one.
struct KeptTensor {
  std::string name;
  Shape shape;  ///< Of one sample, or, where `per_sample` is false, of a micro-batch.
  bool per_sample = true;
  bool statistic = false;  ///< fp32 whatever the network's element type.
};

/// One layer of the chain. What F keeps for the backward is its output, `kept`, and its input,
/// which the layer before it holds. Where the backward splits, I also leaves `left_for_weights` and
/// the gradient of its output stays.
struct NetworkLayer {
  std::string name;
  LayerSettings settings;
  Shape input;   ///< Of one sample; [tokens] for an embedding.
  Shape output;  ///< Of one sample; [] for a head: the loss.
  std::vector<Parameter> parameters;
  std::vector<KeptTensor> kept;
  std::vector<KeptTensor> left_for_weights;
  bool splits = false;       ///< Whether there is a W: work for the weights that I does not do.
  double forward_flops = 0;  ///< Of one sample, as the next two.
  double backward_input_flops = 0;
  double backward_weight_flops = 0;

  std::int64_t parameter_count() const;
};

/// What one sample of the input is: numbers of a shape, or token ids.
struct NetworkInput {
  Shape shape;                             ///< [tokens] where ids.
  std::optional<std::int64_t> vocabulary;  ///< Ids lie below it; nothing = numbers.
};

/// A chain of layers. Invariants: at least one; each takes what the one before it makes; names are
/// unique; a head only at the end, an embedding only at the start and only of ids.
struct Network {
  std::string name;
  ElementType element = ElementType::fp32;
  NetworkInput input;
  std::vector<NetworkLayer> layers;

  std::int64_t parameter_count() const;
};

/// The bytes of the tensors of a layer for one micro-batch of `batch` samples; losses are fp32.
/// 2^53
/// + 1 stands for all that is more than 2^53.
Bytes output_bytes(const Network& network, const NetworkLayer& layer, std::int64_t batch);
/// What F keeps until B (W where split): its output and `kept`.
Bytes activation_bytes(const Network& network, const NetworkLayer& layer, std::int64_t batch);
/// What I leaves for W beyond that and the gradient of the output.
Bytes left_bytes(const Network& network, const NetworkLayer& layer, std::int64_t batch);
Bytes parameter_bytes(const Network& network, const NetworkLayer& layer);

/// Derives everything of a layer but its name from settings and input; fills in what settings leave
/// open. Requires: counts of the settings >= 1, paddings >= 0. Errors: the shape or the ids
/// do not suit the kind (`[3, 32, 32]` for an attention block, heads that do not divide the
/// features, a kernel larger than the padded picture); products beyond 2^53.
/// The message lacks the names of the layers; its mark is `mark`.
Result<NetworkLayer> derive_layer(const LayerSettings& settings, const NetworkInput& input,
                                  const Mark& mark);

}  // namespace plumbline
