// Keys of kernels, and kernels of keys.
//
// SPDX-License-Identifier: MIT
#include "models/kernels/kernel_table.h"

#include <algorithm>

namespace plumbline {
namespace {

using Sizes = std::array<std::int64_t, kMostSizes>;

double ratio(std::int64_t now, std::int64_t before) {
  return static_cast<double>(now) / static_cast<double>(std::max<std::int64_t>(1, before));
}

struct ToKey {
  Accumulation accumulation;

  std::optional<KernelKey> operator()(const ProductKernel& kernel) const {
    KernelKey key;
    key.group.format = kernel.format;
    key.group.pass = kernel.pass;
    key.group.accumulation = kernel.pass == KernelPass::weights ? accumulation : Accumulation::none;
    if (kernel.batch == 1 && !kernel.grouped) {
      key.sizes = {kernel.m, kernel.n, kernel.k, 1, 1};
      return key;
    }
    key.group.kernels = kernel.grouped ? KernelClass::grouped : KernelClass::batched;
    key.sizes = {kernel.batch, kernel.m, kernel.n, kernel.k, 1};
    return key;
  }
  std::optional<KernelKey> operator()(const AttentionKernel& kernel) const {
    if (kernel.is_limited()) return std::nullopt;  // tables have those that reach all keys
    KernelKey key;
    key.group = {.kernels = KernelClass::sdpa,
                 .format = kernel.format,
                 .pass = kernel.backward ? KernelPass::input : KernelPass::forward,
                 .query_size = kernel.query_size,
                 .value_size = kernel.value_size};
    key.sizes = {kernel.batch, kernel.queries, kernel.keys, kernel.heads, kernel.key_heads};
    return key;
  }
  std::optional<KernelKey> operator()(const MemoryKernel& kernel) const {
    const auto format = memory_format(kernel.format);
    if (!format) return std::nullopt;
    KernelKey key;
    key.group = {.kernels = KernelClass::memory,
                 .format = *format,
                 .pass = kernel.pass,
                 .memory = kernel.kind};
    key.sizes = {kernel.rows, kernel.columns, 1, 1, 1};
    return key;
  }
  std::optional<KernelKey> operator()(const CollectiveKernel& kernel) const {
    KernelKey key;
    key.group = {.kernels = KernelClass::collectives,
                 .collective = kernel.kind,
                 .devices = kernel.devices,
                 .is_on_network = !kernel.in_server()};
    key.sizes = {kernel.bytes + kernel.network_bytes, 1, 1, 1, 1};
    return key;
  }
};

struct Resize {
  const Sizes& sizes;

  Kernel operator()(ProductKernel kernel) const {
    const bool is_single = kernel.batch == 1 && !kernel.grouped;
    const std::size_t first = is_single ? 0 : 1;
    kernel.batch = is_single ? 1 : sizes[0];
    kernel.m = sizes[first];
    kernel.n = sizes[first + 1];
    kernel.k = sizes[first + 2];
    return kernel;
  }
  Kernel operator()(AttentionKernel kernel) const {
    kernel.batch = sizes[0];
    kernel.queries = sizes[1];
    kernel.keys = sizes[2];
    kernel.heads = sizes[3];
    kernel.key_heads = sizes[4];
    return kernel;
  }
  Kernel operator()(MemoryKernel kernel) const {
    kernel.bytes *= ratio(sizes[0], kernel.rows) * ratio(sizes[1], kernel.columns);
    kernel.rows = sizes[0];
    kernel.columns = sizes[1];
    return kernel;
  }
  Kernel operator()(CollectiveKernel kernel) const {
    const double far = ratio(kernel.network_bytes, kernel.bytes + kernel.network_bytes);
    kernel.network_bytes = static_cast<std::int64_t>(far * static_cast<double>(sizes[0]));
    kernel.bytes = sizes[0] - kernel.network_bytes;
    return kernel;
  }
};

}  // namespace

std::size_t size_count(KernelClass kernels) {
  constexpr std::array<std::size_t, kKernelClasses.size()> counts = {3, 4, 4, 5, 2, 1};
  return counts[static_cast<std::size_t>(kernels)];
}

std::optional<NumberFormat> memory_format(NumberFormat format) {
  if (bytes_of(format) == bytes_of(NumberFormat::bf16)) return NumberFormat::bf16;
  if (bytes_of(format) == bytes_of(NumberFormat::fp32)) return NumberFormat::fp32;
  return std::nullopt;
}

std::optional<KernelKey> key_of(const Kernel& kernel, Accumulation accumulation) {
  return std::visit(ToKey{accumulation}, kernel);
}

std::string_view why_never_launched(const KernelKey& key) {
  const KernelGroup& group = key.group;
  const bool for_weights = group.pass == KernelPass::weights;
  if (group.accumulation != Accumulation::none && !for_weights)
    return "products that are added to a sum, but are not for the weights";
  if (group.kernels == KernelClass::batched && key.sizes[0] == 1)
    return "batched products of which there is one: gemm has those";
  if (group.kernels == KernelClass::sdpa && !group.is_causal) return "attention that is not causal";
  if (group.kernels == KernelClass::sdpa && key.sizes[2] < key.sizes[1])
    return "attention with fewer keys than queries";
  if (group.kernels == KernelClass::memory && for_weights && group.memory != MemoryKind::lookup)
    return "memory-bound kernels for the weights, other than lookup";
  if (group.kernels == KernelClass::memory && memory_format(group.format) != group.format)
    return "memory-bound kernels over numbers of a byte";
  if (group.kernels == KernelClass::collectives && group.devices == 1)
    return "collectives of one device";
  return "";
}

Kernel resized(const Kernel& kernel, const KernelKey& key) {
  return std::visit(Resize{key.sizes}, kernel);
}

std::optional<double> KernelClosure::of(KernelClass kernels) const {
  if (is_product(kernels)) return gemm;
  if (kernels == KernelClass::sdpa) return sdpa;
  if (kernels == KernelClass::memory) return memory;
  return std::nullopt;
}

double LaunchTimes::seconds() const {
  const Duration host = per_op.value_or(Duration{}) + host_per_op.value_or(Duration{});
  return plumbline::seconds(std::max(gap.value_or(Duration{}), host));
}

}  // namespace plumbline
