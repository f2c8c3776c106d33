// Grids, blocks and arguments of our own kernels.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/libraries/builtin_kernels.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/bug.h"
#include "calibrate/cuda/driver/launch.h"

namespace plumbline::cuda {
namespace {

// Column sums. The shape alone decides the chunks of rows, and so the order of a sum.

constexpr std::int64_t kMaxChunks = 64;
constexpr std::int64_t kMinChunk = 64;  // rows
constexpr std::int64_t kColumnsOfBlock = 32;

std::int64_t chunk_of(const Rows& shape) {
  return std::max(divided_up(shape.rows, kMaxChunks), kMinChunk);
}

std::int64_t chunks_of(const Rows& shape) { return divided_up(shape.rows, chunk_of(shape)); }

Blocks blocks_of_columns(const Rows& shape) {
  return {divided_up(shape.columns, kColumnsOfBlock), chunks_of(shape)};
}

void add_partial_sums(const CudaQueue& queue, ElementType type, CUdeviceptr sums,
                      CUdeviceptr partial, const Rows& shape) {
  launch_over(queue, named("add_partial_sums", type), shape.columns, sums, partial,
              Count(chunks_of(shape)), Count(shape.columns));
}

/// As in kernels/update.cu.
struct Members {
  static constexpr std::size_t kMax = 32;

  CUdeviceptr gradients[kMax];
  int count;
};

Members members_of(const std::vector<CUdeviceptr>& gradients) {
  PLUMBLINE_CHECK(!gradients.empty() && gradients.size() <= Members::kMax, gradients.size());
  Members members{};
  std::copy(gradients.begin(), gradients.end(), members.gradients);
  members.count = static_cast<int>(gradients.size());
  return members;
}

/// As in kernels/fused_attention.cu: the rows of a block, and launches by the columns of a tile,
/// which hold at least a head.
constexpr std::int64_t kAttentionRows = 64;
constexpr std::int64_t kAttentionThreads = 128;
constexpr std::int64_t kMaxHeadSize = 128;

struct HeadShape {
  Count batch, tokens, queries, keys;
  Count window;
  int head_size, sharing;
  int causal;
  float factor;
};

/// As in kernels/heads.cu.
struct HeadRowsShape {
  Count rows, stride, heads, size, all;
};

HeadRowsShape counted(const HeadRows& shape) {
  return {shape.rows, shape.stride, shape.heads, shape.size, shape.all};
}

/// All heads below one another.
Rows rows_of_heads(const HeadRows& shape) { return {shape.rows * shape.heads, shape.size}; }

std::int64_t tile_columns(const AttentionShape& shape) {
  const std::int64_t size = shape.widths.head_size;
  return size <= 32 ? 32 : size <= 64 ? 64 : kMaxHeadSize;
}

/// The floats of a tile of `rows` rows of bf16 with 16 bytes of padding.
std::int64_t tile_floats(const AttentionShape& shape, std::int64_t rows) {
  return rows * (tile_columns(shape) + 8) / 2;
}

/// A block for each of `heads`.
template <class... Arguments>
void launch_heads(const CudaQueue& queue, const AttentionShape& shape, std::int64_t heads,
                  const std::string& kernel, std::int64_t shared_floats, Arguments... arguments) {
  const AttentionWidths& widths = shape.widths;
  const HeadShape of_heads{
      shape.batch,
      shape.tokens,
      widths.queries(),
      widths.keys(),
      shape.seen.window,
      static_cast<int>(widths.head_size),
      static_cast<int>(widths.sharing()),
      shape.seen.causal ? 1 : 0,
      static_cast<float>(1 / std::sqrt(static_cast<double>(widths.head_size)))};
  launch(queue, "plumbline_" + kernel + "_" + std::to_string(tile_columns(shape)),
         {divided_up(shape.tokens, kAttentionRows), heads, std::min(shape.batch, kMaxBlocks)},
         kAttentionThreads, shared_floats, arguments..., of_heads);
}

/// As in kernels/gemm.cu.
struct GemmShape {
  Count rows, columns, depth, batch;
  Count a_stride, a_step, b_stride, b_step, c_stride, c_step;
  int a_turned, b_turned;
  float alpha, beta;
};

}  // namespace

// Element by element.

void fill(const CudaQueue& queue, ElementType type, CUdeviceptr y, float value,
          std::int64_t count) {
  launch_over(queue, named("fill", type), count, y, value, Count(count));
}

void noise(const CudaQueue& queue, ElementType type, CUdeviceptr y, std::uint32_t seed,
           std::int64_t count, float scale) {
  launch_over(queue, named("noise", type), count, y, unsigned(seed), scale, Count(count));
}

void from_fp32(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr x,
               std::int64_t count) {
  launch_over(queue, named("from_fp32", type), count, y, x, Count(count));
}

void to_fp32(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr x,
             std::int64_t count) {
  launch_over(queue, named("to_fp32", type), count, y, x, Count(count));
}

void bias_rows(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr bias,
               CUdeviceptr skip, const Rows& shape) {
  launch_over(queue, named("bias_rows", type), shape.elements(), y, bias, skip, Count(shape.rows),
              Count(shape.columns));
}

void relu(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr x,
          std::int64_t count) {
  launch_over(queue, named("relu", type), count, y, x, Count(count));
}

void relu_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr x_gradient,
                   CUdeviceptr y_gradient, CUdeviceptr y, std::int64_t count) {
  launch_over(queue, named("relu_gradient", type), count, x_gradient, y_gradient, y, Count(count));
}

void activate(const CudaQueue& queue, ElementType type, Activation activation, CUdeviceptr y,
              CUdeviceptr x, std::int64_t count) {
  launch_over(queue, named("activate", type), count, y, x, int(activation), Count(count));
}

void activate_gradient(const CudaQueue& queue, ElementType type, Activation activation,
                       CUdeviceptr x_gradient, CUdeviceptr y_gradient, CUdeviceptr x,
                       std::int64_t count) {
  launch_over(queue, named("activate_gradient", type), count, x_gradient, y_gradient, x,
              int(activation), Count(count));
}

void gate(const CudaQueue& queue, ElementType type, Activation activation, CUdeviceptr y,
          CUdeviceptr gate_and_up, const Rows& y_shape) {
  launch_over(queue, named("gate", type), y_shape.elements(), y, gate_and_up, int(activation),
              Count(y_shape.rows), Count(y_shape.columns));
}

void gate_gradient(const CudaQueue& queue, ElementType type, Activation activation,
                   CUdeviceptr gate_and_up_gradient, CUdeviceptr y_gradient,
                   CUdeviceptr gate_and_up, const Rows& y_shape) {
  launch_over(queue, named("gate_gradient", type), y_shape.elements(), gate_and_up_gradient,
              y_gradient, gate_and_up, int(activation), Count(y_shape.rows),
              Count(y_shape.columns));
}

void add(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr x,
         std::int64_t count) {
  launch_over(queue, named("add", type), count, y, x, Count(count));
}

// Rows and columns.

void layer_norm(const CudaQueue& queue, ElementType type, CUdeviceptr y, const Normed& normed,
                CUdeviceptr scale, CUdeviceptr shift, const Rows& shape) {
  launch_rows(queue, named("layer_norm", type), shape, y, normed.mean, normed.rstd, normed.input,
              scale, shift, Count(shape.columns));
}

void layer_norm_input_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr x_gradient,
                               CUdeviceptr y_gradient, CUdeviceptr skip, const Normed& normed,
                               CUdeviceptr scale, const Rows& shape) {
  launch_rows(queue, named("layer_norm_input_gradient", type), shape, x_gradient, y_gradient, skip,
              normed.input, normed.mean, normed.rstd, scale, Count(shape.columns));
}

std::int64_t partial_floats(const Rows& shape) { return chunks_of(shape) * shape.columns; }

void add_column_sums(const CudaQueue& queue, ElementType type, CUdeviceptr sums, CUdeviceptr x,
                     const Rows& shape, CUdeviceptr partial) {
  launch(queue, named("column_partial_sums", type), blocks_of_columns(shape), kThreads, kThreads,
         partial, x, Count(shape.rows), Count(shape.columns), Count(chunk_of(shape)));
  add_partial_sums(queue, type, sums, partial, shape);
}

void add_scale_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr gradient,
                        CUdeviceptr y_gradient, const Normed& normed, const Rows& shape,
                        CUdeviceptr partial) {
  launch(queue, named("scale_partial_sums", type), blocks_of_columns(shape), kThreads, kThreads,
         partial, y_gradient, normed.input, normed.mean, normed.rstd, Count(shape.rows),
         Count(shape.columns), Count(chunk_of(shape)));
  add_partial_sums(queue, type, gradient, partial, shape);
}

// Heads of queries and keys.

void norm_heads(const CudaQueue& queue, ElementType type, CUdeviceptr heads, CUdeviceptr input,
                CUdeviceptr rstd, CUdeviceptr scale, const HeadRows& shape) {
  launch_rows(queue, named("norm_heads", type), rows_of_heads(shape), heads, input, rstd, scale,
              counted(shape));
}

std::int64_t head_partial_floats(const HeadRows& shape) {
  return partial_floats(rows_of_heads(shape));
}

void norm_heads_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr gradient,
                         CUdeviceptr scale_gradient, CUdeviceptr input, CUdeviceptr rstd,
                         CUdeviceptr scale, const HeadRows& shape, CUdeviceptr partial) {
  const Rows rows = rows_of_heads(shape);
  launch(queue, named("head_scale_partial_sums", type), blocks_of_columns(rows), kThreads, kThreads,
         partial, gradient, input, rstd, counted(shape), Count(chunk_of(rows)));
  add_partial_sums(queue, type, scale_gradient, partial, rows);
  launch_rows(queue, named("norm_heads_gradient", type), rows, gradient, input, rstd, scale,
              counted(shape));
}

void turn_heads(const CudaQueue& queue, ElementType type, CUdeviceptr heads, CUdeviceptr angles,
                bool back, std::int64_t tokens, const HeadRows& shape) {
  launch_over(queue, named("turn_heads", type), shape.rows * shape.heads * shape.size / 2, heads,
              angles, int(back), Count(tokens), counted(shape));
}

// Attention.

void attention_softmax(const CudaQueue& queue, ElementType type, CUdeviceptr scores,
                       CUdeviceptr logsumexp, std::int64_t heads, std::int64_t tokens,
                       const KeysInSight& seen) {
  launch_rows(queue, named("attention_softmax", type), {heads * tokens, tokens}, scores, logsumexp,
              Count(tokens), int(seen.causal), Count(seen.window));
}

void attention_softmax_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr scores,
                                CUdeviceptr gradient, CUdeviceptr logsumexp, std::int64_t heads,
                                std::int64_t tokens, const KeysInSight& seen) {
  launch_rows(queue, named("attention_softmax_gradient", type), {heads * tokens, tokens}, scores,
              gradient, logsumexp, Count(tokens), int(seen.causal), Count(seen.window));
}

bool is_fused(ElementType type, const AttentionShape& shape) {
  const AttentionWidths& widths = shape.widths;
  return type == ElementType::bf16 && widths.head_size % 8 == 0 &&
         widths.head_size <= kMaxHeadSize && widths.heads <= kMaxBlocks;
}

void fused_attention(const CudaQueue& queue, const AttentionShape& shape, CUdeviceptr context,
                     CUdeviceptr logsumexp, CUdeviceptr qkv) {
  launch_heads(queue, shape, shape.widths.heads, "attention_forward",
               tile_floats(shape, 2 * kAttentionRows), context, logsumexp, qkv);
}

void fused_attention_gradient(const CudaQueue& queue, const AttentionShape& shape,
                              CUdeviceptr qkv_gradient, CUdeviceptr context_gradient,
                              CUdeviceptr context, CUdeviceptr logsumexp, CUdeviceptr qkv,
                              CUdeviceptr products) {
  const bool is_wide = tile_columns(shape) > 64;
  launch_heads(queue, shape, shape.widths.heads, "attention_query_gradient",
               tile_floats(shape, (is_wide ? 1 : 2) * kAttentionRows), qkv_gradient, products,
               context_gradient, context, qkv, logsumexp);
  const std::int64_t queries = is_wide ? 16 : 64;
  launch_heads(queue, shape, shape.widths.kv_heads, "attention_key_gradient",
               tile_floats(shape, 2 * kAttentionRows + 2 * queries) + 2 * queries, qkv_gradient,
               products, context_gradient, qkv, logsumexp);
}

// The ends of a network.

void lookup(const CudaQueue& queue, ElementType type, CUdeviceptr y, CUdeviceptr ids,
            CUdeviceptr table, CUdeviceptr positions, std::int64_t tokens, const Rows& shape) {
  launch_rows(queue, named("lookup", type), shape, y, ids, table, positions, Count(tokens),
              Count(shape.columns));
}

void add_lookup_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr table_gradient,
                         CUdeviceptr y_gradient, CUdeviceptr ids, CUdeviceptr next,
                         const Rows& shape) {
  PLUMBLINE_CHECK(shape.rows <= std::int64_t{1} << 24U, shape.rows);
  launch(queue, "plumbline_next_lookups", {shape.rows}, kThreads, kThreads, next, ids,
         Count(shape.rows));
  const std::int64_t threads = std::min(divided_up(shape.columns, 32) * 32, kThreads);
  launch(queue, named("lookup_gradient", type), {shape.rows, divided_up(shape.columns, threads)},
         threads, 0, table_gradient, y_gradient, ids, next, Count(shape.rows),
         Count(shape.columns));
}

void softmax_loss(const CudaQueue& queue, ElementType type, CUdeviceptr logits,
                  CUdeviceptr row_losses, CUdeviceptr labels, const Rows& shape) {
  launch_rows(queue, named("softmax_loss", type), shape, logits, row_losses, labels,
              Count(shape.columns));
}

void sample_losses(const CudaQueue& queue, CUdeviceptr losses, CUdeviceptr row_losses,
                   std::int64_t samples, std::int64_t rows_of_sample) {
  launch_rows(queue, "plumbline_sample_losses", {samples, rows_of_sample}, losses, row_losses,
              Count(rows_of_sample));
}

void logits_gradient(const CudaQueue& queue, ElementType type, CUdeviceptr gradient,
                     CUdeviceptr probabilities, CUdeviceptr loss_weights, CUdeviceptr labels,
                     const Rows& shape, std::int64_t rows_of_sample, std::int64_t first) {
  launch_rows(queue, named("logits_gradient", type), shape, gradient, probabilities, loss_weights,
              labels, Count(shape.columns), Count(rows_of_sample), Count(first));
}

// Updates.

void add_up(const CudaQueue& queue, ElementType type, CUdeviceptr sum,
            const std::vector<CUdeviceptr>& members, std::int64_t count) {
  launch_over(queue, named("add_up", type), count, sum, members_of(members), Count(count));
}

void descend(const CudaQueue& queue, ElementType type, CUdeviceptr after, CUdeviceptr before,
             CUdeviceptr gradient, double rate, std::int64_t count) {
  launch_over(queue, named("descend", type), count, after, before, gradient, float(rate),
              Count(count));
}

void count_step(const CudaQueue& queue, CUdeviceptr steps) {
  launch(queue, "plumbline_count_step", {}, 1, 0, steps);
}

void descend_with_moments(const CudaQueue& queue, ElementType type, CUdeviceptr after,
                          CUdeviceptr before, CUdeviceptr gradient, CUdeviceptr first_moment,
                          CUdeviceptr second_moment, CUdeviceptr steps, double rate,
                          std::int64_t count) {
  launch_over(queue, named("descend_with_moments", type), count, after, before, gradient,
              first_moment, second_moment, steps, float(rate), Count(count));
}

void product(const CudaQueue& queue, ElementType type, const CudaGemm& p) {
  const GemmShape shape{p.rows,     p.columns,  p.depth,  p.batch,    p.a.stride,
                        p.a.step,   p.b.stride, p.b.step, p.c.stride, p.c.step,
                        p.a.turned, p.b.turned, p.alpha,  p.beta};
  launch_tiles(queue, named("product", type), {p.rows, p.columns}, p.batch, p.a.data, p.b.data,
               p.c.data, shape);
}

}  // namespace plumbline::cuda
