// Rows of a table by their ids.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/kernels/element.h"

namespace plumbline::kernels {

/// Writes one row of the table for each id, plus the vector of the position (row modulo tokens) if
/// there are positions. One block per id.
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

/// Finds the next row with the id of each row. `next[row]` is the first later row with it, or -1.
/// `next[rows + row]` is 1 for the first row with the id, else 0. One block per row; one float of
/// shared memory per thread. Rows must be exact as floats: at most 2^24.
__device__ inline void next_lookups(int* next, const int* ids, long long rows) {
  const long long own = blockIdx.x;
  const int id = ids[own];
  float earlier = 0;
  float later = static_cast<float>(rows);
  for (long long row = threadIdx.x; row < rows; row += blockDim.x) {
    if (ids[row] != id) continue;
    if (row < own) earlier = 1;
    if (row > own && static_cast<float>(row) < later) later = static_cast<float>(row);
  }
  const bool is_first = block_maximum(earlier) == 0;
  const auto found = static_cast<long long>(-block_maximum(-later));
  if (threadIdx.x != 0) return;
  next[own] = found < rows ? static_cast<int>(found) : -1;
  next[rows + own] = is_first ? 1 : 0;
}

/// Adds the rows of the output's gradient to those of the table. One block per id (grid.x) and per
/// as many features as it has threads (grid.y). The block of the first row with an id adds up all
/// rows with that id in order; the others do nothing. So no two blocks write the same place. `next`
/// is that of next_lookups.
template <class T>
__device__ void lookup_gradient(T* table_gradient, const T* y_gradient, const int* ids,
                                const int* next, long long rows, long long features) {
  const long long own = blockIdx.x;
  const long long column = static_cast<long long>(blockIdx.y) * blockDim.x + threadIdx.x;
  if (next[rows + own] == 0 || column >= features) return;
  float sum = 0;
  for (long long row = own; row >= 0; row = next[row])
    sum += to_float(y_gradient[row * features + column]);
  T& to = table_gradient[ids[own] * features + column];
  store(to, to_float(to) + sum);
}

}  // namespace plumbline::kernels

PLUMBLINE_KERNEL(lookup,
                 (Element * y, const int* ids, const Element* table, const Element* positions,
                  long long tokens, long long features),
                 (y, ids, table, positions, tokens, features))
PLUMBLINE_PLAIN_KERNEL(next_lookups, (int* next, const int* ids, long long rows), (next, ids, rows))
PLUMBLINE_KERNEL(lookup_gradient,
                 (Element * table_gradient, const Element* y_gradient, const int* ids,
                  const int* next, long long rows, long long features),
                 (table_gradient, y_gradient, ids, next, rows, features))
