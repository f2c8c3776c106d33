// The own kernels as functions: each enqueues one of calibrate/cuda/kernels/, where the formulas
// are.
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

/// Tensors are dense, rows in order, of the type that is passed; what is said to be fp32 or int32
/// is that whatever the type. Errors of all: CudaError.
namespace plumbline::cuda {

// Element by element.

void fill(const CudaQueue& queue, ElementType type, CUdeviceptr y, float value, std::int64_t count);
/// Numbers in [-scale, scale) that look random.
void noise(const CudaQueue& queue, ElementType type, CUdeviceptr y, std::uint32_t seed,
           std::int64_t count, float scale = 1);
void from_fp32(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr x,
               std::int64_t count);
void to_fp32(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr x,
             std::int64_t count);
/// Each row becomes the bias, and the skip's row with it unless skip is 0.
void bias_rows(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr bias,
               CUdeviceptr skip, const Rows& shape);
void relu(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr x,
          std::int64_t count);
/// From the output; in place or not, as gelu_gradient.
void relu_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr x_gradient,
                   CUdeviceptr y_gradient, CUdeviceptr y, std::int64_t count);
void gelu(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr x,
          std::int64_t count);
void gelu_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr x_gradient,
                   CUdeviceptr y_gradient, CUdeviceptr x, std::int64_t count);
/// Adds x to y.
void add(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr x,
         std::int64_t count);

// Rows and columns.

/// What a norm took, and the fp32 moments of its rows.
struct Normed {
  CUdeviceptr input = 0;
  CUdeviceptr mean = 0;
  CUdeviceptr rstd = 0;
};

/// Writes y, and the moments.
void layer_norm(const CudaQueue& queue, ElementType type, CUdeviceptr y, const Normed& normed,
                CUdeviceptr scale, CUdeviceptr shift, const Rows& shape);
/// Adds the skip unless it is 0.
void layer_norm_input_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr x_gradient,
                               CUdeviceptr y_gradient, CUdeviceptr skip, const Normed& normed,
                               CUdeviceptr scale, const Rows& shape);

/// The fp32 numbers that the next two need as scratch.
std::int64_t partial_floats(const Rows& shape);
/// Adds the sum of each column of x.
void add_column_sums(const CudaQueue& queue, ElementType type, CUdeviceptr sums, CUdeviceptr x,
                     const Rows& shape, CUdeviceptr partial);
/// Adds the gradient of a norm's scale; that of its shift is add_column_sums of the output's.
void add_scale_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr gradient,
                        CUdeviceptr y_gradient, const Normed& normed, const Rows& shape,
                        CUdeviceptr partial);

// Attention.

/// Scores [heads, tokens, tokens] become probabilities; writes the fp32 logsumexp [heads, tokens].
void attention_softmax(const CudaQueue& queue, ElementType type, CUdeviceptr scores,
                       CUdeviceptr logsumexp, std::int64_t heads, std::int64_t tokens, bool causal);
/// Scores become probabilities again, and `gradient` of the probabilities that of the scores.
void attention_softmax_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr scores,
                                CUdeviceptr gradient, CUdeviceptr logsumexp, std::int64_t heads,
                                std::int64_t tokens, bool causal);

/// What the fused kernels take. Row t of qkv holds all of Q, then K, then V, and head j lies in
/// columns j x head size onwards of each.
struct AttentionShape {
  std::int64_t batch = 1;
  std::int64_t tokens = 1;
  std::int64_t features = 1;
  std::int64_t heads = 1;
  bool causal = false;

  std::int64_t head_size() const { return features / heads; }
};

/// Whether the next two do: bf16, and heads of a multiple of 8, up to 128 features.
bool is_fused(ElementType type, const AttentionShape& shape);
/// Writes context [batch, tokens, features] and the fp32 logsumexp [batch, heads, tokens] of qkv
/// [batch, tokens, 3 features]; all but the second aligned to 16 bytes.
void fused_attention(const CudaQueue& queue, const AttentionShape& shape, CUdeviceptr context,
                     CUdeviceptr logsumexp, CUdeviceptr qkv);
/// `products` is scratch of as many floats as logsumexp has.
void fused_attention_gradient(const CudaQueue& queue, const AttentionShape& shape,
                              CUdeviceptr qkv_gradient, CUdeviceptr context_gradient,
                              CUdeviceptr context, CUdeviceptr logsumexp, CUdeviceptr qkv,
                              CUdeviceptr products);

// The ends of a network.

/// One row of the table for each int32 id, and the vector of its position unless `positions` is 0.
/// Requires: ids below the entries of the table.
void lookup(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr ids,
            CUdeviceptr table, CUdeviceptr positions, std::int64_t tokens, const Rows& shape);
/// Adds the rows of the output's gradient to those of the table; in `next` is scratch of 2 ints a
/// row. Requires: at most 2^24 rows.
void add_lookup_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr table_gradient,
                         CUdeviceptr y_gradient, CUdeviceptr ids, CUdeviceptr next,
                         const Rows& shape);
/// Logits become probabilities; writes the fp32 loss of each row. Labels are int32, below the
/// columns.
void softmax_loss(const CudaQueue& queue, ElementType type, CUdeviceptr logits,
                  CUdeviceptr row_losses, CUdeviceptr labels, const Rows& shape);
/// The mean of the losses of each sample's rows; fp32.
void sample_losses(const CudaQueue& queue, CUdeviceptr losses, CUdeviceptr row_losses,
                   std::int64_t samples, std::int64_t rows_of_sample);
/// For `shape.rows` rows from `first` on; `gradient` begins at that row, all else at row 0.
/// `loss_weights` are fp32, one for each sample.
void logits_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr gradient,
                     CUdeviceptr probabilities, CUdeviceptr loss_weights, CUdeviceptr labels,
                     const Rows& shape, std::int64_t rows_of_sample, std::int64_t first);

/// The gradients of the members of a stage, at most 32, added in order; `sum` may be one of them.
void add_up(const CudaQueue& queue, ElementType type, CUdeviceptr sum,
            const std::vector<CUdeviceptr>& members, std::int64_t count);

// Updates: the arithmetic of calibrate/cpu/optimizer.h. `after` may be `before`.

void descend(const CudaQueue& queue, ElementType type, CUdeviceptr after, CUdeviceptr before,
             CUdeviceptr gradient, double rate, std::int64_t count);
/// Adam's count of steps: kStepFloats fp32 numbers of the device, zero at the start. Counted on the
/// device, so that a graph counts too.
inline constexpr std::int64_t kStepFloats = 3;
void count_step(const CudaQueue& queue, CUdeviceptr steps);
/// After count_step; the fp32 moments start as zero.
void descend_with_moments(const CudaQueue& queue, ElementType type, CUdeviceptr after,
                          CUdeviceptr before, CUdeviceptr gradient, CUdeviceptr first_moment,
                          CUdeviceptr second_moment, CUdeviceptr steps, double rate,
                          std::int64_t count);

/// The plain product.
void product(const CudaQueue& queue, ElementType type, const CudaGemm& product);

}  // namespace plumbline::cuda
