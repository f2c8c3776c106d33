// Our own kernels as functions. Each enqueues one kernel of calibrate/cuda/kernels/, which has the
// formulas.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "calibrate/cuda/driver/queue.h"
#include "calibrate/cuda/driver/rows.h"
#include "calibrate/cuda/libraries/gemm.h"
#include "models/network/network.h"

/// Tensors are dense and row-major, of the type that is passed. Tensors called fp32 or int32 have
/// that type in any case. Errors of all functions: CudaError.
namespace plumbline::cuda {

// Element by element.

void fill(const CudaQueue& queue, ElementType type, CUdeviceptr y, float value, std::int64_t count);
/// Writes pseudo-random numbers in [-scale, scale).
void noise(const CudaQueue& queue, ElementType type, CUdeviceptr y, std::uint32_t seed,
           std::int64_t count, float scale = 1);
void from_fp32(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr x,
               std::int64_t count);
void to_fp32(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr x,
             std::int64_t count);
/// Sets each row to the bias plus the skip's row; one of the two may be 0.
void bias_rows(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr bias,
               CUdeviceptr skip, const Rows& shape);
void relu(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr x,
          std::int64_t count);
/// Uses the output y. May work in place.
void relu_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr x_gradient,
                   CUdeviceptr y_gradient, CUdeviceptr y, std::int64_t count);
void activate(const CudaQueue& queue, ElementType type, Activation activation, CUdeviceptr y,
              CUdeviceptr x, std::int64_t count);
/// Uses the input x. May work in place.
void activate_gradient(const CudaQueue& queue, ElementType type, Activation activation,
                       CUdeviceptr x_gradient, CUdeviceptr y_gradient, CUdeviceptr x,
                       std::int64_t count);
/// activation(g) u of rows that hold `y_shape.columns` numbers g, then as many u.
void gate(const CudaQueue& queue, ElementType type, Activation activation, CUdeviceptr y,
          CUdeviceptr gate_and_up, const Rows& y_shape);
void gate_gradient(const CudaQueue& queue, ElementType type, Activation activation,
                   CUdeviceptr gate_and_up_gradient, CUdeviceptr y_gradient,
                   CUdeviceptr gate_and_up, const Rows& y_shape);
/// Adds x to y.
void add(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr x,
         std::int64_t count);

// Rows and columns.

/// The input of a norm, and the fp32 moments of its rows. An rms norm has no mean (0), and its
/// shift is 0.
struct Normed {
  CUdeviceptr input = 0;
  CUdeviceptr mean = 0;
  CUdeviceptr rstd = 0;
};

/// Writes y and the moments.
void layer_norm(const CudaQueue& queue, ElementType type, CUdeviceptr y, const Normed& normed,
                CUdeviceptr scale, CUdeviceptr shift, const Rows& shape);
/// Adds the skip unless it is 0.
void layer_norm_input_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr x_gradient,
                               CUdeviceptr y_gradient, CUdeviceptr skip, const Normed& normed,
                               CUdeviceptr scale, const Rows& shape);

/// The number of fp32 elements that the next two functions need as scratch.
std::int64_t partial_floats(const Rows& shape);
/// Adds the sum of each column of x.
void add_column_sums(const CudaQueue& queue, ElementType type, CUdeviceptr sums, CUdeviceptr x,
                     const Rows& shape, CUdeviceptr partial);
/// Adds the gradient of a norm's scale. The gradient of its shift is add_column_sums of y_gradient.
void add_scale_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr gradient,
                        CUdeviceptr y_gradient, const Normed& normed, const Rows& shape,
                        CUdeviceptr partial);

// Heads of queries and keys.

/// As in kernels/heads.cu: heads of `size` numbers in rows `stride` elements apart. What is kept of
/// them has `all` heads a row.
struct HeadRows {
  std::int64_t rows = 0;
  std::int64_t stride = 0;
  std::int64_t heads = 0;
  std::int64_t size = 0;
  std::int64_t all = 0;
};
/// An rms norm of each head, in place; writes what it was, and its fp32 rstd.
void norm_heads(const CudaQueue& queue, ElementType type, CUdeviceptr heads, CUdeviceptr input,
                CUdeviceptr rstd, CUdeviceptr scale, const HeadRows& shape);
/// The fp32 elements that it needs as scratch.
std::int64_t head_partial_floats(const HeadRows& shape);
/// Turns the gradient of the output into that of the input, in place; adds to that of the scale.
void norm_heads_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr gradient,
                         CUdeviceptr scale_gradient, CUdeviceptr input, CUdeviceptr rstd,
                         CUdeviceptr scale, const HeadRows& shape, CUdeviceptr partial);
/// Turns each head to the position of its row, modulo `tokens`, in place; back = the other way.
/// `angles` are those of rotary_angles(), fp32.
void turn_heads(const CudaQueue& queue, ElementType type, CUdeviceptr heads, CUdeviceptr angles,
                bool back, std::int64_t tokens, const HeadRows& shape);

// Attention.

/// The keys that a query sees: all, or itself and those before it, of these the last `window`
/// unless that is 0.
struct KeysInSight {
  bool causal = false;
  std::int64_t window = 0;
};

/// Turns scores [heads, tokens, tokens] into probabilities. Writes the fp32 logsumexp [heads,
/// tokens].
void attention_softmax(const CudaQueue& queue, ElementType type, CUdeviceptr scores,
                       CUdeviceptr logsumexp, std::int64_t heads, std::int64_t tokens,
                       const KeysInSight& seen);
/// Turns scores into probabilities again, and `gradient` from that of the probabilities into that
/// of the scores.
void attention_softmax_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr scores,
                                CUdeviceptr gradient, CUdeviceptr logsumexp, std::int64_t heads,
                                std::int64_t tokens, const KeysInSight& seen);

/// The shape of fused attention.
struct AttentionShape {
  std::int64_t batch = 1;
  std::int64_t tokens = 1;
  AttentionWidths widths;
  KeysInSight seen;
};

/// Whether the next two functions can compute it: bf16, and heads of up to 128 features, a multiple
/// of 8.
bool is_fused(ElementType type, const AttentionShape& shape);
/// Writes context [batch, tokens, widths.queries()] and the fp32 logsumexp [batch, heads, tokens]
/// from qkv [batch, tokens, widths.qkv()]. Requires: context and qkv are aligned to 16 bytes.
void fused_attention(const CudaQueue& queue, const AttentionShape& shape, CUdeviceptr context,
                     CUdeviceptr logsumexp, CUdeviceptr qkv);
/// `products` is scratch of as many floats as logsumexp has.
void fused_attention_gradient(const CudaQueue& queue, const AttentionShape& shape,
                              CUdeviceptr qkv_gradient, CUdeviceptr context_gradient,
                              CUdeviceptr context, CUdeviceptr logsumexp, CUdeviceptr qkv,
                              CUdeviceptr products);

// The ends of a network.

/// Writes one row of the table for each int32 id, plus the vector of its position unless
/// `positions` is 0. Requires: ids below the entries of the table.
void lookup(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr ids,
            CUdeviceptr table, CUdeviceptr positions, std::int64_t tokens, const Rows& shape);
/// Adds the rows of the output's gradient to the table's gradient. `next` is scratch of 2 ints per
/// row. Requires: at most 2^24 rows.
void add_lookup_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr table_gradient,
                         CUdeviceptr y_gradient, CUdeviceptr ids, CUdeviceptr next,
                         const Rows& shape);
/// Turns logits into probabilities. Writes the fp32 loss of each row. Labels are int32, below the
/// number of columns.
void softmax_loss(const CudaQueue& queue, ElementType type, CUdeviceptr logits,
                  CUdeviceptr row_losses, CUdeviceptr labels, const Rows& shape);
/// Writes the mean loss over each sample's rows; fp32.
void sample_losses(const CudaQueue& queue, CUdeviceptr losses, CUdeviceptr row_losses,
                   std::int64_t samples, std::int64_t rows_of_sample);
/// Writes `shape.rows` rows, from row `first` on. `gradient` begins at that row, all else at row 0.
/// `loss_weights` are fp32, one per sample.
void logits_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr gradient,
                     CUdeviceptr probabilities, CUdeviceptr loss_weights, CUdeviceptr labels,
                     const Rows& shape, std::int64_t rows_of_sample, std::int64_t first);

/// Adds the gradients of at most 32 members of a stage in order. `sum` may be one of them.
void add_up(const CudaQueue& queue, ElementType type, CUdeviceptr sum,
            const std::vector<CUdeviceptr>& members, std::int64_t count);

// Updates: the arithmetic of calibrate/cpu/optimizer.h. `after` may be `before`.

void descend(const CudaQueue& queue, ElementType type, CUdeviceptr after, CUdeviceptr before,
             CUdeviceptr gradient, double rate, std::int64_t count);
/// Adam's count of steps: kStepFloats fp32 numbers on the device, zero at the start. The device
/// counts, so that a graph counts too.
inline constexpr std::int64_t kStepFloats = 3;
void count_step(const CudaQueue& queue, CUdeviceptr steps);
/// Requires: count_step was enqueued before. The fp32 moments start as zero.
void descend_with_moments(const CudaQueue& queue, ElementType type, CUdeviceptr after,
                          CUdeviceptr before, CUdeviceptr gradient, CUdeviceptr first_moment,
                          CUdeviceptr second_moment, CUdeviceptr steps, double rate,
                          std::int64_t count);

/// The plain product.
void product(const CudaQueue& queue, ElementType type, const CudaGemm& product);

}  // namespace plumbline::cuda
