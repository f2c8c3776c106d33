// FLOPs and words of kernels.
//
// SPDX-License-Identifier: MIT
#include "models/kernels/kernel.h"

#include <fmt/format.h>

#include <string_view>

namespace plumbline {
namespace {

std::string_view name_of(KernelPass pass) { return kKernelPasses[static_cast<std::size_t>(pass)]; }

std::string_view name_of(MemoryKind kind) { return kMemoryKinds[static_cast<std::size_t>(kind)]; }

std::string_view name_of(CollectiveKind kind) {
  return kCollectiveKinds[static_cast<std::size_t>(kind)];
}

struct ToFlops {
  double operator()(const ProductKernel& kernel) const {
    return 2.0 * static_cast<double>(kernel.m) * static_cast<double>(kernel.n) *
           static_cast<double>(kernel.k) * static_cast<double>(kernel.batch);
  }
  double operator()(const AttentionKernel& kernel) const {
    const double pairs = static_cast<double>(kernel.batch) * static_cast<double>(kernel.queries) *
                         static_cast<double>(kernel.keys) * static_cast<double>(kernel.heads) / 2;
    const auto query = static_cast<double>(kernel.query_size);
    const auto value = static_cast<double>(kernel.value_size);
    // Backward: the scores again, and two products for each of the forward's.
    return 2 * pairs * (kernel.backward ? 3 * query + 2 * value : query + value);
  }
  double operator()(const MemoryKernel&) const { return 0; }
  double operator()(const CollectiveKernel&) const { return 0; }
};

struct ToText {
  std::string operator()(const ProductKernel& kernel) const {
    const std::string shape = fmt::format("{} {} {} x {} x {}", plumbline::name_of(kernel.format),
                                          name_of(kernel.pass), kernel.m, kernel.n, kernel.k);
    if (kernel.grouped) return fmt::format("grouped product {} in {} groups", shape, kernel.batch);
    return kernel.batch == 1 ? "product " + shape
                             : fmt::format("product {}, {} times", shape, kernel.batch);
  }
  std::string operator()(const AttentionKernel& kernel) const {
    return fmt::format("attention {} {} x {} queries, {} keys, {} heads of {} and {}",
                       kernel.backward ? "backward" : "forward", kernel.batch, kernel.queries,
                       kernel.keys, kernel.heads, kernel.query_size, kernel.value_size);
  }
  std::string operator()(const MemoryKernel& kernel) const {
    return fmt::format("{} {} {} x {}: {:.0f} B in {} launch{}", name_of(kernel.kind),
                       name_of(kernel.pass), kernel.rows, kernel.columns, kernel.bytes,
                       kernel.launches, kernel.launches == 1 ? "" : "es");
  }
  std::string operator()(const CollectiveKernel& kernel) const {
    return fmt::format("{} {} B over {} devices", name_of(kernel.kind), kernel.bytes,
                       kernel.devices);
  }
};

}  // namespace

double flops_of(const Kernel& kernel) { return std::visit(ToFlops{}, kernel); }

std::string to_text(const Kernel& kernel) { return std::visit(ToText{}, kernel); }

}  // namespace plumbline
