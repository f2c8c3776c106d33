// The FLOPs of ops.
//
// SPDX-License-Identifier: MIT
#include "models/ops/layer_op.h"

#include <algorithm>

namespace plumbline {
namespace {

double real(std::int64_t number) { return static_cast<double>(number); }

OpFlops flops_of(const LinearOp& op) {
  const double each = 2 * real(op.rows) * real(op.outputs) * real(op.inputs);
  return {each, each, each};
}

OpFlops flops_of(const AttentionOp& op) {
  const double pairs = real(op.batch) * real(op.queries) * real(op.keys) * real(op.heads);
  const double scores = 2 * pairs * real(op.query_size);
  const double sums = 2 * pairs * real(op.value_size);
  if (op.keeps_scores) return {scores + sums, 2 * (scores + sums), 0};
  return {(scores + sums) / 2, (3 * scores + 2 * sums) / 2, 0};
}

}  // namespace

bool LayerOps::is_block() const {
  const auto has = [&]<class Op>(const Op*) {
    return std::any_of(ops.begin(), ops.end(),
                       [](const LayerOp& op) { return std::holds_alternative<Op>(op.shape); });
  };
  return has(static_cast<const LinearOp*>(nullptr)) && !has(static_cast<const LossOp*>(nullptr));
}

OpFlops flops_of(const LayerOps& ops) {
  OpFlops sum;
  for (const LayerOp& op : ops.ops) {
    OpFlops own;
    if (const auto* linear = std::get_if<LinearOp>(&op.shape)) own = flops_of(*linear);
    if (const auto* attention = std::get_if<AttentionOp>(&op.shape)) own = flops_of(*attention);
    sum.forward += own.forward;
    sum.input += own.input;
    sum.weights += own.weights;
  }
  return sum;
}

}  // namespace plumbline
