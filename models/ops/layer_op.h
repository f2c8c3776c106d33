// The ops of a layer: each is a step of its forward, and knows its backward.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/number_format.h"

namespace plumbline {

/// A linear layer: rows x inputs times inputs x outputs. Its backward has a product for the input
/// and one for the weights.
struct LinearOp {
  NumberFormat format = NumberFormat::bf16;
  std::int64_t rows = 1, outputs = 1, inputs = 1;
  /// The experts of a device, each with its own matrix and an equal part of the rows; 0 = one
  /// matrix for all rows.
  std::int64_t experts = 0;

  friend bool operator==(const LinearOp&, const LinearOp&) = default;
};

/// Causal attention over the heads of this device. A token reaches all tokens before it, or the
/// last `window` of the keys (a sliding window; or so many that an index has chosen), or those of
/// its own chunk of `window` tokens. Keys may be fewer than tokens: each stands for several of
/// them.
struct AttentionOp {
  std::int64_t batch = 1;       ///< Samples.
  std::int64_t queries = 1;     ///< Tokens of a sample on this device.
  std::int64_t keys = 1;        ///< Tokens of a sample.
  std::int64_t heads = 1;       ///< Heads of queries.
  std::int64_t key_heads = 1;   ///< Heads of keys and values.
  std::int64_t query_size = 1;  ///< Numbers in a head of queries and keys.
  std::int64_t value_size = 1;  ///< Numbers in a head of values.
  bool keeps_scores = false;    ///< Without flash attention: products, softmax and mask apart.
  bool drops = false;           ///< Dropout of scores that are kept.
  std::int64_t window = 0;      ///< The most keys that a token reaches; 0 = all before it.
  bool by_chunk = false;        ///< It reaches those of its chunk.
  std::int64_t stride = 1;      ///< Tokens that a key stands for.

  friend bool operator==(const AttentionOp&, const AttentionOp&) = default;
};

/// The scores of an index, by which each token chooses the keys that attention reaches: those of
/// some small heads, added up (DeepSeek-AI 2025, "DeepSeek-V3.2", section 2.1).
struct IndexOp {
  std::int64_t batch = 1;    ///< Samples.
  std::int64_t queries = 1;  ///< Tokens of a sample on this device.
  std::int64_t keys = 1;     ///< Keys of a sample: its tokens, or fewer that stand for several.
  std::int64_t heads = 1;
  std::int64_t size = 1;      ///< Numbers in a head.
  std::int64_t weighted = 0;  ///< 1: the heads' scores are multiplied with weights and added up.
  std::int64_t stride = 1;    ///< Tokens that a key stands for.

  friend bool operator==(const IndexOp&, const IndexOp&) = default;
};

/// A state for each head that passes from token to token, computed in chunks: within a chunk by
/// products as attention, between chunks by states of key_size x value_size numbers. With `delta`
/// each token first takes from the state what it holds under the token's key.
struct ScanOp {
  std::int64_t batch = 1;       ///< Samples.
  std::int64_t tokens = 1;      ///< Of a sample.
  std::int64_t heads = 1;       ///< Heads of values, each with a state.
  std::int64_t key_heads = 1;   ///< Heads of keys and queries, which heads of values share.
  std::int64_t key_size = 1;    ///< Numbers in a key: the state's size.
  std::int64_t value_size = 1;  ///< Numbers in a value.
  std::int64_t chunk = 64;      ///< Tokens of a chunk.
  bool delta = false;

  friend bool operator==(const ScanOp&, const ScanOp&) = default;
};

/// A convolution of each column with the rows before it, and its activation.
struct ConvolutionOp {
  std::int64_t rows = 1, columns = 1;
  std::int64_t width = 1;  ///< Rows of its kernel.

  friend bool operator==(const ConvolutionOp&, const ConvolutionOp&) = default;
};

/// A norm of each row.
struct NormOp {
  std::int64_t rows = 1, columns = 1;

  friend bool operator==(const NormOp&, const NormOp&) = default;
};

/// The rotation of queries and keys by their positions.
struct RotationOp {
  std::int64_t rows = 1, columns = 1;
  bool joins = false;  ///< It also joins the rotated and the plain part of each head.

  friend bool operator==(const RotationOp&, const RotationOp&) = default;
};

/// The activation of an MLP. A gated one reads two tensors of this size.
struct ActivationOp {
  std::int64_t rows = 1, columns = 1;
  bool gated = true;

  friend bool operator==(const ActivationOp&, const ActivationOp&) = default;
};

/// The sum of a layer's output and its input, with dropout in front.
struct ResidualOp {
  std::int64_t rows = 1, columns = 1;
  bool drops = false;

  friend bool operator==(const ResidualOp&, const ResidualOp&) = default;
};

/// The sum of two tensors, or two tensors joined.
struct SumOp {
  std::int64_t rows = 1, columns = 1;

  friend bool operator==(const SumOp&, const SumOp&) = default;
};

/// The choice of each token's experts from the router's scores.
struct RoutingOp {
  std::int64_t rows = 1, experts = 1;

  friend bool operator==(const RoutingOp&, const RoutingOp&) = default;
};

/// Rows in the order of their experts, or back.
struct PermuteOp {
  std::int64_t rows = 1, columns = 1;
  std::int64_t passes = 1;  ///< Twice where a device sorts them again behind the exchange.
  std::int64_t sums = 0;    ///< Tokens whose rows are added up on the way back.

  friend bool operator==(const PermuteOp&, const PermuteOp&) = default;
};

/// The loss from logits.
struct LossOp {
  std::int64_t rows = 1, columns = 1;
  /// Whether cross entropy keeps one copy of the logits, in fp32, which becomes their gradient;
  /// else its steps are ops of their own. Nothing: one copy is kept, and kernels are those of the
  /// stack.
  std::optional<bool> fused{};

  friend bool operator==(const LossOp&, const LossOp&) = default;
};

/// The rows of a table, one for each token, and the gradient of the table.
struct LookupOp {
  std::int64_t rows = 1, columns = 1;
  std::int64_t table_rows = 1;
  bool positions = false;  ///< A second table, of positions, is added.
  bool drops = false;

  friend bool operator==(const LookupOp&, const LookupOp&) = default;
};

/// The exchanges of devices that share a layer. The first four are those of tensor parallelism
/// (Korthikanti et al. 2022, section 4.2.2; Shoeybi et al. 2019, section 3).
enum class ExchangeKind : std::uint8_t {
  gather_tokens,   ///< All-gather; backward: reduce-scatter, and all-gather for the weights.
  scatter_sums,    ///< Reduce-scatter; backward: all-gather.
  copy_tokens,     ///< Nothing; backward: all-reduce.
  add_sums,        ///< All-reduce; backward: nothing.
  scatter_rows,    ///< An embedding's reduce-scatter; for its weights: all-gather.
  add_rows,        ///< An embedding's all-reduce.
  add_losses,      ///< All-reduce of a number per token.
  gather_keys,     ///< All-gather of keys and values; backward: again, and reduce-scatter.
  to_experts,      ///< All-to-all, forward and backward.
  gather_rows,     ///< All-gather in front of divided experts; backward: reduce-scatter.
  scatter_parts,   ///< Reduce-scatter behind them; backward: all-gather.
  exchange_heads,  ///< All-to-all of tokens for heads, or back, forward and backward.
};

/// Whether each device sends every other one something of its own.
constexpr bool is_all_to_all(ExchangeKind kind) {
  return kind == ExchangeKind::to_experts || kind == ExchangeKind::exchange_heads;
}

/// One such exchange.
struct ExchangeOp {
  ExchangeKind kind = ExchangeKind::add_sums;
  std::int64_t devices = 1;
  std::int64_t near = 1;   ///< The members of the group in one server.
  std::int64_t bytes = 0;  ///< The whole tensor. All-to-all: what a device sends in a server.
  std::int64_t network_bytes = 0;  ///< All-to-all: what a device sends to other servers.
  std::int64_t repeated = 1;       ///< For gather_keys: heads of queries that share one of keys.

  friend bool operator==(const ExchangeOp&, const ExchangeOp&) = default;
};

/// One op. A micro-batch's sizes, on one device.
struct LayerOp {
  using Shape = std::variant<LinearOp, AttentionOp, NormOp, RotationOp, ActivationOp, ResidualOp,
                             SumOp, RoutingOp, PermuteOp, LossOp, LookupOp, ExchangeOp, IndexOp,
                             ScanOp, ConvolutionOp>;
  Shape shape;
  bool again = false;  ///< Selective recomputation runs it again.

  friend bool operator==(const LayerOp&, const LayerOp&) = default;
};

/// The ops of a layer in the order of its forward, for one micro-batch on one device.
struct LayerOps {
  NumberFormat dtype = NumberFormat::bf16;  ///< Numbers outside of linear layers in fp8.
  std::vector<LayerOp> ops;

  /// Whether frameworks recompute the layer where they recompute layers: they do with blocks, and
  /// neither with the embedding nor with the head and its loss.
  bool is_block() const;

  friend bool operator==(const LayerOps&, const LayerOps&) = default;
};

/// The mean number of keys that a token's query meets in `keys` of a sample, without those that are
/// masked: half of them, or, with a window of W, W - W^2 / (2 keys). By chunks of W tokens it is
/// half a chunk.
double mean_reach(std::int64_t keys, std::int64_t window, bool by_chunk);

/// The floating-point operations of one pass over ops: 2 for each pair of numbers that a product
/// multiplies. Attention without scores computes the pairs that are not masked, and in its backward
/// the scores once more. A scan of chunks of C tokens computes, for each token of it, C (G N + H P)
/// + 2 H N P pairs (Dao and Gu 2024, "Transformers are SSMs", section 6: scores of G heads of keys
/// of N numbers, their sums for H heads of values of P, and both ways from and to the states), and
/// with `delta` H (C (3 N + 2 P) + 3 N P) (Yang et al. 2024, "Gated Delta Networks", section 3.3:
/// the products of the WY form besides; the triangular inverse does not count). Its backward makes
/// all of that again and two products for each of the forward's.
std::int64_t pairs_of_token(const ScanOp& op);
struct OpFlops {
  double forward = 0, input = 0, weights = 0;
};
OpFlops flops_of(const LayerOps& ops);

/// The most bytes that one op holds in its backward beside what its forward keeps: the gradients of
/// its weights before they are added up, of its output and of its input; of attention that keeps
/// its scores, the gradients of the scores before and behind the softmax; of a loss that is not
/// fused, the gradients of the logits and of their softmax's logarithms, both in fp32.
struct TemporaryBytes {
  std::int64_t all = 0;
  std::int64_t of_weights = 0;  ///< With no tokens at all: the gradients of weights alone.
};
TemporaryBytes temporary_bytes(const LayerOps& ops);

/// The most bytes that one op holds so or sends, keys and values as often as heads repeat them;
/// exact up to 2^53.
std::int64_t largest_bytes(const LayerOps& ops);

}  // namespace plumbline
