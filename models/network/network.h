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
/// Divides by the root of the mean square over the last extent, epsilon 1e-5 under the root, and
/// scales (Zhang and Sennrich 2019).
struct RmsNorm {};

/// How a block or a head normalizes its input: as LayerNorm, or as RmsNorm.
enum class NormKind : std::uint8_t { layer_norm, rms_norm };
inline constexpr std::array<std::string_view, 2> kNormKinds = {"layer_norm", "rms_norm"};

/// The products of an attention block that add a bias.
enum class AttentionBias : std::uint8_t { all, qkv, none };

/// x + projection(attention(QKV(norm(x)))) over [tokens, features].
struct AttentionBlock {
  std::int64_t heads = 1;
  bool causal = true;
  std::int64_t kv_heads = 0;   ///< Heads of keys and values; divides the heads. 0 = heads.
  std::int64_t head_size = 0;  ///< Numbers in a head. 0 = features / heads.
  NormKind norm = NormKind::layer_norm;
  AttentionBias bias = AttentionBias::all;
  /// Each head of queries and keys is normalized as by RmsNorm, with one scale for all heads.
  bool qk_norm = false;
  /// The base b of rotary positions (Su et al. 2021): queries and keys of token t turn numbers i
  /// and i + head_size / 2 by the angle t b^(-2 i / head_size). 0 = no rotation.
  double rotary = 0;
  std::int64_t window = 0;  ///< A token sees itself and window - 1 tokens before. 0 = all.

  friend bool operator==(const AttentionBlock&, const AttentionBlock&) = default;
};

/// The numbers of a token in the parts of an attention block. A row of qkv has all queries, then
/// keys, then values, head after head.
struct AttentionWidths {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_size = 1;

  std::int64_t queries() const { return heads * head_size; }  ///< Also those of the context.
  std::int64_t keys() const { return kv_heads * head_size; }
  std::int64_t qkv() const { return queries() + 2 * keys(); }
  std::int64_t sharing() const { return heads / kv_heads; }  ///< Queries' heads of one of keys.
};
/// Of a block whose input has so many features. Settings that are left open are filled in.
AttentionWidths attention_widths(const AttentionBlock& block, std::int64_t features);

/// The function in the middle of an MLP: the tanh form of gelu, x sigmoid(x), max(x, 0).
enum class Activation : std::uint8_t { gelu, silu, relu };
inline constexpr std::array<std::string_view, 3> kActivationNames = {"gelu", "silu", "relu"};

/// x + down(activation(up(norm(x)))) over [tokens, features] or [features]. Gated, `up` makes
/// twice as many numbers g, u, and activation(g) u goes down (Shazeer 2020).
struct MlpBlock {
  std::int64_t hidden = 0;  ///< 0 = 4 x features.
  Activation activation = Activation::gelu;
  bool gated = false;
  NormKind norm = NormKind::layer_norm;
  bool bias = true;  ///< Of both products.

  std::int64_t up() const { return gated ? 2 * hidden : hidden; }  ///< What `up` makes.
  friend bool operator==(const MlpBlock&, const MlpBlock&) = default;
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
  NormKind norm_kind = NormKind::layer_norm;
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
                 MaxPool, BatchNorm, Flatten, ResidualBlock, Lstm, RmsNorm>;

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
/// left open. Requires: counts of the settings >= 1, paddings >= 0, heads of keys that divide the
/// heads, no window without order. Errors: the shape or the ids do
/// not suit the kind (`[3, 32, 32]` for an attention block, heads that do not divide the features,
/// rotation of an odd head, a kernel larger than the padded picture);
/// products beyond 2^53. The message does not name the layer; its mark is `mark`.
Result<NetworkLayer> derive_layer(const LayerSettings& settings, const NetworkInput& input,
                                  const Mark& mark);

}  // namespace plumbline
