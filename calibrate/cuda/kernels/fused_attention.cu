// Attention without scores in memory (Dao 2023, "FlashAttention-2", algorithms 1 and 2), in bf16 on
// the matrix units.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/kernels/warp.h"

namespace plumbline::kernels {

// Blocks have 128 threads. A warp has 16 of 64 queries (of 64 keys for the gradients of keys and
// values), and all warps go through the others tile by tile. A grid has one block per 64 of these
// (x), per head of theirs (y) and per sample (z, every gridDim.z-th). D is at least the head size;
// columns beyond it are zero. Sums are fp32; probabilities and their gradients are bf16 in
// products.

constexpr int kAttentionRows = 64;
constexpr float kUnseen = -1e30F;

/// Row t of qkv holds all of Q (`queries` columns), then K and V (`keys` columns each). In each,
/// head j begins at column j x head_size; head j of queries sees head j / sharing of keys and
/// values. Head sizes are multiples of 8.
struct AttentionShape {
  long long batch, tokens, queries, keys;
  long long window;  ///< The most keys that a query sees; 0 = all.
  int head_size, sharing;
  int causal;
  float factor;  ///< The factor of the scores.

  __device__ long long stride() const { return queries + 2 * keys; }
  __device__ bool sees(long long query, long long key) const {
    return key < tokens && (causal == 0 || key <= query) && (window == 0 || key > query - window);
  }
};

/// 16 bytes.
struct alignas(16) EightBf16 {
  Bf16 elements[8];
};

/// Copies rows first.. of a head into a tile; elements beyond the rows or the head are zero.
template <int D>
__device__ void load_tile(const WarpTile<D>& tile, int rows, const Bf16* from, long long stride,
                          long long first, const AttentionShape& shape) {
  constexpr int kChunks = D / 8;
  for (int i = static_cast<int>(threadIdx.x); i < rows * kChunks;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / kChunks;
    const int column = i % kChunks * 8;
    EightBf16 eight = {};
    if (first + row < shape.tokens && column < shape.head_size)
      eight = *reinterpret_cast<const EightBf16*>(from + (first + row) * stride + column);
    *reinterpret_cast<EightBf16*>(tile.rows + row * WarpTile<D>::kPitch + column) = eight;
  }
}

/// Writes the warp's 16 rows of sums, from row `first` on, each times `factor` of its half.
template <int D>
__device__ void store_rows(Bf16* to, long long stride, long long first,
                           const float (&sums)[D / 8][4], const float (&factor)[2],
                           const AttentionShape& shape) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  for (int half = 0; half < 2; ++half) {
    const long long row = first + lane / 4 + 8 * half;
    if (row >= shape.tokens) continue;
    PLUMBLINE_UNROLL
    for (int j = 0; j < D / 8; ++j) {
      const int column = 8 * j + lane % 4 * 2;
      if (column >= shape.head_size) continue;
      store_pair(to + row * stride + column, sums[j][2 * half] * factor[half],
                 sums[j][2 * half + 1] * factor[half]);
    }
  }
}

/// The left operand of a product: 16 rows that a warp keeps in registers.
template <int D>
struct KeptRows {
  unsigned of[D / 16][4];

  __device__ void load(const WarpTile<D>& tile, int row) {
    PLUMBLINE_UNROLL
    for (int k = 0; k < D / 16; ++k) tile.left(of[k], row, 16 * k);
  }
  __device__ void operator()(int k, unsigned (&to)[4]) const {
    PLUMBLINE_UNROLL
    for (int i = 0; i < 4; ++i) to[i] = of[k][i];
  }
};

/// The same, read from shared memory at every use.
template <int D>
struct SharedRows {
  WarpTile<D> tile;
  int row;

  __device__ void operator()(int k, unsigned (&to)[4]) const { tile.left(to, row, 16 * k); }
};

/// The start of a head of queries of a sample, and of its keys and values, all in qkv; of the head
/// in context, and in tensors with one number per row.
struct HeadPlace {
  long long queries, keys, values, in_context, in_rows;
};

/// `heads` is the number of all heads of queries.
__device__ inline HeadPlace head_place(long long sample, long long head, long long heads,
                                       const AttentionShape& shape) {
  const long long row = sample * shape.tokens * shape.stride();
  const long long keys = row + shape.queries + head / shape.sharing * shape.head_size;
  return {row + head * shape.head_size, keys, keys + shape.keys,
          sample * shape.tokens * shape.queries + head * shape.head_size,
          (sample * heads + head) * shape.tokens};
}

/// The block's first query, and the keys [from, end) that its queries see.
struct QueryRows {
  long long first, from, end;
};

/// If causal, the last rows take longest, so they begin first. Every query sees one of the 64 keys
/// from `from` on.
__device__ inline QueryRows query_rows(const AttentionShape& shape) {
  const long long first = static_cast<long long>(gridDim.x - 1 - blockIdx.x) * kAttentionRows;
  const long long behind = first + kAttentionRows;
  const bool is_cut = shape.window > 0 && first + 1 > shape.window;
  return {first, is_cut ? first + 1 - shape.window : 0,
          shape.causal != 0 && behind < shape.tokens ? behind : shape.tokens};
}

/// Writes context [batch, tokens, queries] and logsumexp [batch, heads, tokens] from qkv.
template <int D>
__device__ void attention_forward(Bf16* context, float* logsumexp, const Bf16* qkv,
                                  AttentionShape shape) {
  constexpr int kKeys = 64;
  const WarpTile<D> keys{reinterpret_cast<Bf16*>(shared)};
  const WarpTile<D> values{keys.rows + kKeys * WarpTile<D>::kPitch};
  const int warp = static_cast<int>(threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const long long stride = shape.stride();
  const auto [first, from, end] = query_rows(shape);
  const long long own = first + warp * 16;
  const float factor = shape.factor * kLog2E;
  for (long long sample = blockIdx.z; sample < shape.batch; sample += gridDim.z) {
    const HeadPlace head = head_place(sample, blockIdx.y, gridDim.y, shape);
    load_tile(keys, kAttentionRows, qkv + head.queries, stride, first, shape);
    __syncthreads();
    KeptRows<D> queries;
    queries.load(keys, warp * 16);
    __syncthreads();
    float sums[D / 8][4] = {};
    float max[2] = {kUnseen, kUnseen};
    float total[2] = {};  // over the scores that this lane has seen
    for (long long key = from; key < end; key += kKeys) {
      load_tile(keys, kKeys, qkv + head.keys, stride, key, shape);
      load_tile(values, kKeys, qkv + head.values, stride, key, shape);
      __syncthreads();
      float scores[kKeys / 8][4] = {};
      multiply_rows(scores, queries, keys);
      PLUMBLINE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const long long row = own + lane / 4 + 8 * half;
        float largest = max[half];
        PLUMBLINE_UNROLL
        for (int j = 0; j < kKeys / 8; ++j) {
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            const long long column = key + 8 * j + lane % 4 * 2 + i % 2;
            scores[j][i] = shape.sees(row, column) ? scores[j][i] * factor : kUnseen;
            largest = scores[j][i] > largest ? scores[j][i] : largest;
          }
        }
        largest = group_maximum(largest);
        const float shrunk = exp2f(max[half] - largest);
        max[half] = largest;
        total[half] *= shrunk;
        PLUMBLINE_UNROLL
        for (int j = 0; j < kKeys / 8; ++j) {
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            scores[j][i] = exp2f(scores[j][i] - largest);
            total[half] += scores[j][i];
          }
        }
        PLUMBLINE_UNROLL
        for (int j = 0; j < D / 8; ++j) {
          sums[j][2 * half] *= shrunk;
          sums[j][2 * half + 1] *= shrunk;
        }
      }
      multiply_sums(sums, scores, values);
      __syncthreads();
    }
    float share[2];
    for (int half = 0; half < 2; ++half) {
      total[half] = group_sum(total[half]);
      share[half] = 1.0F / total[half];
      const long long row = own + lane / 4 + 8 * half;
      if (lane % 4 == 0 && row < shape.tokens)
        logsumexp[head.in_rows + row] = max[half] / kLog2E + logf(total[half]);
    }
    store_rows<D>(context + head.in_context, shape.queries, own, sums, share, shape);
  }
}

/// Writes the gradient of Q in qkv_gradient, and products [batch, heads, tokens]: for each row the
/// sum of context times its gradient, which attention_key_gradient needs.
template <int D>
__device__ void attention_query_gradient(Bf16* qkv_gradient, float* products,
                                         const Bf16* context_gradient, const Bf16* context,
                                         const Bf16* qkv, const float* logsumexp,
                                         AttentionShape shape) {
  constexpr int kKeys = D > 64 ? 32 : 64;
  // The rows of queries, then those of keys and values.
  const WarpTile<D> rows{reinterpret_cast<Bf16*>(shared)};
  const WarpTile<D>& keys = rows;
  const WarpTile<D> values{keys.rows + kKeys * WarpTile<D>::kPitch};
  const int warp = static_cast<int>(threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const long long stride = shape.stride();
  const auto [first, from, end] = query_rows(shape);
  const long long own = first + warp * 16;
  for (long long sample = blockIdx.z; sample < shape.batch; sample += gridDim.z) {
    const HeadPlace head = head_place(sample, blockIdx.y, gridDim.y, shape);
    KeptRows<D> queries;
    load_tile(rows, kAttentionRows, qkv + head.queries, stride, first, shape);
    __syncthreads();
    queries.load(rows, warp * 16);
    __syncthreads();
    KeptRows<D> gradients;
    load_tile(rows, kAttentionRows, context_gradient + head.in_context, shape.queries, first,
              shape);
    __syncthreads();
    gradients.load(rows, warp * 16);
    __syncthreads();
    load_tile(rows, kAttentionRows, context + head.in_context, shape.queries, first, shape);
    __syncthreads();
    float product[2] = {};
    PLUMBLINE_UNROLL
    for (int k = 0; k < D / 16; ++k) {
      unsigned made[4];
      rows.left(made, warp * 16, 16 * k);
      for (int i = 0; i < 4; ++i) product[i % 2] += dot(made[i], gradients.of[k][i]);
    }
    __syncthreads();
    float normalizer[2] = {};
    for (int half = 0; half < 2; ++half) {
      product[half] = group_sum(product[half]);
      const long long row = own + lane / 4 + 8 * half;
      if (row >= shape.tokens) continue;
      normalizer[half] = logsumexp[head.in_rows + row] * kLog2E;
      if (lane % 4 == 0) products[head.in_rows + row] = product[half];
    }
    float sums[D / 8][4] = {};
    for (long long key = from; key < end; key += kKeys) {
      load_tile(keys, kKeys, qkv + head.keys, stride, key, shape);
      load_tile(values, kKeys, qkv + head.values, stride, key, shape);
      __syncthreads();
      float scores[kKeys / 8][4] = {};
      multiply_rows(scores, queries, keys);
      float changes[kKeys / 8][4] = {};
      multiply_rows(changes, gradients, values);
      PLUMBLINE_UNROLL
      for (int j = 0; j < kKeys / 8; ++j) {
        PLUMBLINE_UNROLL
        for (int i = 0; i < 4; ++i) {
          const int half = i / 2;
          const long long row = own + lane / 4 + 8 * half;
          const long long column = key + 8 * j + lane % 4 * 2 + i % 2;
          const float probability =
              shape.sees(row, column)
                  ? exp2f(scores[j][i] * (shape.factor * kLog2E) - normalizer[half])
                  : 0.0F;
          changes[j][i] = probability * (changes[j][i] - product[half]);
        }
      }
      multiply_sums(sums, changes, keys);
      __syncthreads();
    }
    const float factors[2] = {shape.factor, shape.factor};
    store_rows<D>(qkv_gradient + head.queries, stride, own, sums, factors, shape);
  }
}

/// Writes the gradients of K and V in qkv_gradient: sums over all heads of queries that share them.
template <int D>
__device__ void attention_key_gradient(Bf16* qkv_gradient, const float* products,
                                       const Bf16* context_gradient, const Bf16* qkv,
                                       const float* logsumexp, AttentionShape shape) {
  constexpr int kQueries = D > 64 ? 16 : 64;
  const WarpTile<D> keys{reinterpret_cast<Bf16*>(shared)};
  const WarpTile<D> values{keys.rows + kAttentionRows * WarpTile<D>::kPitch};
  const WarpTile<D> queries{values.rows + kAttentionRows * WarpTile<D>::kPitch};
  const WarpTile<D> gradients{queries.rows + kQueries * WarpTile<D>::kPitch};
  float* const normalizers =
      reinterpret_cast<float*>(gradients.rows + kQueries * WarpTile<D>::kPitch);
  float* const of_rows = normalizers + kQueries;
  const int warp = static_cast<int>(threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const long long stride = shape.stride();
  const long long first = static_cast<long long>(blockIdx.x) * kAttentionRows;
  const long long own = first + warp * 16;
  const long long heads = static_cast<long long>(gridDim.y) * shape.sharing;
  // The queries [from, end) that see any of the block's keys.
  const long long from = shape.causal != 0 ? first : 0;
  const long long behind = first + kAttentionRows - 1 + shape.window;
  const long long end = shape.window > 0 && behind < shape.tokens ? behind : shape.tokens;
  const long long tiles = (end - from + kQueries - 1) / kQueries;
  for (long long sample = blockIdx.z; sample < shape.batch; sample += gridDim.z) {
    const long long first_head = static_cast<long long>(blockIdx.y) * shape.sharing;
    const HeadPlace shared_head = head_place(sample, first_head, heads, shape);
    load_tile(keys, kAttentionRows, qkv + shared_head.keys, stride, first, shape);
    load_tile(values, kAttentionRows, qkv + shared_head.values, stride, first, shape);
    float key_sums[D / 8][4] = {};
    float value_sums[D / 8][4] = {};
    for (long long tile = 0; tile < tiles * shape.sharing; ++tile) {
      const HeadPlace head = head_place(sample, first_head + tile / tiles, heads, shape);
      const long long query = from + tile % tiles * kQueries;
      load_tile(queries, kQueries, qkv + head.queries, stride, query, shape);
      load_tile(gradients, kQueries, context_gradient + head.in_context, shape.queries, query,
                shape);
      for (int i = static_cast<int>(threadIdx.x); i < kQueries; i += static_cast<int>(blockDim.x)) {
        const bool is_there = query + i < shape.tokens;
        normalizers[i] = is_there ? logsumexp[head.in_rows + query + i] * kLog2E : 0.0F;
        of_rows[i] = is_there ? products[head.in_rows + query + i] : 0.0F;
      }
      __syncthreads();
      // Turned: one row per key.
      float probabilities[kQueries / 8][4] = {};
      multiply_rows(probabilities, SharedRows<D>{keys, warp * 16}, queries);
      float changes[kQueries / 8][4] = {};
      multiply_rows(changes, SharedRows<D>{values, warp * 16}, gradients);
      PLUMBLINE_UNROLL
      for (int j = 0; j < kQueries / 8; ++j) {
        PLUMBLINE_UNROLL
        for (int i = 0; i < 4; ++i) {
          const long long row = own + lane / 4 + 8 * (i / 2);
          const int of_query = 8 * j + lane % 4 * 2 + i % 2;
          const long long column = query + of_query;
          const bool is_seen = column < shape.tokens && shape.sees(column, row);
          const float probability =
              is_seen ? exp2f(probabilities[j][i] * (shape.factor * kLog2E) - normalizers[of_query])
                      : 0.0F;
          probabilities[j][i] = probability;
          changes[j][i] = probability * (changes[j][i] - of_rows[of_query]);
        }
      }
      multiply_sums(value_sums, probabilities, gradients);
      multiply_sums(key_sums, changes, queries);
      __syncthreads();
    }
    const float factors[2] = {shape.factor, shape.factor};
    const float ones[2] = {1.0F, 1.0F};
    store_rows<D>(qkv_gradient + shared_head.keys, stride, own, key_sums, factors, shape);
    store_rows<D>(qkv_gradient + shared_head.values, stride, own, value_sums, ones, shape);
  }
}

}  // namespace plumbline::kernels

/// Defines plumbline_attention_..._<D>.
#define PLUMBLINE_HEAD_KERNEL(name, D, parameters, arguments)                         \
  namespace plumbline::kernels {                                                      \
  extern "C" __global__ void plumbline_##name##_##D parameters { name<D> arguments; } \
  PLUMBLINE_KERNEL_NAMED(plumbline_##name##_##D)                                      \
  }
#define PLUMBLINE_HEAD_KERNELS(D)                                                                  \
  PLUMBLINE_HEAD_KERNEL(attention_forward, D,                                                      \
                        (Bf16 * context, float* logsumexp, const Bf16* qkv, AttentionShape shape), \
                        (context, logsumexp, qkv, shape))                                          \
  PLUMBLINE_HEAD_KERNEL(                                                                           \
      attention_query_gradient, D,                                                                 \
      (Bf16 * qkv_gradient, float* products, const Bf16* context_gradient, const Bf16* context,    \
       const Bf16* qkv, const float* logsumexp, AttentionShape shape),                             \
      (qkv_gradient, products, context_gradient, context, qkv, logsumexp, shape))                  \
  PLUMBLINE_HEAD_KERNEL(attention_key_gradient, D,                                                 \
                        (Bf16 * qkv_gradient, const float* products, const Bf16* context_gradient, \
                         const Bf16* qkv, const float* logsumexp, AttentionShape shape),           \
                        (qkv_gradient, products, context_gradient, qkv, logsumexp, shape))

PLUMBLINE_HEAD_KERNELS(32)
PLUMBLINE_HEAD_KERNELS(64)
PLUMBLINE_HEAD_KERNELS(128)
