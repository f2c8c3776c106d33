// A plain matrix product, where no library is. SPDX-License-Identifier: MIT
#include "calibrate/cuda/kernels/element.h"

namespace plumbline::kernels {

/// As CudaProduct.
struct ProductShape {
  long long rows, columns, depth, batch;
  long long a_stride, a_step, b_stride, b_step, c_stride, c_step;
  int a_turned, b_turned;
  float alpha, beta;
};

// 256 threads make a tile of 64 x 64 results, each a 4 x 4 of them whose rows and columns lie 16
// apart, so that neighbours read and write neighbours. Shared memory holds 16 of the depth of both
// operands at a time: A as [depth][row], B as [depth][column], rows padded by one.
constexpr int kTile = 64;
constexpr int kTileDepth = 16;
constexpr int kTilePitch = kTile + 1;
constexpr int kSide = 16;  // threads along each extent
constexpr int kEach = kTile / kSide;

/// Loads element (i, k) of an operand, i along the result, k along the depth, into tile[k][i];
/// beyond its extents stands 0. `along_depth`: neighbours in memory are neighbours in k.
template <class T>
__device__ void load_tile(float* tile, const T* data, long long stride, bool along_depth,
                          long long first, long long extent, long long first_k, long long depth) {
  for (int e = static_cast<int>(threadIdx.x); e < kTile * kTileDepth; e += kSide * kSide) {
    const int i = along_depth ? e / kTileDepth : e % kTile;
    const int k = along_depth ? e % kTileDepth : e / kTile;
    const long long at_i = first + i;
    const long long at_k = first_k + k;
    float value = 0;
    if (at_i < extent && at_k < depth)
      value = to_float(along_depth ? data[at_i * stride + at_k] : data[at_k * stride + at_i]);
    tile[k * kTilePitch + i] = value;
  }
}

/// grid.x = tiles along the columns, grid.y along the rows, grid.z over the batch. Shared memory:
/// 2 x 16 x 65 floats.
template <class T>
__device__ void product(const T* a, const T* b, T* c, const ProductShape& shape) {
  float* const a_tile = shared;
  float* const b_tile = shared + kTileDepth * kTilePitch;
  const int across = static_cast<int>(threadIdx.x) % kSide;
  const int down = static_cast<int>(threadIdx.x) / kSide;
  const long long first_column = static_cast<long long>(blockIdx.x) * kTile;
  for (long long z = blockIdx.z; z < shape.batch; z += gridDim.z) {
    for (long long first_row = static_cast<long long>(blockIdx.y) * kTile; first_row < shape.rows;
         first_row += static_cast<long long>(gridDim.y) * kTile) {
      float sums[kEach][kEach] = {};
      for (long long k = 0; k < shape.depth; k += kTileDepth) {
        load_tile(a_tile, a + z * shape.a_step, shape.a_stride, shape.a_turned == 0, first_row,
                  shape.rows, k, shape.depth);
        load_tile(b_tile, b + z * shape.b_step, shape.b_stride, shape.b_turned != 0, first_column,
                  shape.columns, k, shape.depth);
        __syncthreads();
        for (int j = 0; j < kTileDepth; ++j) {
          for (int r = 0; r < kEach; ++r) {
            const float left = a_tile[j * kTilePitch + down + r * kSide];
            for (int s = 0; s < kEach; ++s)
              sums[r][s] += left * b_tile[j * kTilePitch + across + s * kSide];
          }
        }
        __syncthreads();
      }
      for (int r = 0; r < kEach; ++r) {
        for (int s = 0; s < kEach; ++s) {
          const long long row = first_row + down + r * kSide;
          const long long column = first_column + across + s * kSide;
          if (row >= shape.rows || column >= shape.columns) continue;
          T& to = c[z * shape.c_step + row * shape.c_stride + column];
          // What is there is not read where it does not count: it may be no number.
          const float before = shape.beta == 0 ? 0.0F : shape.beta * to_float(to);
          store(to, shape.alpha * sums[r][s] + before);
        }
      }
    }
  }
}

}  // namespace plumbline::kernels

PLUMBLINE_KERNEL(product, (const Element* a, const Element* b, Element* c, ProductShape shape),
                 (a, b, c, shape))
