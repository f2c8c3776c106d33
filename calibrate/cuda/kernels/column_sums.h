// Sums over columns, in two steps.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "calibrate/cuda/kernels/element.h"

namespace plumbline::kernels {

// First blocks sum `chunk` rows each into partial sums [chunks, columns], then these are added up
// in order (add_partial_sums). A block is 32 columns wide, grid.x is along the columns and grid.y
// along the chunks.

constexpr unsigned kColumns = 32;

/// Sums term(row, column) over this block's rows; one float of shared memory per thread.
template <class Term>
__device__ void partial_sums(float* partial, long long rows, long long columns, long long chunk,
                             const Term& term) {
  const unsigned along = threadIdx.x % kColumns;
  const unsigned down = threadIdx.x / kColumns;
  const long long column = static_cast<long long>(blockIdx.x) * kColumns + along;
  const long long first = blockIdx.y * chunk;
  const long long last = first + chunk < rows ? first + chunk : rows;
  float sum = 0;
  if (column < columns) {
    for (long long row = first + down; row < last; row += blockDim.x / kColumns)
      sum += term(row, column);
  }
  shared[threadIdx.x] = sum;
  __syncthreads();
  if (down == 0 && column < columns) {
    for (unsigned i = threadIdx.x + kColumns; i < blockDim.x; i += kColumns) sum += shared[i];
    partial[blockIdx.y * columns + column] = sum;
  }
  __syncthreads();  // before shared memory is used again
}

}  // namespace plumbline::kernels
