// Norms over rows, and sums over columns.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/kernels/column_sums.h"
#include "calibrate/cuda/kernels/element.h"

namespace plumbline::kernels {

constexpr float kNormEpsilon = 1e-5F;

// A norm without `mean` is an rms norm: its mean counts as zero, and it has no shift.

/// y = scale (x - mean) rstd + shift with rstd = 1 / sqrt(variance + 1e-5). One block per row of
/// `features`. Writes mean and rstd.
template <class T>
__device__ void layer_norm(T* y, float* mean, float* rstd, const T* x, const T* scale,
                           const T* shift, long long features) {
  const T* from = x + blockIdx.x * features;
  T* to = y + blockIdx.x * features;
  const auto count = static_cast<float>(features);
  float middle = 0;
  if (mean != nullptr) {
    float sum = 0;
    for (long long i = threadIdx.x; i < features; i += blockDim.x) sum += to_float(from[i]);
    middle = block_sum(sum) / count;
  }
  float squares = 0;
  for (long long i = threadIdx.x; i < features; i += blockDim.x) {
    const float off = to_float(from[i]) - middle;
    squares += off * off;
  }
  const float factor = 1.0F / sqrtf(block_sum(squares) / count + kNormEpsilon);
  for (long long i = threadIdx.x; i < features; i += blockDim.x) {
    const float normed = (to_float(from[i]) - middle) * factor;
    const float scaled = to_float(scale[i]) * normed;
    store(to[i], shift == nullptr ? scaled : scaled + to_float(shift[i]));
  }
  if (threadIdx.x == 0) {
    if (mean != nullptr) mean[blockIdx.x] = middle;
    rstd[blockIdx.x] = factor;
  }
}

/// With n = (x - mean) rstd and g = scale x output gradient, writes rstd (g - mean(g) - n mean(g
/// n)), plus the skip's row if there is one; without a mean, mean(g) counts as zero. One block per
/// row.
template <class T>
__device__ void layer_norm_input_gradient(T* x_gradient, const T* y_gradient, const T* skip,
                                          const T* x, const float* mean, const float* rstd,
                                          const T* scale, long long features) {
  const long long row = blockIdx.x * features;
  const float middle = mean == nullptr ? 0.0F : mean[blockIdx.x];
  const float factor = rstd[blockIdx.x];
  float sum = 0;
  float sum_with_n = 0;
  for (long long i = threadIdx.x; i < features; i += blockDim.x) {
    const float n = (to_float(x[row + i]) - middle) * factor;
    const float g = to_float(scale[i]) * to_float(y_gradient[row + i]);
    sum += g;
    sum_with_n += g * n;
  }
  const float mean_g = mean == nullptr ? 0.0F : block_sum(sum) / static_cast<float>(features);
  const float mean_gn = block_sum(sum_with_n) / static_cast<float>(features);
  for (long long i = threadIdx.x; i < features; i += blockDim.x) {
    const float n = (to_float(x[row + i]) - middle) * factor;
    const float g = to_float(scale[i]) * to_float(y_gradient[row + i]);
    const float gradient = factor * (g - mean_g - n * mean_gn);
    store(x_gradient[row + i], skip == nullptr ? gradient : gradient + to_float(skip[row + i]));
  }
}

template <class T>
__device__ void column_partial_sums(float* partial, const T* x, long long rows, long long columns,
                                    long long chunk) {
  partial_sums(partial, rows, columns, chunk, [&](long long row, long long column) {
    return to_float(x[row * columns + column]);
  });
}

/// For the scale of a norm: the output's gradient times the normed input.
template <class T>
__device__ void scale_partial_sums(float* partial, const T* y_gradient, const T* x,
                                   const float* mean, const float* rstd, long long rows,
                                   long long features, long long chunk) {
  partial_sums(partial, rows, features, chunk, [&](long long row, long long column) {
    const long long at = row * features + column;
    const float middle = mean == nullptr ? 0.0F : mean[row];
    return to_float(y_gradient[at]) * ((to_float(x[at]) - middle) * rstd[row]);
  });
}

/// Adds the partial sums to the old sums.
template <class T>
__device__ void add_partial_sums(T* sums, const float* partial, long long chunks,
                                 long long columns) {
  for (long long i = grid_first(); i < columns; i += grid_step()) {
    float sum = 0;
    for (long long c = 0; c < chunks; ++c) sum += partial[c * columns + i];
    store(sums[i], to_float(sums[i]) + sum);
  }
}

}  // namespace plumbline::kernels

PLUMBLINE_KERNEL(layer_norm,
                 (Element * y, float* mean, float* rstd, const Element* x, const Element* scale,
                  const Element* shift, long long features),
                 (y, mean, rstd, x, scale, shift, features))
PLUMBLINE_KERNEL(layer_norm_input_gradient,
                 (Element * x_gradient, const Element* y_gradient, const Element* skip,
                  const Element* x, const float* mean, const float* rstd, const Element* scale,
                  long long features),
                 (x_gradient, y_gradient, skip, x, mean, rstd, scale, features))
PLUMBLINE_KERNEL(column_partial_sums,
                 (float* partial, const Element* x, long long rows, long long columns,
                  long long chunk),
                 (partial, x, rows, columns, chunk))
PLUMBLINE_KERNEL(scale_partial_sums,
                 (float* partial, const Element* y_gradient, const Element* x, const float* mean,
                  const float* rstd, long long rows, long long features, long long chunk),
                 (partial, y_gradient, x, mean, rstd, rows, features, chunk))
PLUMBLINE_KERNEL(add_partial_sums,
                 (Element * sums, const float* partial, long long chunks, long long columns),
                 (sums, partial, chunks, columns))
