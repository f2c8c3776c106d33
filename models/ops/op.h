// The kernels that a layer launches: their classes, and the sizes that decide how long they take.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/number_format.h"

namespace plumbline {

/// The three passes over a layer.
enum class OpPass : std::uint8_t { forward, input, weights };

/// A matrix product: out[m, n] = a[m, k] b[k, n], `batch` times.
struct ProductOp {
  NumberFormat format = NumberFormat::bf16;
  OpPass pass = OpPass::forward;
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t batch = 1;
  /// Of the experts on a device: `batch` products of unequal sizes in one kernel. m, or k in the
  /// pass for the weights, is the mean number of rows of a group.
  bool grouped = false;

  friend bool operator==(const ProductOp&, const ProductOp&) = default;
};

/// Causal attention in one kernel that keeps no scores.
struct AttentionOp {
  bool backward = false;
  std::int64_t batch = 1;       ///< Samples.
  std::int64_t queries = 1;     ///< Tokens of a sample on this device.
  std::int64_t keys = 1;        ///< Tokens of a sample.
  std::int64_t heads = 1;       ///< Heads of queries on this device.
  std::int64_t query_size = 1;  ///< Numbers of a head of queries and keys.
  std::int64_t value_size = 1;  ///< Numbers of a head of values.

  friend bool operator==(const AttentionOp&, const AttentionOp&) = default;
};

/// The kinds of kernels that move more than they compute.
enum class MemoryKind : std::uint8_t {
  norm,
  rope,
  activation,
  residual,
  router,
  cross_entropy,
  embedding,
  scores,   ///< Softmax, mask and dropout of attention that keeps its scores.
  permute,  ///< Tokens put into the order of the experts, or back.
  cast,     ///< Numbers to fp8, with their transpose and scales.
  copy,
};

/// Kernels that read and write so many bytes.
struct MemoryOp {
  MemoryKind kind = MemoryKind::copy;
  std::int64_t bytes = 0;
  std::int64_t kernels = 1;

  friend bool operator==(const MemoryOp&, const MemoryOp&) = default;
};

/// What a collective does.
enum class CollectiveKind : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all };

/// What a collective is for: decides which of its time a software stack hides behind computing.
enum class CollectiveUse : std::uint8_t {
  tensor,           ///< In front of a product or behind it.
  tensor_again,     ///< An input gathered again for the pass for the weights.
  tensor_gradient,  ///< A gradient added up beside the pass for the weights.
  context,          ///< Keys and values of a sample's other devices.
  experts,          ///< Tokens to their experts, or back.
  other,
};

/// A collective within the devices that share a layer.
struct CollectiveOp {
  CollectiveKind kind = CollectiveKind::all_reduce;
  CollectiveUse use = CollectiveUse::other;
  std::int64_t devices = 1;
  /// The whole tensor; for all_to_all what a device has for others and for itself.
  std::int64_t bytes = 0;
  /// For all_to_all: the bytes that a device sends over its link and over its network card.
  std::int64_t link_bytes = 0, network_bytes = 0;

  friend bool operator==(const CollectiveOp&, const CollectiveOp&) = default;
};

using Op = std::variant<ProductOp, AttentionOp, MemoryOp, CollectiveOp>;

/// The ops of a layer on one device, for one micro-batch, by pass.
struct LayerOps {
  std::vector<Op> forward, input, weights;

  std::vector<Op>& of(OpPass pass) {
    return pass == OpPass::forward ? forward : pass == OpPass::input ? input : weights;
  }
  friend bool operator==(const LayerOps&, const LayerOps&) = default;
};

/// The floating-point operations of an op: 2 m n k of a product; of attention those of the pairs
/// that are not masked, 2.5 times as many backwards; 0 of the others.
double flops_of(const Op& op);

/// "gemm bf16 fwd 4096 x 57344 x 8192".
std::string to_text(const Op& op);

}  // namespace plumbline
