// A network that is really executed: a chain of layers with shapes, bytes and FLOPs.
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

/// The extents of a tensor, outermost first. For tensors that flow from layer to layer, the shape
/// is that of one sample: [features], [tokens, features] or [channels, height, width].
struct Shape {
  std::vector<std::int64_t> extents;

  std::int64_t elements() const;  ///< Their product; 1 for no extents (a number).
  friend bool operator==(const Shape&, const Shape&) = default;
};

/// `[128, 768]`.
std::string to_text(const Shape& shape);

/// The type of the elements of activations, gradients and parameters. Statistics are always fp32.
enum class ElementType : std::uint8_t { fp32, tf32, bf16 };

/// The names of the types, in the order of the enumeration.
inline constexpr std::array<std::string_view, 3> kElementTypes = {"fp32", "tf32", "bf16"};

/// Bytes of one element: 4, 4, 2.
std::int64_t bytes_of(ElementType type);
std::string_view name(ElementType type);

// The kinds of layers with their settings. Matrix products act on the last extent. All extents
// before it are rows.

/// y = x W^T + b.
struct Linear {
  std::int64_t features = 0;  ///< Features of the output.
  bool bias = true;
};
struct Relu {};
/// The tanh form: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel 2016).
struct Gelu {};
/// Normalizes over the last extent, epsilon 1e-5, with scale and shift.
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
  std::int64_t vocabulary = 0;  ///< The vocabulary of the input.
  std::int64_t features = 0;
  bool positions = false;  ///< Adds a learned vector for each position.
};
/// The end of a network: norm, linear, softmax with cross-entropy against one label for each row.
/// Its output is the loss of a sample: the mean over its rows.
struct Head {
  std::int64_t classes = 0;
  bool norm = true;
  bool bias = false;
};
/// Square kernels over [channels, height, width].
struct Conv2d {
  std::int64_t channels = 0;  ///< Channels of the output.
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  bool bias = true;
};
/// Padding never holds the maximum. It is smaller than the kernel.
struct MaxPool {
  std::int64_t kernel = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;
};
/// Normalizes each channel over the samples of a micro-batch and the last two extents, epsilon
/// 1e-5. Training mode, no running averages.
struct BatchNorm {};
/// Reshapes to [features].
struct Flatten {};
/// relu(norm(conv(relu(norm(conv(x))))) + shortcut(x)): 3x3 convolutions without bias, the first
/// with the stride, and batch norms. Where the shape changes, the shortcut is a strided 1x1
/// convolution with its norm; else it is the input (He et al. 2016).
struct ResidualBlock {
  std::int64_t channels = 0;
  std::int64_t stride = 1;
};
/// Runs over [tokens, features] from zero states; gates in the order input, forget, cell, output;
/// one bias. With `residual` the input is added to the output.
struct Lstm {
  std::int64_t hidden = 0;
  bool residual = false;
};

using LayerSettings =
    std::variant<Linear, Relu, Gelu, LayerNorm, AttentionBlock, MlpBlock, Embedding, Head, Conv2d,
                 MaxPool, BatchNorm, Flatten, ResidualBlock, Lstm>;

/// The kind as network files spell it: "linear", "attention_block", ...
std::string_view kind_name(const LayerSettings& settings);

/// A tensor of trained weights.
struct Parameter {
  std::string name;  ///< Within its layer: "weight", "qkv.bias".
  Shape shape;
  bool with_input = false;  ///< Its gradient comes with the gradient of the input: in I, not in W.
};

/// A tensor that a pass leaves for a later one.
struct KeptTensor {
  std::string name;
  Shape shape;  ///< For one sample, or, where `per_sample` is false, for a micro-batch.
  bool per_sample = true;
  bool statistic = false;  ///< fp32 whatever the network's element type.
};

/// One layer of the chain. For the backward, F keeps the output, `kept`, and the input, which the
/// layer before it holds. Where the backward is split, I also leaves `left_for_weights`, and the
/// gradient of the output stays.
struct NetworkLayer {
  std::string name;
  LayerSettings settings;
  Shape input;   ///< Shape of one sample; [tokens] for an embedding.
  Shape output;  ///< Shape of one sample; [] for a head: the loss.
  std::vector<Parameter> parameters;
  std::vector<KeptTensor> kept;
  std::vector<KeptTensor> left_for_weights;
  bool splits = false;       ///< Whether there is a W: work for the weights that is not part of I.
  double forward_flops = 0;  ///< For one sample, like the next two.
  double backward_input_flops = 0;
  double backward_weight_flops = 0;

  std::int64_t parameter_count() const;
};

/// One sample of the input: numbers of a shape, or token ids.
struct NetworkInput {
  Shape shape;                             ///< [tokens] for token ids.
  std::optional<std::int64_t> vocabulary;  ///< Ids are below it; nothing = numbers.
};

/// A chain of layers. Invariants: at least one layer; each takes the output of the one before it;
/// names are unique; a head only at the end; an embedding only at the start, and only for token
/// ids.
struct Network {
  std::string name;
  ElementType element = ElementType::fp32;
  NetworkInput input;
  std::vector<NetworkLayer> layers;

  std::int64_t parameter_count() const;
};

/// The bytes of a layer's output for one micro-batch of `batch` samples; losses are fp32. 2^53 + 1
/// stands for every larger number, here and below.
Bytes output_bytes(const Network& network, const NetworkLayer& layer, std::int64_t batch);
/// The bytes that F keeps until B (W where split): the output and `kept`.
Bytes activation_bytes(const Network& network, const NetworkLayer& layer, std::int64_t batch);
/// The bytes that I leaves for W, without activation_bytes and the gradient of the output.
Bytes left_bytes(const Network& network, const NetworkLayer& layer, std::int64_t batch);
Bytes parameter_bytes(const Network& network, const NetworkLayer& layer);

/// Derives all fields of a layer but its name from settings and input. Fills in settings that are
/// left open. Requires: counts of the settings >= 1, paddings >= 0. Errors: the shape or the ids do
/// not suit the kind (`[3, 32, 32]` for an attention block, heads that do not divide the features,
/// a kernel larger than the padded picture); products beyond 2^53. The message does not name the
/// layer; its mark is `mark`.
Result<NetworkLayer> derive_layer(const LayerSettings& settings, const NetworkInput& input,
                                  const Mark& mark);

}  // namespace plumbline
