// Kernels that work element by element: activations, biases, constants, conversions.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/kernels/element.h"

namespace plumbline::kernels {

template <class T>
__device__ void fill(T* y, float value, long long count) {
  for (long long i = grid_first(); i < count; i += grid_step()) store(y[i], value);
}

/// Writes pseudo-random numbers in [-scale, scale): operands of timed work.
template <class T>
__device__ void noise(T* y, unsigned seed, float scale, long long count) {
  for (long long i = grid_first(); i < count; i += grid_step()) {
    // Two rounds of a multiplicative hash with 32 bits (lowbias32, Wellons 2018).
    unsigned x = static_cast<unsigned>(i) + seed;
    x = (x ^ (x >> 16)) * 0x7feb352dU;
    x = (x ^ (x >> 15)) * 0x846ca68bU;
    x ^= x >> 16;
    store(y[i], scale * (static_cast<float>(x >> 8) * (2.0F / 16777216.0F) - 1.0F));
  }
}

template <class T>
__device__ void from_fp32(T* y, const float* x, long long count) {
  for (long long i = grid_first(); i < count; i += grid_step()) store(y[i], x[i]);
}

template <class T>
__device__ void to_fp32(float* y, const T* x, long long count) {
  for (long long i = grid_first(); i < count; i += grid_step()) y[i] = to_float(x[i]);
}

/// Sets each of `rows` rows to the bias plus the skip's row, of which one may be absent. A product
/// is then added.
template <class T>
__device__ void bias_rows(T* y, const T* bias, const T* skip, long long rows, long long columns) {
  for (long long i = grid_first(); i < rows * columns; i += grid_step()) {
    const float b = bias == nullptr ? 0.0F : to_float(bias[i % columns]);
    store(y[i], skip == nullptr ? b : b + to_float(skip[i]));
  }
}

/// Adds x to y.
template <class T>
__device__ void add(T* y, const T* x, long long count) {
  for (long long i = grid_first(); i < count; i += grid_step())
    store(y[i], to_float(y[i]) + to_float(x[i]));
}

template <class T>
__device__ void relu(T* y, const T* x, long long count) {
  for (long long i = grid_first(); i < count; i += grid_step()) {
    const float value = to_float(x[i]);
    store(y[i], value > 0 ? value : 0.0F);
  }
}

/// Uses the output; it may be in place.
template <class T>
__device__ void relu_gradient(T* x_gradient, const T* y_gradient, const T* y, long long count) {
  for (long long i = grid_first(); i < count; i += grid_step())
    store(x_gradient[i], to_float(y[i]) > 0 ? to_float(y_gradient[i]) : 0.0F);
}

// Activations, by the place of their names in the enumeration.

constexpr int kGelu = 0;
constexpr int kSilu = 1;

// The tanh form (Hendrycks and Gimpel 2016): 0.5 (1 + tanh(u)) = 1 / (1 + exp(-2 u)) with
// u = sqrt(2/pi) (x + 0.044715 x^3).
constexpr float kGeluFactor = 0.797884561F;  // sqrt(2 / pi)
constexpr float kGeluCube = 0.044715F;

__device__ inline float logistic(float x) { return 1.0F / (1.0F + expf(-x)); }

__device__ inline float gelu_share(float x) {
  return logistic(2.0F * kGeluFactor * (x + kGeluCube * x * x * x));
}

__device__ inline float activated(float x, int activation) {
  if (activation == kGelu) return x * gelu_share(x);
  if (activation == kSilu) return x * logistic(x);
  return x > 0 ? x : 0.0F;
}

__device__ inline float activation_slope(float x, int activation) {
  if (activation == kGelu) {
    const float share = gelu_share(x);
    const float u_slope = kGeluFactor * (1.0F + 3.0F * kGeluCube * x * x);
    return share + 2.0F * x * share * (1.0F - share) * u_slope;
  }
  if (activation == kSilu) {
    const float share = logistic(x);
    return share * (1.0F + x * (1.0F - share));
  }
  return x > 0 ? 1.0F : 0.0F;
}

template <class T>
__device__ void activate(T* y, const T* x, int activation, long long count) {
  for (long long i = grid_first(); i < count; i += grid_step())
    store(y[i], activated(to_float(x[i]), activation));
}

/// It may be in place.
template <class T>
__device__ void activate_gradient(T* x_gradient, const T* y_gradient, const T* x, int activation,
                                  long long count) {
  for (long long i = grid_first(); i < count; i += grid_step())
    store(x_gradient[i], to_float(y_gradient[i]) * activation_slope(to_float(x[i]), activation));
}

/// activation(g) u of rows that hold `hidden` numbers g, then as many u.
template <class T>
__device__ void gate(T* y, const T* gate_and_up, int activation, long long rows, long long hidden) {
  for (long long i = grid_first(); i < rows * hidden; i += grid_step()) {
    const T* const g = gate_and_up + i / hidden * 2 * hidden + i % hidden;
    store(y[i], activated(to_float(g[0]), activation) * to_float(g[hidden]));
  }
}

template <class T>
__device__ void gate_gradient(T* gate_and_up_gradient, const T* y_gradient, const T* gate_and_up,
                              int activation, long long rows, long long hidden) {
  for (long long i = grid_first(); i < rows * hidden; i += grid_step()) {
    const long long at = i / hidden * 2 * hidden + i % hidden;
    const float g = to_float(gate_and_up[at]);
    const float u = to_float(gate_and_up[at + hidden]);
    const float gradient = to_float(y_gradient[i]);
    store(gate_and_up_gradient[at], gradient * u * activation_slope(g, activation));
    store(gate_and_up_gradient[at + hidden], gradient * activated(g, activation));
  }
}

}  // namespace plumbline::kernels

PLUMBLINE_KERNEL(fill, (Element * y, float value, long long count), (y, value, count))
PLUMBLINE_KERNEL(noise, (Element * y, unsigned seed, float scale, long long count),
                 (y, seed, scale, count))
PLUMBLINE_KERNEL(bias_rows,
                 (Element * y, const Element* bias, const Element* skip, long long rows,
                  long long columns),
                 (y, bias, skip, rows, columns))
PLUMBLINE_KERNEL(add, (Element * y, const Element* x, long long count), (y, x, count))
PLUMBLINE_KERNEL(relu, (Element * y, const Element* x, long long count), (y, x, count))
PLUMBLINE_KERNEL(relu_gradient,
                 (Element * x_gradient, const Element* y_gradient, const Element* y,
                  long long count),
                 (x_gradient, y_gradient, y, count))
PLUMBLINE_KERNEL(activate, (Element * y, const Element* x, int activation, long long count),
                 (y, x, activation, count))
PLUMBLINE_KERNEL(activate_gradient,
                 (Element * x_gradient, const Element* y_gradient, const Element* x, int activation,
                  long long count),
                 (x_gradient, y_gradient, x, activation, count))
PLUMBLINE_KERNEL(gate,
                 (Element * y, const Element* gate_and_up, int activation, long long rows,
                  long long hidden),
                 (y, gate_and_up, activation, rows, hidden))
PLUMBLINE_KERNEL(gate_gradient,
                 (Element * gate_and_up_gradient, const Element* y_gradient,
                  const Element* gate_and_up, int activation, long long rows, long long hidden),
                 (gate_and_up_gradient, y_gradient, gate_and_up, activation, rows, hidden))
PLUMBLINE_KERNEL(from_fp32, (Element * y, const float* x, long long count), (y, x, count))
PLUMBLINE_KERNEL(to_fp32, (float* y, const Element* x, long long count), (y, x, count))
