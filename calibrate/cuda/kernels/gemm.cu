// A plain matrix product, for use without a library.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/kernels/element.h"
#include "calibrate/cuda/kernels/tile.h"

namespace plumbline::kernels {

/// As CudaGemm.
struct GemmShape {
  long long rows, columns, depth, batch;
  long long a_stride, a_step, b_stride, b_step, c_stride, c_step;
  int a_turned, b_turned;
  float alpha, beta;
};

/// grid.x = tiles along the columns, grid.y along the rows, grid.z over the batch. Shared memory:
/// that of a tile.
template <class T>
__device__ void product(const T* a, const T* b, T* c, const GemmShape& shape) {
  const bool a_along_depth = shape.a_turned == 0;
  const bool b_along_depth = shape.b_turned != 0;
  for (long long z = blockIdx.z; z < shape.batch; z += gridDim.z) {
    const T* const a_of = a + z * shape.a_step;
    const T* const b_of = b + z * shape.b_step;
    T* const c_of = c + z * shape.c_step;
    multiply_tiles(
        {shape.rows, shape.columns, 0, shape.depth, a_along_depth, b_along_depth},
        [&](long long row, long long k) {
          return to_float(
              a_of[a_along_depth ? row * shape.a_stride + k : k * shape.a_stride + row]);
        },
        [&](long long column, long long k) {
          return to_float(
              b_of[b_along_depth ? column * shape.b_stride + k : k * shape.b_stride + column]);
        },
        [&](long long row, long long column, float sum) {
          T& to = c_of[row * shape.c_stride + column];
          // C is not read if beta is 0: it may be NaN.
          const float before = shape.beta == 0 ? 0.0F : shape.beta * to_float(to);
          store(to, shape.alpha * sum + before);
        });
  }
}

}  // namespace plumbline::kernels

PLUMBLINE_KERNEL(product, (const Element* a, const Element* b, Element* c, GemmShape shape),
                 (a, b, c, shape))
