// Sums of gradients, and the optimizer's step; the arithmetic is that of
// calibrate/cpu/optimizer.cpp, fp32.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/kernels/element.h"

namespace plumbline::kernels {

/// Pointers to the gradients of a stage's members, which are added in order.
template <class T>
struct Members {
  const T* gradients[32];
  int count;
};

/// The sum may be one of the members.
template <class T>
__device__ void add_up(T* sum, const Members<T>& members, long long count) {
  for (long long i = grid_first(); i < count; i += grid_step()) {
    float all = to_float(members.gradients[0][i]);
    for (int m = 1; m < members.count; ++m) all += to_float(members.gradients[m][i]);
    store(sum[i], all);
  }
}

/// after = before - rate x gradient; it may be in place.
template <class T>
__device__ void descend(T* after, const T* before, const T* gradient, float rate, long long count) {
  for (long long i = grid_first(); i < count; i += grid_step())
    store(after[i], to_float(before[i]) - rate * to_float(gradient[i]));
}

constexpr float kDecay1 = 0.9F;
constexpr float kDecay2 = 0.999F;
constexpr float kAdamEpsilon = 1e-8F;

/// Counts a step in steps[0]. Writes the corrections of the moments for their start from zero into
/// steps[1] and steps[2] (Kingma and Ba 2015). The device counts, so that a graph can repeat it.
__device__ inline void count_step(float* steps) {
  if (grid_first() != 0) return;
  const float count = steps[0] + 1.0F;
  steps[0] = count;
  steps[1] = 1.0F / (1.0F - powf(kDecay1, count));
  steps[2] = 1.0F / (1.0F - powf(kDecay2, count));
}

/// Adam's update, after count_step; it may be in place.
template <class T>
__device__ void descend_with_moments(T* after, const T* before, const T* gradients, float* first,
                                     float* second, const float* steps, float rate,
                                     long long count) {
  for (long long i = grid_first(); i < count; i += grid_step()) {
    const float gradient = to_float(gradients[i]);
    first[i] = kDecay1 * first[i] + (1.0F - kDecay1) * gradient;
    second[i] = kDecay2 * second[i] + (1.0F - kDecay2) * gradient * gradient;
    store(after[i], to_float(before[i]) -
                        rate * first[i] * steps[1] / (sqrtf(second[i] * steps[2]) + kAdamEpsilon));
  }
}

}  // namespace plumbline::kernels

PLUMBLINE_KERNEL(add_up, (Element * sum, Members<Element> members, long long count),
                 (sum, members, count))
PLUMBLINE_KERNEL(descend,
                 (Element * after, const Element* before, const Element* gradient, float rate,
                  long long count),
                 (after, before, gradient, rate, count))
PLUMBLINE_PLAIN_KERNEL(count_step, (float* steps), (steps))
PLUMBLINE_KERNEL(descend_with_moments,
                 (Element * after, const Element* before, const Element* gradients, float* first,
                  float* second, const float* steps, float rate, long long count),
                 (after, before, gradients, first, second, steps, rate, count))
