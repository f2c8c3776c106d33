// The kernels that ops launch: their classes, and the sizes that decide their times.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

#include "base/number_format.h"

namespace plumbline {

/// The three passes over a layer.
enum class KernelPass : std::uint8_t { forward, input, weights };

/// Their names, in the order of the enumeration.
inline constexpr std::array<std::string_view, 3> kKernelPasses = {"forward", "input", "weights"};

/// A matrix product: out[m, n] = a[m, k] b[k, n], `batch` times.
struct ProductKernel {
  NumberFormat format = NumberFormat::bf16;
  KernelPass pass = KernelPass::forward;
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t batch = 1;
  /// `batch` products of unequal sizes in one kernel, one for each expert of a device. m, or k in
  /// the pass for the weights, is the mean number of rows of an expert.
  bool grouped = false;

  friend bool operator==(const ProductKernel&, const ProductKernel&) = default;
};

/// Causal attention in one kernel that keeps no scores.
struct AttentionKernel {
  bool backward = false;
  std::int64_t batch = 1;       ///< Samples.
  std::int64_t queries = 1;     ///< Tokens of a sample on this device.
  std::int64_t keys = 1;        ///< Tokens of a sample.
  std::int64_t heads = 1;       ///< Heads of queries on this device.
  std::int64_t key_heads = 1;   ///< Heads of keys and values.
  std::int64_t query_size = 1;  ///< Numbers in a head of queries and keys.
  std::int64_t value_size = 1;  ///< Numbers in a head of values.
  NumberFormat format = NumberFormat::bf16;
  std::int64_t window = 0;  ///< The most keys that a query reaches; 0 = all before it.
  bool by_chunk = false;    ///< It reaches those of its chunk of `window` tokens.

  /// Whether a query reaches fewer keys than those before it.
  bool is_limited() const { return window > 0 && window < keys; }

  friend bool operator==(const AttentionKernel&, const AttentionKernel&) = default;
};

/// The kinds of kernels that move more than they compute.
enum class MemoryKind : std::uint8_t {
  norm,
  rotation,
  activation,
  residual,
  sum,
  routing,
  loss,
  lookup,
  scores,   ///< Softmax, mask and dropout of attention that keeps its scores.
  permute,  ///< Rows in the order of the experts, or back.
  cast,     ///< Numbers to fp8, with their transpose and scales.
};

/// Their names, in the order of the enumeration.
inline constexpr std::array<std::string_view, 11> kMemoryKinds = {
    "norm", "rotation", "activation", "residual", "sum", "routing",
    "loss", "lookup",   "scores",     "permute",  "cast"};

/// Kernels that read and write `bytes`.
struct MemoryKernel {
  MemoryKind kind = MemoryKind::sum;
  KernelPass pass = KernelPass::forward;
  std::int64_t rows = 1, columns = 1;
  double bytes = 0;
  std::int64_t launches = 1;
  NumberFormat format = NumberFormat::bf16;

  friend bool operator==(const MemoryKernel&, const MemoryKernel&) = default;
};

/// The kinds of collectives.
enum class CollectiveKind : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all };

/// Their names, in the order of the enumeration.
inline constexpr std::array<std::string_view, 4> kCollectiveKinds = {
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all"};

/// The use of a collective. It decides which part of its time a software stack hides.
enum class CollectiveUse : std::uint8_t {
  tensor,           ///< In front of a product or behind it.
  tensor_again,     ///< An input gathered again for the pass for the weights.
  tensor_gradient,  ///< A gradient added up beside the pass for the weights.
  context,          ///< Keys and values of a sample's other devices, or tokens for heads.
  experts,          ///< Tokens to their experts, or back.
  other,
};

/// A collective between the devices that share a layer.
struct CollectiveKernel {
  CollectiveKind kind = CollectiveKind::all_reduce;
  CollectiveUse use = CollectiveUse::other;
  std::int64_t devices = 1;
  std::int64_t near = 1;  ///< Members in one server.
  /// The whole tensor. For all_to_all: what a device sends within its server.
  std::int64_t bytes = 0;
  std::int64_t network_bytes = 0;  ///< For all_to_all: what a device sends to other servers.

  bool in_server() const { return near >= devices; }

  friend bool operator==(const CollectiveKernel&, const CollectiveKernel&) = default;
};

using Kernel = std::variant<ProductKernel, AttentionKernel, MemoryKernel, CollectiveKernel>;

/// The floating-point operations of a kernel; 0 for those that move.
double flops_of(const Kernel& kernel);

}  // namespace plumbline
