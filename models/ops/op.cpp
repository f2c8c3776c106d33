// FLOPs and words of ops.
//
// SPDX-License-Identifier: MIT
#include "models/ops/op.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace plumbline {
namespace {

/// The FLOPs of attention's backward for each one of its forward: five products instead of two.
constexpr double kAttentionBackward = 2.5;

std::string_view name_of(OpPass pass) {
  constexpr std::array<std::string_view, 3> names = {"forward", "input", "weights"};
  return names[static_cast<std::size_t>(pass)];
}

std::string_view name_of(MemoryKind kind) {
  constexpr std::array<std::string_view, 11> names = {
      "norm",      "rope",   "activation", "residual", "router", "cross_entropy",
      "embedding", "scores", "permute",    "cast",     "copy"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view name_of(CollectiveKind kind) {
  constexpr std::array<std::string_view, 4> names = {"all_reduce", "all_gather", "reduce_scatter",
                                                     "all_to_all"};
  return names[static_cast<std::size_t>(kind)];
}

struct ToFlops {
  double operator()(const ProductOp& op) const {
    return 2.0 * static_cast<double>(op.m) * static_cast<double>(op.n) * static_cast<double>(op.k) *
           static_cast<double>(op.batch);
  }
  double operator()(const AttentionOp& op) const {
    const double pairs = static_cast<double>(op.batch) * static_cast<double>(op.queries) *
                         static_cast<double>(op.keys) * static_cast<double>(op.heads) / 2;
    const double each = 2.0 * static_cast<double>(op.query_size + op.value_size);
    return pairs * each * (op.backward ? kAttentionBackward : 1);
  }
  double operator()(const MemoryOp&) const { return 0; }
  double operator()(const CollectiveOp&) const { return 0; }
};

struct ToText {
  std::string operator()(const ProductOp& op) const {
    const std::string shape = fmt::format("{} {} {} x {} x {}", plumbline::name_of(op.format),
                                          name_of(op.pass), op.m, op.n, op.k);
    if (op.grouped) return fmt::format("grouped product {} in {} groups", shape, op.batch);
    return op.batch == 1 ? "product " + shape
                         : fmt::format("product {}, {} times", shape, op.batch);
  }
  std::string operator()(const AttentionOp& op) const {
    return fmt::format("attention {} {} x {} queries, {} keys, {} heads of {} and {}",
                       op.backward ? "backward" : "forward", op.batch, op.queries, op.keys,
                       op.heads, op.query_size, op.value_size);
  }
  std::string operator()(const MemoryOp& op) const {
    return fmt::format("{} {} B in {} kernel{}", name_of(op.kind), op.bytes, op.kernels,
                       op.kernels == 1 ? "" : "s");
  }
  std::string operator()(const CollectiveOp& op) const {
    return fmt::format("{} {} B over {} devices", name_of(op.kind), op.bytes, op.devices);
  }
};

}  // namespace

double flops_of(const Op& op) { return std::visit(ToFlops{}, op); }

std::string to_text(const Op& op) { return std::visit(ToText{}, op); }

}  // namespace plumbline
