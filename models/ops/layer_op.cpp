// The FLOPs of ops.
//
// SPDX-License-Identifier: MIT
#include "models/ops/layer_op.h"

#include <algorithm>

#include "base/saturating_count.h"

namespace plumbline {
namespace {

double real(std::int64_t number) { return static_cast<double>(number); }

OpFlops flops_of(const LinearOp& op) {
  const double each = 2 * real(op.rows) * real(op.outputs) * real(op.inputs);
  return {each, each, each};
}

OpFlops flops_of(const AttentionOp& op) {
  const double queries = real(op.batch) * real(op.queries) * real(op.heads);
  const double pairs =
      queries * (op.keeps_scores ? real(op.keys) : mean_reach(op.keys, op.window, op.by_chunk));
  const double scores = 2 * pairs * real(op.query_size);
  const double sums = 2 * pairs * real(op.value_size);
  if (op.keeps_scores) return {scores + sums, 2 * (scores + sums), 0};
  return {scores + sums, 3 * scores + 2 * sums, 0};
}

OpFlops flops_of(const IndexOp& op) {
  const double pairs = real(op.batch) * real(op.queries) * mean_reach(op.keys, 0, false);
  const double each = 2 * pairs * real(op.heads) * real(op.size + op.weighted);
  return {each, 2 * each, 0};
}

OpFlops flops_of(const ScanOp& op) {
  const double forward = 2 * real(op.batch) * real(op.tokens) * real(pairs_of_token(op));
  return {forward, 3 * forward, 0};
}

OpFlops flops_of(const ConvolutionOp& op) {
  const double each = 2 * real(op.rows) * real(op.columns) * real(op.width);
  return {each, each, each};
}

template <class Other>
OpFlops flops_of(const Other& /*op*/) {
  return {};
}

/// The bytes that an op holds in its backward alone.
struct Temporary {
  SaturatingCount e;       ///< Bytes of a number.
  bool has_tokens = true;  ///< Else gradients of weights alone count.

  SaturatingCount operator()(const LinearOp& op) const {
    const SaturatingCount matrices = std::max<std::int64_t>(op.experts, 1);
    return e * (matrices * op.outputs * op.inputs +
                tokens(op.rows) * (SaturatingCount{op.outputs} + op.inputs));
  }
  SaturatingCount operator()(const AttentionOp& op) const {
    const SaturatingCount rows = tokens(op.batch) * op.queries * op.heads;
    if (op.keeps_scores) return e * 2 * rows * op.keys;
    return e * rows * (SaturatingCount{2 * op.query_size} + op.value_size);
  }
  SaturatingCount operator()(const LookupOp& op) const {
    return e * (SaturatingCount{op.table_rows} + tokens(op.rows)) * op.columns;
  }
  SaturatingCount operator()(const LossOp& op) const {
    constexpr std::int64_t gradients = 2, fp32 = 4;
    if (op.fused.value_or(true)) return {};
    return gradients * fp32 * tokens(op.rows) * op.columns;
  }
  template <class Other>
  SaturatingCount operator()(const Other&) const {
    return {};
  }

  SaturatingCount tokens(std::int64_t count) const { return has_tokens ? count : 0; }
  std::int64_t most(const LayerOps& ops) const {
    std::int64_t most = 0;
    for (const LayerOp& op : ops.ops) most = std::max(most, std::visit(*this, op.shape).value());
    return most;
  }
};

}  // namespace

bool LayerOps::is_block() const {
  const auto has = [&]<class Op>(const Op*) {
    return std::any_of(ops.begin(), ops.end(),
                       [](const LayerOp& op) { return std::holds_alternative<Op>(op.shape); });
  };
  return has(static_cast<const LinearOp*>(nullptr)) && !has(static_cast<const LossOp*>(nullptr));
}

double mean_reach(std::int64_t keys, std::int64_t window, bool by_chunk) {
  const double all = real(keys);
  if (window == 0 || window >= keys) return all / 2;
  const double some = real(window);
  if (!by_chunk) return some - some * some / (2 * all);
  const double rest = real(keys % window);
  return (real(keys / window) * some * some + rest * rest) / (2 * all);
}

std::int64_t pairs_of_token(const ScanOp& op) {
  const SaturatingCount chunk = std::min(op.chunk, op.tokens);
  const SaturatingCount n = op.key_size, p = op.value_size, h = op.heads;
  const SaturatingCount pairs = op.delta ? h * (chunk * (3 * n + 2 * p) + 3 * n * p)
                                         : chunk * (op.key_heads * n + h * p) + 2 * h * n * p;
  return pairs.value();
}

OpFlops flops_of(const LayerOps& ops) {
  OpFlops sum;
  for (const LayerOp& op : ops.ops) {
    const OpFlops own = std::visit([](const auto& shape) { return flops_of(shape); }, op.shape);
    sum.forward += own.forward;
    sum.input += own.input;
    sum.weights += own.weights;
  }
  return sum;
}

TemporaryBytes temporary_bytes(const LayerOps& ops) {
  const SaturatingCount e = bytes_of(ops.dtype);
  return {Temporary{e, true}.most(ops), Temporary{e, false}.most(ops)};
}

std::int64_t largest_bytes(const LayerOps& ops) {
  std::int64_t most = temporary_bytes(ops).all;
  for (const LayerOp& op : ops.ops) {
    if (const auto* exchange = std::get_if<ExchangeOp>(&op.shape))
      most = std::max({most, (SaturatingCount{exchange->bytes} * exchange->repeated).value(),
                       exchange->network_bytes});
  }
  return most;
}

}  // namespace plumbline
