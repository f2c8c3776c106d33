// Heads of queries and keys between their product and attention: norms, rotary positions.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/kernels/column_sums.h"
#include "calibrate/cuda/kernels/element.h"

namespace plumbline::kernels {

/// Heads of `size` numbers in rows that lie `stride` elements apart. What is kept of them is for
/// more heads: `input` has `all` heads a row, `rstd` one number for each. All begin at the first of
/// these heads.
struct HeadRows {
  long long rows, stride, heads, size, all;
};

constexpr float kHeadNormEpsilon = 1e-5F;

/// An rms norm of each head, in place; writes what it was and its rstd. One block per head.
template <class T>
__device__ void norm_heads(T* heads, T* input, float* rstd, const T* scale, HeadRows shape) {
  const long long row = blockIdx.x / shape.heads;
  const long long head = blockIdx.x % shape.heads;
  T* const to = heads + row * shape.stride + head * shape.size;
  T* const before = input + (row * shape.all + head) * shape.size;
  float squares = 0;
  for (long long i = threadIdx.x; i < shape.size; i += blockDim.x) {
    const float x = to_float(to[i]);
    squares += x * x;
  }
  const float mean = block_sum(squares) / static_cast<float>(shape.size);
  const float factor = 1.0F / sqrtf(mean + kHeadNormEpsilon);
  for (long long i = threadIdx.x; i < shape.size; i += blockDim.x) {
    before[i] = to[i];
    store(to[i], to_float(scale[i]) * (to_float(to[i]) * factor));
  }
  if (threadIdx.x == 0) rstd[row * shape.all + head] = factor;
}

/// Turns the gradient of the output into that of the input, in place: with n = x rstd and g = scale
/// x gradient, rstd (g - n mean(g n)). One block per head.
template <class T>
__device__ void norm_heads_gradient(T* gradient, const T* input, const float* rstd, const T* scale,
                                    HeadRows shape) {
  const long long row = blockIdx.x / shape.heads;
  const long long head = blockIdx.x % shape.heads;
  T* const of_head = gradient + row * shape.stride + head * shape.size;
  const T* const x = input + (row * shape.all + head) * shape.size;
  const float factor = rstd[row * shape.all + head];
  float sum = 0;
  for (long long i = threadIdx.x; i < shape.size; i += blockDim.x)
    sum += to_float(scale[i]) * to_float(of_head[i]) * (to_float(x[i]) * factor);
  const float mean = block_sum(sum) / static_cast<float>(shape.size);
  for (long long i = threadIdx.x; i < shape.size; i += blockDim.x) {
    const float g = to_float(scale[i]) * to_float(of_head[i]);
    store(of_head[i], factor * (g - to_float(x[i]) * factor * mean));
  }
}

/// For the gradient of the scale, from that of the output: one row of sums for each head.
template <class T>
__device__ void head_scale_partial_sums(float* partial, const T* gradient, const T* input,
                                        const float* rstd, HeadRows shape, long long chunk) {
  partial_sums(
      partial, shape.rows * shape.heads, shape.size, chunk, [&](long long index, long long column) {
        const long long row = index / shape.heads;
        const long long head = index % shape.heads;
        const long long kept = row * shape.all + head;
        const T of_head = gradient[row * shape.stride + head * shape.size + column];
        return to_float(of_head) * (to_float(input[kept * shape.size + column]) * rstd[kept]);
      });
}

/// Turns each head to the position of its row, modulo `tokens`: numbers i and i + size / 2 by one
/// angle (Su et al. 2021). `angles` has cosines, then sines: [tokens, 2, size / 2]. `back` is the
/// other way.
template <class T>
__device__ void turn_heads(T* heads, const float* angles, int back, long long tokens,
                           HeadRows shape) {
  const long long half = shape.size / 2;
  const long long pairs = shape.heads * half;
  for (long long i = grid_first(); i < shape.rows * pairs; i += grid_step()) {
    const long long row = i / pairs;
    const long long head = i % pairs / half;
    const long long pair = i % half;
    const float* const of_row = angles + row % tokens * shape.size;
    const float cosine = of_row[pair];
    const float sine = back != 0 ? -of_row[half + pair] : of_row[half + pair];
    T* const first = heads + row * shape.stride + head * shape.size + pair;
    T* const second = first + half;
    const float a = to_float(*first);
    const float b = to_float(*second);
    store(*first, a * cosine - b * sine);
    store(*second, a * sine + b * cosine);
  }
}

}  // namespace plumbline::kernels

PLUMBLINE_KERNEL(norm_heads,
                 (Element * heads, Element* input, float* rstd, const Element* scale,
                  HeadRows shape),
                 (heads, input, rstd, scale, shape))
PLUMBLINE_KERNEL(norm_heads_gradient,
                 (Element * gradient, const Element* input, const float* rstd, const Element* scale,
                  HeadRows shape),
                 (gradient, input, rstd, scale, shape))
PLUMBLINE_KERNEL(head_scale_partial_sums,
                 (float* partial, const Element* gradient, const Element* input, const float* rstd,
                  HeadRows shape, long long chunk),
                 (partial, gradient, input, rstd, shape, chunk))
PLUMBLINE_KERNEL(turn_heads,
                 (Element * heads, const float* angles, int back, long long tokens, HeadRows shape),
                 (heads, angles, back, tokens, shape))
