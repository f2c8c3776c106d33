// The positions of each kind of layer's tensors in the layer's lists. They are found by the names
// that models/network gives them, so that backends count no positions by hand.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "models/network/network.h"

namespace plumbline {

/// The slot of a tensor that this layer does not have.
inline constexpr std::size_t kNoSlot = std::numeric_limits<std::size_t>::max();

// Slots in the lists of one layer. Trained tensors are in `parameters` (and gradients), tensors
// that F keeps in `kept`, and gradients that I leaves for W in `left_for_weights`.

/// A linear layer or a convolution.
struct DenseSlots {
  std::size_t weight = kNoSlot;
  std::size_t bias = kNoSlot;  ///< Optional.
};

/// A norm: a layer, or inside one. An rms norm has neither shift nor mean.
struct NormSlots {
  std::size_t scale = kNoSlot;
  std::size_t shift = kNoSlot;
  std::size_t mean = kNoSlot;
  std::size_t rstd = kNoSlot;
};

/// The norm at the start of a block.
struct BlockNormSlots {
  NormSlots norm;
  std::size_t output = kNoSlot;
  std::size_t output_gradient = kNoSlot;
};

/// The norm of each head of queries and keys.
struct HeadNormSlots {
  std::size_t queries_scale = kNoSlot;
  std::size_t keys_scale = kNoSlot;
  std::size_t rstd = kNoSlot;
  std::size_t input = kNoSlot;
};

/// The heads of queries, or of keys, in the tensors of a block.
struct HeadPart {
  std::int64_t column = 0;      ///< Their first column in a row of qkv, and in the kept input.
  std::int64_t heads = 0;       ///< How many they are.
  std::int64_t first_head = 0;  ///< The first of them among those of queries and keys.
  std::size_t scale = kNoSlot;
};
/// Queries, then keys.
std::array<HeadPart, 2> head_parts(const AttentionWidths& widths, const HeadNormSlots& slots);

struct AttentionSlots {
  BlockNormSlots norm;
  DenseSlots qkv;
  DenseSlots projection;
  std::optional<HeadNormSlots> head_norm;
  std::size_t qkv_output = kNoSlot;
  std::size_t logsumexp = kNoSlot;
  std::size_t context = kNoSlot;
  std::size_t qkv_gradient = kNoSlot;
};

struct MlpSlots {
  BlockNormSlots norm;
  DenseSlots up;
  DenseSlots down;
  std::size_t hidden = kNoSlot;
  std::size_t activated = kNoSlot;
  std::size_t hidden_gradient = kNoSlot;
};

struct EmbeddingSlots {
  std::size_t weight = kNoSlot;
  std::size_t positions = kNoSlot;  ///< Optional.
};

struct HeadSlots {
  std::optional<BlockNormSlots> norm;
  DenseSlots product;
  std::size_t probabilities = kNoSlot;
};

struct LstmSlots {
  std::size_t input_weight = kNoSlot;
  std::size_t hidden_weight = kNoSlot;
  std::size_t bias = kNoSlot;
  std::size_t gates = kNoSlot;
  std::size_t cells = kNoSlot;
  std::size_t hidden = kNoSlot;  ///< Only with a residual.
  std::size_t gates_gradient = kNoSlot;
};

/// A convolution and the norm after it.
struct NormedConvolutionSlots {
  std::size_t weight = kNoSlot;
  NormSlots norm;
  std::size_t output = kNoSlot;  ///< The convolution's output.
  std::size_t output_gradient = kNoSlot;
};

struct ResidualSlots {
  NormedConvolutionSlots first;
  std::size_t relu1 = kNoSlot;
  NormedConvolutionSlots second;
  std::optional<NormedConvolutionSlots> shortcut;  ///< Only where the shape changes.
};

// Each function finds all tensors of a layer of its kind. A missing or an additional tensor is a
// bug.

DenseSlots dense_slots(const NetworkLayer& layer);
NormSlots norm_slots(const NetworkLayer& layer);
AttentionSlots attention_slots(const NetworkLayer& layer);
MlpSlots mlp_slots(const NetworkLayer& layer);
EmbeddingSlots embedding_slots(const NetworkLayer& layer);
HeadSlots head_slots(const NetworkLayer& layer);
LstmSlots lstm_slots(const NetworkLayer& layer);
ResidualSlots residual_slots(const NetworkLayer& layer);
/// Checks a layer of a kind without tensors.
void check_no_slots(const NetworkLayer& layer);

}  // namespace plumbline
