// Plain loops that compilers vectorize. GCC makes one version for each level of x86-64.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/kernels.h"

#include <algorithm>
#include <cmath>

#include "base/vectorized.h"
#include "calibrate/cpu/approximation.h"

namespace plumbline::cpu {
namespace {

constexpr double kEpsilon = 1e-5;            // of the norms
constexpr float kGeluFactor = 0.797884561F;  // sqrt(2 / pi)
constexpr float kGeluCube = 0.044715F;

// Sums are kept in lanes, and each lane adds every 32nd element. A compiler may not change the
// order of a sum, so the loops already add in the order of vectors.
constexpr std::int64_t kLanes = 32;

/// Combines lanes by halves into the first one.
template <class Combine>
[[gnu::always_inline]] inline float fold(float* __restrict lanes, const Combine& combine) {
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::int64_t j = 0; j < half; ++j) lanes[j] = combine(lanes[j], lanes[j + half]);
  }
  return lanes[0];
}

/// The sum of term(i).
template <class Term>
[[gnu::always_inline]] inline float sum_of(std::int64_t count, const Term& term) {
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t j = 0; j < kLanes; ++j) lanes[j] += term(i + j);
  }
  for (std::int64_t j = 0; j < count - i; ++j) lanes[j] += term(i + j);
  return fold(lanes, [](float a, float b) { return a + b; });
}

[[gnu::always_inline]] inline float largest_of(const float* __restrict x, std::int64_t count) {
  const auto larger = [](float a, float b) { return b > a ? b : a; };
  float lanes[kLanes];
  for (float& lane : lanes) lane = x[0];
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t j = 0; j < kLanes; ++j) lanes[j] = larger(lanes[j], x[i + j]);
  }
  for (std::int64_t j = 0; j < count - i; ++j) lanes[j] = larger(lanes[j], x[i + j]);
  return fold(lanes, larger);
}

float reciprocal_deviation(double variance) {
  return static_cast<float>(1 / std::sqrt(variance + kEpsilon));
}

}  // namespace

// Sums.

PLUMBLINE_VECTORIZED
void add(float* __restrict sum, const float* __restrict term, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] += term[i];
}

void fill_rows(float* y, const float* row, const Rows& shape) {
  for (std::int64_t r = 0; r < shape.rows; ++r)
    std::copy_n(row, shape.columns, y + r * shape.columns);
}

PLUMBLINE_VECTORIZED
void add_row(float* __restrict y, const float* __restrict x, const float* __restrict row,
             const Rows& shape) {
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const std::int64_t at = r * shape.columns;
    for (std::int64_t i = 0; i < shape.columns; ++i) y[at + i] = x[at + i] + row[i];
  }
}

PLUMBLINE_VECTORIZED
void add_column_sums(float* __restrict sums, const float* __restrict x, const Rows& shape) {
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const float* __restrict row = x + r * shape.columns;
    for (std::int64_t i = 0; i < shape.columns; ++i) sums[i] += row[i];
  }
}

void fill_channels(float* y, const float* channel, const Images& shape) {
  for (std::int64_t p = 0; p < shape.samples * shape.channels; ++p)
    std::fill_n(y + p * shape.area, shape.area, channel[p % shape.channels]);
}

PLUMBLINE_VECTORIZED
void add_channel_sums(float* __restrict sums, const float* __restrict x, const Images& shape) {
  for (std::int64_t c = 0; c < shape.channels; ++c) {
    double sum = 0;
    for (std::int64_t s = 0; s < shape.samples; ++s) {
      const float* __restrict plane = x + (s * shape.channels + c) * shape.area;
      sum += sum_of(shape.area, [&](std::int64_t i) { return plane[i]; });
    }
    sums[c] += static_cast<float>(sum);
  }
}

// Element by element.

PLUMBLINE_VECTORIZED
void relu(float* __restrict y, const float* __restrict x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}

PLUMBLINE_VECTORIZED
void add_and_relu(float* __restrict sum, const float* __restrict term, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float x = sum[i] + term[i];
    sum[i] = x > 0 ? x : 0;
  }
}

PLUMBLINE_VECTORIZED
void relu_gradient(float* __restrict x_gradient, const float* __restrict y_gradient,
                   const float* __restrict y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float gradient = y_gradient[i];
    x_gradient[i] = y[i] > 0 ? gradient : 0;
  }
}

PLUMBLINE_VECTORIZED
void relu_gradient(float* __restrict gradient, const float* __restrict y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float before = gradient[i];
    gradient[i] = y[i] > 0 ? before : 0;
  }
}

// 0.5 (1 + tanh(u)) = sigmoid(2 u), u = sqrt(2/pi) (x + 0.044715 x^3).
namespace {

[[gnu::always_inline]] inline float gelu_share(float x) {
  return fast_sigmoid(2 * kGeluFactor * (x + kGeluCube * x * x * x));
}

[[gnu::always_inline]] inline float gelu_slope(float x) {
  const float share = gelu_share(x);
  const float u_slope = kGeluFactor * (1 + 3 * kGeluCube * x * x);
  return share + 2 * x * share * (1 - share) * u_slope;
}

}  // namespace

namespace {

struct GeluOf {
  [[gnu::always_inline]] static float value(float x) { return x * gelu_share(x); }
  [[gnu::always_inline]] static float slope(float x) { return gelu_slope(x); }
};
struct SiluOf {
  [[gnu::always_inline]] static float value(float x) { return x * fast_sigmoid(x); }
  [[gnu::always_inline]] static float slope(float x) {
    const float share = fast_sigmoid(x);
    return share * (1 + x * (1 - share));
  }
};
struct ReluOf {
  [[gnu::always_inline]] static float value(float x) { return x > 0 ? x : 0; }
  [[gnu::always_inline]] static float slope(float x) { return x > 0 ? 1 : 0; }
};

template <class Of>
[[gnu::always_inline]] inline void activate_by(float* __restrict y, const float* __restrict x,
                                               std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = Of::value(x[i]);
}

/// `x_gradient` may be `y_gradient`.
template <class Of>
[[gnu::always_inline]] inline void activate_gradient_by(float* x_gradient, const float* y_gradient,
                                                        const float* __restrict x,
                                                        std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x_gradient[i] = y_gradient[i] * Of::slope(x[i]);
}

template <class Of>
[[gnu::always_inline]] inline void gate_by(float* __restrict y, const float* __restrict gate_and_up,
                                           const Rows& shape) {
  const std::int64_t hidden = shape.columns;
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const float* __restrict g = gate_and_up + r * 2 * hidden;
    const float* __restrict u = g + hidden;
    float* __restrict to = y + r * hidden;
    for (std::int64_t i = 0; i < hidden; ++i) to[i] = Of::value(g[i]) * u[i];
  }
}

template <class Of>
[[gnu::always_inline]] inline void gate_gradient_by(float* __restrict gradient,
                                                    const float* __restrict y_gradient,
                                                    const float* __restrict gate_and_up,
                                                    const Rows& shape) {
  const std::int64_t hidden = shape.columns;
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const float* __restrict g = gate_and_up + r * 2 * hidden;
    const float* __restrict u = g + hidden;
    const float* __restrict dy = y_gradient + r * hidden;
    float* __restrict dg = gradient + r * 2 * hidden;
    float* __restrict du = dg + hidden;
    for (std::int64_t i = 0; i < hidden; ++i) {
      du[i] = dy[i] * Of::value(g[i]);
      dg[i] = dy[i] * u[i] * Of::slope(g[i]);
    }
  }
}

}  // namespace

PLUMBLINE_VECTORIZED
void activate(float* __restrict y, const float* __restrict x, Activation activation,
              std::int64_t count) {
  switch (activation) {
    case Activation::gelu:
      return activate_by<GeluOf>(y, x, count);
    case Activation::silu:
      return activate_by<SiluOf>(y, x, count);
    case Activation::relu:
      return activate_by<ReluOf>(y, x, count);
  }
}

PLUMBLINE_VECTORIZED
void activate_gradient(float* __restrict x_gradient, const float* __restrict y_gradient,
                       const float* __restrict x, Activation activation, std::int64_t count) {
  switch (activation) {
    case Activation::gelu:
      return activate_gradient_by<GeluOf>(x_gradient, y_gradient, x, count);
    case Activation::silu:
      return activate_gradient_by<SiluOf>(x_gradient, y_gradient, x, count);
    case Activation::relu:
      return activate_gradient_by<ReluOf>(x_gradient, y_gradient, x, count);
  }
}

PLUMBLINE_VECTORIZED
void activate_gradient(float* __restrict gradient, const float* __restrict x, Activation activation,
                       std::int64_t count) {
  switch (activation) {
    case Activation::gelu:
      return activate_gradient_by<GeluOf>(gradient, gradient, x, count);
    case Activation::silu:
      return activate_gradient_by<SiluOf>(gradient, gradient, x, count);
    case Activation::relu:
      return activate_gradient_by<ReluOf>(gradient, gradient, x, count);
  }
}

PLUMBLINE_VECTORIZED
void gate(float* __restrict y, const float* __restrict gate_and_up, Activation activation,
          const Rows& y_shape) {
  switch (activation) {
    case Activation::gelu:
      gate_by<GeluOf>(y, gate_and_up, y_shape);
      break;
    case Activation::silu:
      gate_by<SiluOf>(y, gate_and_up, y_shape);
      break;
    case Activation::relu:
      gate_by<ReluOf>(y, gate_and_up, y_shape);
      break;
  }
}

PLUMBLINE_VECTORIZED
void gate_gradient(float* __restrict gate_and_up_gradient, const float* __restrict y_gradient,
                   const float* __restrict gate_and_up, Activation activation,
                   const Rows& y_shape) {
  float* __restrict to = gate_and_up_gradient;
  switch (activation) {
    case Activation::gelu:
      gate_gradient_by<GeluOf>(to, y_gradient, gate_and_up, y_shape);
      break;
    case Activation::silu:
      gate_gradient_by<SiluOf>(to, y_gradient, gate_and_up, y_shape);
      break;
    case Activation::relu:
      gate_gradient_by<ReluOf>(to, y_gradient, gate_and_up, y_shape);
      break;
  }
}

// Norms.

PLUMBLINE_VECTORIZED
void layer_norm(float* __restrict y, float* __restrict mean, float* __restrict rstd,
                const float* __restrict x, const ScaleAndShift& affine, const Rows& shape) {
  const float* __restrict scale = affine.scale;
  const float* __restrict shift = affine.shift;
  const std::int64_t features = shape.columns;
  const auto share = static_cast<float>(1 / static_cast<double>(features));
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const float* __restrict from = x + r * features;
    float* __restrict to = y + r * features;
    const float middle = sum_of(features, [&](std::int64_t i) { return from[i]; }) * share;
    const float squares = sum_of(features, [&](std::int64_t i) {
      const float off = from[i] - middle;
      return off * off;
    });
    const float factor = reciprocal_deviation(squares * share);
    for (std::int64_t i = 0; i < features; ++i)
      to[i] = scale[i] * ((from[i] - middle) * factor) + shift[i];
    mean[r] = middle;
    rstd[r] = factor;
  }
}

PLUMBLINE_VECTORIZED
void layer_norm_input_gradient(float* __restrict x_gradient, const float* __restrict y_gradient,
                               const float* __restrict skip, const Normed& normed,
                               const float* __restrict scale, const Rows& shape) {
  const std::int64_t features = shape.columns;
  const auto share = static_cast<float>(1 / static_cast<double>(features));
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const float* __restrict x = normed.x + r * features;
    const float* __restrict dy = y_gradient + r * features;
    float* __restrict dx = x_gradient + r * features;
    const float mean = normed.mean[r];
    const float rstd = normed.rstd[r];
    const float sum = sum_of(features, [&](std::int64_t i) { return scale[i] * dy[i]; });
    const float sum_with_n =
        sum_of(features, [&](std::int64_t i) { return scale[i] * dy[i] * ((x[i] - mean) * rstd); });
    for (std::int64_t i = 0; i < features; ++i) {
      const float n = (x[i] - mean) * rstd;
      dx[i] = rstd * (scale[i] * dy[i] - (sum + n * sum_with_n) * share);
    }
    if (skip != nullptr) {
      const float* __restrict more = skip + r * features;
      for (std::int64_t i = 0; i < features; ++i) dx[i] += more[i];
    }
  }
}

PLUMBLINE_VECTORIZED
void layer_norm_parameter_gradients(const ScaleAndShiftGradients& gradients,
                                    const float* __restrict y_gradient, const Normed& normed,
                                    const Rows& shape) {
  float* __restrict scale = gradients.scale;
  float* __restrict shift = gradients.shift;
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const float* __restrict x = normed.x + r * shape.columns;
    const float* __restrict dy = y_gradient + r * shape.columns;
    const float mean = normed.mean[r];
    const float rstd = normed.rstd[r];
    for (std::int64_t i = 0; i < shape.columns; ++i) {
      scale[i] += dy[i] * ((x[i] - mean) * rstd);
      shift[i] += dy[i];
    }
  }
}

namespace {

/// One row of an rms norm; returns its rstd. `y` may be `x`.
[[gnu::always_inline]] inline float rms_norm_row(float* y, const float* x,
                                                 const float* __restrict scale,
                                                 std::int64_t count) {
  const auto share = static_cast<float>(1 / static_cast<double>(count));
  const float squares = sum_of(count, [&](std::int64_t i) { return x[i] * x[i]; });
  const float factor = reciprocal_deviation(squares * share);
  for (std::int64_t i = 0; i < count; ++i) y[i] = scale[i] * (x[i] * factor);
  return factor;
}

/// The gradient of one row; `x_gradient` may be `y_gradient`.
[[gnu::always_inline]] inline void rms_norm_row_gradient(float* x_gradient, const float* y_gradient,
                                                         const float* __restrict x, float rstd,
                                                         const float* __restrict scale,
                                                         std::int64_t count) {
  const auto share = static_cast<float>(1 / static_cast<double>(count));
  const float sum_with_n =
      sum_of(count, [&](std::int64_t i) { return scale[i] * y_gradient[i] * (x[i] * rstd); });
  for (std::int64_t i = 0; i < count; ++i)
    x_gradient[i] = rstd * (scale[i] * y_gradient[i] - (x[i] * rstd) * sum_with_n * share);
}

}  // namespace

PLUMBLINE_VECTORIZED
void rms_norm(float* __restrict y, float* __restrict rstd, const float* __restrict x,
              const float* __restrict scale, const Rows& shape) {
  for (std::int64_t r = 0; r < shape.rows; ++r)
    rstd[r] = rms_norm_row(y + r * shape.columns, x + r * shape.columns, scale, shape.columns);
}

PLUMBLINE_VECTORIZED
void rms_norm_input_gradient(float* __restrict x_gradient, const float* __restrict y_gradient,
                             const float* __restrict skip, const float* __restrict x,
                             const float* __restrict rstd, const float* __restrict scale,
                             const Rows& shape) {
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const std::int64_t at = r * shape.columns;
    rms_norm_row_gradient(x_gradient + at, y_gradient + at, x + at, rstd[r], scale, shape.columns);
    if (skip == nullptr) continue;
    for (std::int64_t i = at; i < at + shape.columns; ++i) x_gradient[i] += skip[i];
  }
}

PLUMBLINE_VECTORIZED
void rms_norm_scale_gradient(float* __restrict scale_gradient, const float* __restrict y_gradient,
                             const float* __restrict x, const float* __restrict rstd,
                             const Rows& shape) {
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const float* __restrict of_x = x + r * shape.columns;
    const float* __restrict dy = y_gradient + r * shape.columns;
    const float factor = rstd[r];
    for (std::int64_t i = 0; i < shape.columns; ++i)
      scale_gradient[i] += dy[i] * (of_x[i] * factor);
  }
}

// Heads of queries and keys.

PLUMBLINE_VECTORIZED
void norm_heads(float* __restrict heads, float* __restrict input, std::int64_t input_stride,
                float* __restrict rstd, std::int64_t rstd_stride, const float* __restrict scale,
                const HeadRows& shape) {
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      float* __restrict head = heads + r * shape.stride + h * shape.size;
      float* __restrict before = input + r * input_stride + h * shape.size;
      for (std::int64_t i = 0; i < shape.size; ++i) before[i] = head[i];
      rstd[r * rstd_stride + h] = rms_norm_row(head, before, scale, shape.size);
    }
  }
}

PLUMBLINE_VECTORIZED
void norm_heads_gradient(float* __restrict gradient, float* __restrict scale_gradient,
                         const float* __restrict input, std::int64_t input_stride,
                         const float* __restrict rstd, std::int64_t rstd_stride,
                         const float* __restrict scale, const HeadRows& shape) {
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      float* __restrict head = gradient + r * shape.stride + h * shape.size;
      const float* __restrict x = input + r * input_stride + h * shape.size;
      const float factor = rstd[r * rstd_stride + h];
      for (std::int64_t i = 0; i < shape.size; ++i) scale_gradient[i] += head[i] * (x[i] * factor);
      rms_norm_row_gradient(head, head, x, factor, scale, shape.size);
    }
  }
}

PLUMBLINE_VECTORIZED
void turn_heads(float* __restrict heads, const float* __restrict angles, bool back,
                std::int64_t tokens, const HeadRows& shape) {
  const std::int64_t half = shape.size / 2;
  const float sign = back ? -1.0F : 1.0F;
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const float* __restrict cosines = angles + r % tokens * shape.size;
    const float* __restrict sines = cosines + half;
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      float* __restrict first = heads + r * shape.stride + h * shape.size;
      float* __restrict second = first + half;
      for (std::int64_t i = 0; i < half; ++i) {
        const float a = first[i];
        const float b = second[i];
        const float sine = sign * sines[i];
        first[i] = a * cosines[i] - b * sine;
        second[i] = a * sine + b * cosines[i];
      }
    }
  }
}

// Norms of images.

PLUMBLINE_VECTORIZED
void batch_moments(float* __restrict mean, float* __restrict rstd, const float* __restrict x,
                   const Images& shape) {
  const auto together = static_cast<double>(shape.samples * shape.area);
  for (std::int64_t c = 0; c < shape.channels; ++c) {
    double sum = 0;
    for (std::int64_t s = 0; s < shape.samples; ++s) {
      const float* __restrict plane = x + (s * shape.channels + c) * shape.area;
      sum += sum_of(shape.area, [&](std::int64_t i) { return plane[i]; });
    }
    const auto middle = static_cast<float>(sum / together);
    double squares = 0;
    for (std::int64_t s = 0; s < shape.samples; ++s) {
      const float* __restrict plane = x + (s * shape.channels + c) * shape.area;
      squares += sum_of(shape.area, [&](std::int64_t i) {
        const float off = plane[i] - middle;
        return off * off;
      });
    }
    mean[c] = middle;
    rstd[c] = reciprocal_deviation(squares / together);
  }
}

namespace {

template <bool kRelu>
[[gnu::always_inline]] inline void norm_images(float* __restrict y, const Normed& normed,
                                               const ScaleAndShift& affine, const Images& shape) {
  for (std::int64_t p = 0; p < shape.samples * shape.channels; ++p) {
    const std::int64_t c = p % shape.channels;
    const float* __restrict from = normed.x + p * shape.area;
    float* __restrict to = y + p * shape.area;
    const float mean = normed.mean[c];
    const float factor = affine.scale[c] * normed.rstd[c];
    const float shift = affine.shift[c];
    for (std::int64_t i = 0; i < shape.area; ++i) {
      const float value = (from[i] - mean) * factor + shift;
      to[i] = kRelu && !(value > 0) ? 0 : value;
    }
  }
}

}  // namespace

PLUMBLINE_VECTORIZED
void batch_norm(float* y, const Normed& normed, const ScaleAndShift& affine, const Images& shape) {
  norm_images<false>(y, normed, affine, shape);
}

PLUMBLINE_VECTORIZED
void batch_norm_relu(float* y, const Normed& normed, const ScaleAndShift& affine,
                     const Images& shape) {
  norm_images<true>(y, normed, affine, shape);
}

PLUMBLINE_VECTORIZED
void batch_norm_gradients(float* __restrict x_gradient, const ScaleAndShiftGradients& gradients,
                          const float* __restrict y_gradient, const Normed& normed,
                          const float* __restrict scale, const Images& shape) {
  const auto share = 1 / static_cast<double>(shape.samples * shape.area);
  for (std::int64_t c = 0; c < shape.channels; ++c) {
    const float mean = normed.mean[c];
    const float rstd = normed.rstd[c];
    double sum = 0;
    double sum_with_n = 0;
    for (std::int64_t s = 0; s < shape.samples; ++s) {
      const std::int64_t at = (s * shape.channels + c) * shape.area;
      const float* __restrict x = normed.x + at;
      const float* __restrict dy = y_gradient + at;
      sum += sum_of(shape.area, [&](std::int64_t i) { return dy[i]; });
      sum_with_n +=
          sum_of(shape.area, [&](std::int64_t i) { return dy[i] * ((x[i] - mean) * rstd); });
    }
    gradients.scale[c] += static_cast<float>(sum_with_n);
    gradients.shift[c] += static_cast<float>(sum);
    if (x_gradient == nullptr) continue;
    const float factor = scale[c] * rstd;
    const auto of_sum = static_cast<float>(sum * share);
    const auto of_n = static_cast<float>(sum_with_n * share);
    for (std::int64_t s = 0; s < shape.samples; ++s) {
      const std::int64_t at = (s * shape.channels + c) * shape.area;
      const float* __restrict x = normed.x + at;
      const float* __restrict dy = y_gradient + at;
      float* __restrict dx = x_gradient + at;
      for (std::int64_t i = 0; i < shape.area; ++i)
        dx[i] = factor * (dy[i] - of_sum - (x[i] - mean) * rstd * of_n);
    }
  }
}

// Softmax.

PLUMBLINE_VECTORIZED
double softmax(float* __restrict row, std::int64_t count) {
  const float largest = largest_of(row, count);
  for (std::int64_t i = 0; i < count; ++i) row[i] = fast_exp(row[i] - largest);
  const double sum = sum_of(count, [&](std::int64_t i) { return row[i]; });
  const auto factor = static_cast<float>(1 / sum);
  for (std::int64_t i = 0; i < count; ++i) row[i] *= factor;
  return largest + std::log(sum);
}

PLUMBLINE_VECTORIZED
void recompute_softmax(float* __restrict row, float logsumexp, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) row[i] = fast_exp(row[i] - logsumexp);
}

PLUMBLINE_VECTORIZED
void softmax_gradient(float* __restrict gradient, const float* __restrict probabilities,
                      float factor, std::int64_t count) {
  const float mean = sum_of(count, [&](std::int64_t i) { return gradient[i] * probabilities[i]; });
  for (std::int64_t i = 0; i < count; ++i)
    gradient[i] = factor * probabilities[i] * (gradient[i] - mean);
}

PLUMBLINE_VECTORIZED
void cross_entropy_gradient(float* __restrict gradient, const float* __restrict probabilities,
                            float weight, std::int64_t label, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) gradient[i] = weight * probabilities[i];
  gradient[label] = weight * (probabilities[label] - 1);
}

// One step of an lstm.

PLUMBLINE_VECTORIZED
void lstm_step(float* __restrict gates, float* __restrict cell, float* __restrict h,
               const float* __restrict cell_before, std::int64_t hidden) {
  float* __restrict input = gates;
  float* __restrict forget = gates + hidden;
  float* __restrict candidate = gates + 2 * hidden;
  float* __restrict output = gates + 3 * hidden;
  for (std::int64_t j = 0; j < hidden; ++j) {
    const float i = fast_sigmoid(input[j]);
    const float f = fast_sigmoid(forget[j]);
    const float g = fast_tanh(candidate[j]);
    const float o = fast_sigmoid(output[j]);
    const float c = f * cell_before[j] + i * g;
    input[j] = i;
    forget[j] = f;
    candidate[j] = g;
    output[j] = o;
    cell[j] = c;
    h[j] = o * fast_tanh(c);
  }
}

PLUMBLINE_VECTORIZED
void lstm_step_gradient(float* __restrict gates_gradient, float* __restrict cell_gradient,
                        const LstmStep& step, const float* __restrict h_gradient,
                        const float* __restrict h_from_after, std::int64_t hidden) {
  const float* __restrict cell_before = step.cell_before;
  const float* __restrict cell = step.cell;
  const float* __restrict gates = step.gates;
  for (std::int64_t j = 0; j < hidden; ++j) {
    const float i = gates[j];
    const float f = gates[hidden + j];
    const float g = gates[2 * hidden + j];
    const float o = gates[3 * hidden + j];
    const float tanh_c = fast_tanh(cell[j]);
    const float dh = h_gradient[j] + h_from_after[j];
    const float dc = cell_gradient[j] + dh * o * (1 - tanh_c * tanh_c);
    gates_gradient[j] = dc * g * i * (1 - i);
    gates_gradient[hidden + j] = dc * cell_before[j] * f * (1 - f);
    gates_gradient[2 * hidden + j] = dc * i * (1 - g * g);
    gates_gradient[3 * hidden + j] = dh * tanh_c * o * (1 - o);
    cell_gradient[j] = dc * f;
  }
}

// Tables.

void transpose(float* to, const float* from, const Rows& shape) {
  constexpr std::int64_t kBlock = 16;  // a cache line of both
  for (std::int64_t r = 0; r < shape.rows; r += kBlock) {
    for (std::int64_t c = 0; c < shape.columns; c += kBlock) {
      for (std::int64_t i = r; i < std::min(r + kBlock, shape.rows); ++i) {
        for (std::int64_t j = c; j < std::min(c + kBlock, shape.columns); ++j)
          to[j * shape.rows + i] = from[i * shape.columns + j];
      }
    }
  }
}

}  // namespace plumbline::cpu
