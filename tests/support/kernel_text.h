// Kernels in words, for tests that compare or capture them.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "models/kernels/kernel.h"

namespace plumbline::test {

inline std::string_view word_of(KernelPass pass) {
  return kKernelPasses[static_cast<std::size_t>(pass)];
}

inline std::string_view word_of(MemoryKind kind) {
  return kMemoryKinds[static_cast<std::size_t>(kind)];
}

inline std::string_view word_of(CollectiveKind kind) {
  return kCollectiveKinds[static_cast<std::size_t>(kind)];
}

struct ToText {
  std::string operator()(const ProductKernel& kernel) const {
    const std::string shape = fmt::format("{} {} {} x {} x {}", name_of(kernel.format),
                                          word_of(kernel.pass), kernel.m, kernel.n, kernel.k);
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
    return fmt::format("{} {} {} x {}: {:.0f} B in {} launch{}", word_of(kernel.kind),
                       word_of(kernel.pass), kernel.rows, kernel.columns, kernel.bytes,
                       kernel.launches, kernel.launches == 1 ? "" : "es");
  }
  std::string operator()(const CollectiveKernel& kernel) const {
    return fmt::format("{} {} B over {} devices", word_of(kernel.kind), kernel.bytes,
                       kernel.devices);
  }
};

/// "product bf16 forward 4096 x 57344 x 8192".
inline std::string to_text(const Kernel& kernel) { return std::visit(ToText{}, kernel); }

}  // namespace plumbline::test
