// Rows of a table by their ids. SPDX-License-Identifier: MIT
#include "calibrate/cuda/kernels/element.h"

namespace plumbline::kernels {

/// One row of the table for each id, and the vector of the position (row modulo tokens) where there
/// are positions. A block for each id.
template <class T>
__device__ void lookup(T* y, const int* ids, const T* table, const T* positions, long long tokens,
                       long long features) {
  const T* entry = table + ids[blockIdx.x] * features;
  const T* position = positions == nullptr ? nullptr : positions + blockIdx.x % tokens * features;
  T* to = y + blockIdx.x * features;
  for (long long i = threadIdx.x; i < features; i += blockDim.x) {
    const float value = to_float(entry[i]);
    store(to[i], position == nullptr ? value : value + to_float(position[i]));
  }
}

/// Adds the rows of the output's gradient to those of the table. A block for each id (grid.x) and
/// as many features as it has threads (grid.y): the block of the first row with an id adds up all
/// rows with that id in order, the others have nothing to do. So no two write the same place, and
/// the work is rows^2, not rows x entries of the table. An int of shared memory for each thread.
template <class T>
__device__ void lookup_gradient(T* table_gradient, const T* y_gradient, const int* ids,
                                long long rows, long long features) {
  const long long own = blockIdx.x;
  const int id = ids[own];
  float earlier = 0;
  for (long long row = threadIdx.x; row < own; row += blockDim.x) {
    if (ids[row] == id) earlier = 1;
  }
  if (block_maximum(earlier) > 0) return;
  const long long column = static_cast<long long>(blockIdx.y) * blockDim.x + threadIdx.x;
  int* const some_ids = reinterpret_cast<int*>(shared);
  float sum = 0;
  for (long long first = own; first < rows; first += blockDim.x) {
    if (first + threadIdx.x < rows) some_ids[threadIdx.x] = ids[first + threadIdx.x];
    __syncthreads();
    for (long long i = 0; i < blockDim.x && first + i < rows; ++i) {
      if (some_ids[i] == id && column < features)
        sum += to_float(y_gradient[(first + i) * features + column]);
    }
    __syncthreads();
  }
  if (column >= features) return;
  T& to = table_gradient[id * features + column];
  store(to, to_float(to) + sum);
}

}  // namespace plumbline::kernels

PLUMBLINE_KERNEL(lookup,
                 (Element * y, const int* ids, const Element* table, const Element* positions,
                  long long tokens, long long features),
                 (y, ids, table, positions, tokens, features))
PLUMBLINE_KERNEL(lookup_gradient,
                 (Element * table_gradient, const Element* y_gradient, const int* ids,
                  long long rows, long long features),
                 (table_gradient, y_gradient, ids, rows, features))
