// Products by tiles in shared memory. Functions give the operands' elements.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "calibrate/cuda/kernels/element.h"

namespace plumbline::kernels {

// 256 threads make a tile of 64 x 64 results. Each thread makes 4 x 4 of them, whose rows and
// columns lie 16 apart, so that neighbouring threads read and write neighbouring elements. Shared
// memory (2 x 16 x 65 floats) holds 16 steps of the depth of both operands at a time: the left one
// as [depth][row], the right one as [depth][column], rows padded by one.
constexpr int kTile = 64;
constexpr int kTileDepth = 16;
constexpr int kTilePitch = kTile + 1;
constexpr int kSide = 16;  // threads along each extent
constexpr int kEach = kTile / kSide;

/// Loads element(i, k) into tile[k][i]; i runs along the result from `first_i`, k along the depth.
/// Elements beyond the extents are 0. `along_depth`: neighbours in memory are neighbours in k.
template <class Element>
__device__ void load_tile(float* tile, const Element& element, bool along_depth, long long first_i,
                          long long extent, long long first_k, long long last_k) {
  for (int e = static_cast<int>(threadIdx.x); e < kTile * kTileDepth; e += kSide * kSide) {
    const int i = along_depth ? e / kTileDepth : e % kTile;
    const int k = along_depth ? e % kTileDepth : e / kTile;
    const long long at_i = first_i + i;
    const long long at_k = first_k + k;
    tile[k * kTilePitch + i] = at_i < extent && at_k < last_k ? element(at_i, at_k) : 0.0F;
  }
}

/// The shape of a product: `rows` x `columns` sums over the depth first_k..last_k-1.
struct TileShape {
  long long rows, columns, first_k, last_k;
  bool left_along_depth, right_along_depth;
};

/// Calls make(row, column, sum) for the sums of left(row, k) x right(column, k). A block takes the
/// columns of tile blockIdx.x, and the rows of tile blockIdx.y and every gridDim.y-th after it.
template <class Left, class Right, class Make>
__device__ void multiply_tiles(const TileShape& shape, const Left& left, const Right& right,
                               const Make& make) {
  float* const left_tile = shared;
  float* const right_tile = shared + kTileDepth * kTilePitch;
  const int across = static_cast<int>(threadIdx.x) % kSide;
  const int down = static_cast<int>(threadIdx.x) / kSide;
  const long long first_column = static_cast<long long>(blockIdx.x) * kTile;
  for (long long first_row = static_cast<long long>(blockIdx.y) * kTile; first_row < shape.rows;
       first_row += static_cast<long long>(gridDim.y) * kTile) {
    float sums[kEach][kEach] = {};
    for (long long k = shape.first_k; k < shape.last_k; k += kTileDepth) {
      load_tile(left_tile, left, shape.left_along_depth, first_row, shape.rows, k, shape.last_k);
      load_tile(right_tile, right, shape.right_along_depth, first_column, shape.columns, k,
                shape.last_k);
      __syncthreads();
      for (int j = 0; j < kTileDepth; ++j) {
        for (int r = 0; r < kEach; ++r) {
          const float factor = left_tile[j * kTilePitch + down + r * kSide];
          for (int s = 0; s < kEach; ++s)
            sums[r][s] += factor * right_tile[j * kTilePitch + across + s * kSide];
        }
      }
      __syncthreads();
    }
    for (int r = 0; r < kEach; ++r) {
      for (int s = 0; s < kEach; ++s) {
        const long long row = first_row + down + r * kSide;
        const long long column = first_column + across + s * kSide;
        if (row < shape.rows && column < shape.columns) make(row, column, sums[r][s]);
      }
    }
  }
}

}  // namespace plumbline::kernels
