// FLOPs and temporary bytes of ops, counted by hand.
//
// SPDX-License-Identifier: MIT
#include "models/ops/layer_op.h"

#include <doctest/doctest.h>

namespace plumbline {
namespace {

LayerOps only(LayerOp::Shape shape) { return {.dtype = NumberFormat::bf16, .ops = {{shape}}}; }

TEST_CASE("a linear layer has a product in each pass") {
  const OpFlops flops = flops_of(only(LinearOp{NumberFormat::bf16, 10, 7, 3}));
  CHECK(flops.forward == 2 * 10 * 7 * 3);
  CHECK(flops.input == flops.forward);
  CHECK(flops.weights == flops.forward);
  // Experts share the rows.
  CHECK(flops_of(only(LinearOp{NumberFormat::bf16, 10, 7, 3, 2})).forward == flops.forward);
}

TEST_CASE("attention without scores computes half of the pairs, and the scores again backwards") {
  AttentionOp op{
      .batch = 2, .queries = 8, .keys = 16, .heads = 3, .query_size = 6, .value_size = 4};
  const double pairs = 2 * 8 * 16 * 3;
  const OpFlops flash = flops_of(only(op));
  CHECK(flash.forward == pairs * (6 + 4));
  CHECK(flash.input == pairs * (3 * 6 + 2 * 4));
  CHECK(flash.weights == 0);
  op.keeps_scores = true;
  const OpFlops kept = flops_of(only(op));
  CHECK(kept.forward == 2 * pairs * (6 + 4));
  CHECK(kept.input == 2 * kept.forward);
}

TEST_CASE("ops that move have no FLOPs") {
  CHECK(flops_of(only(NormOp{8, 8})).forward == 0);
  CHECK(flops_of(only(ExchangeOp{.devices = 2, .bytes = 100})).input == 0);
}

TEST_CASE("a block has products and no loss") {
  CHECK(only(LinearOp{}).is_block());
  CHECK_FALSE(only(LookupOp{}).is_block());
  LayerOps head = only(LinearOp{});
  head.ops.push_back({LossOp{}});
  CHECK_FALSE(head.is_block());
}

TEST_CASE("the largest op of a backward decides what it holds for a moment") {
  // bf16: the gradient of a matrix of 7 x 3, of 10 rows of its output and of its input.
  LayerOps ops = only(LinearOp{NumberFormat::bf16, 10, 7, 3});
  CHECK(temporary_bytes(ops).all == 2 * (7 * 3 + 10 * (7 + 3)));
  // Of two experts each has such a matrix.
  ops.ops.push_back({LinearOp{NumberFormat::fp8, 10, 7, 3, 2}});
  CHECK(temporary_bytes(ops).all == 2 * (2 * 7 * 3 + 10 * (7 + 3)));
  // Gradients of 2 x 3 x 8 x 16 scores behind the softmax and in front of it.
  AttentionOp attention{.batch = 2,
                        .queries = 8,
                        .keys = 16,
                        .heads = 3,
                        .query_size = 6,
                        .value_size = 4,
                        .keeps_scores = true};
  ops.ops.push_back({attention});
  CHECK(temporary_bytes(ops).all == 2 * 2 * (2 * 3 * 8 * 16));
  attention.keeps_scores = false;
  CHECK(temporary_bytes(only(attention)).all == 2 * (2 * 3 * 8) * (6 + 6 + 4));
  // The gradient of a whole table.
  CHECK(temporary_bytes(only(LookupOp{.rows = 4, .columns = 5, .table_rows = 100})).all ==
        2 * (100 + 4) * 5);
  CHECK(temporary_bytes(only(NormOp{100, 100})).all == 0);
  // With no tokens at all the gradients of the weights are left.
  CHECK(temporary_bytes(ops).of_weights == 2 * (2 * 7 * 3));
  CHECK(temporary_bytes(only(attention)).of_weights == 0);
}

}  // namespace
}  // namespace plumbline
