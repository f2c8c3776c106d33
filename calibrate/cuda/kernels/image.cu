// Pictures [samples, channels, height, width]: pooling, batch norm, sums and biases of channels.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/kernels/element.h"

namespace plumbline::kernels {

/// A square window that moves over pictures of [height, width] to [to_height, to_width].
struct WindowShape {
  long long images, height, width;
  long long to_height, to_width;
  long long kernel, stride, padding;
};

/// The index, within its picture, of the largest element under the window at a place. Of several,
/// the first in row order.
template <class T>
__device__ long long largest_under(const WindowShape& s, const T* image, long long row,
                                   long long column) {
  const long long top = row * s.stride - s.padding;
  const long long left = column * s.stride - s.padding;
  long long best = -1;
  float largest = 0;
  for (long long i = top < 0 ? 0 : top; i < top + s.kernel && i < s.height; ++i) {
    for (long long j = left < 0 ? 0 : left; j < left + s.kernel && j < s.width; ++j) {
      const float value = to_float(image[i * s.width + j]);
      if (best >= 0 && !(value > largest)) continue;
      best = i * s.width + j;
      largest = value;
    }
  }
  return best;
}

template <class T>
__device__ void max_pool(T* y, const T* x, const WindowShape& s) {
  const long long places = s.to_height * s.to_width;
  for (long long i = grid_first(); i < s.images * places; i += grid_step()) {
    const T* const image = x + i / places * s.height * s.width;
    const long long place = i % places;
    y[i] = image[largest_under(s, image, place / s.to_width, place % s.to_width)];
  }
}

/// Each element of the input gathers the gradients of the windows whose largest it is.
template <class T>
__device__ void max_pool_gradient(T* x_gradient, const T* y_gradient, const T* x,
                                  const WindowShape& s) {
  const long long elements = s.height * s.width;
  for (long long i = grid_first(); i < s.images * elements; i += grid_step()) {
    const long long own = i % elements;
    const T* const image = x + i / elements * elements;
    const T* const from = y_gradient + i / elements * s.to_height * s.to_width;
    const long long down = own / s.width + s.padding;
    const long long across = own % s.width + s.padding;
    // The windows at rows r with r stride <= down < r stride + kernel.
    const long long first_row = down < s.kernel ? 0 : (down - s.kernel) / s.stride + 1;
    const long long first_column = across < s.kernel ? 0 : (across - s.kernel) / s.stride + 1;
    float sum = 0;
    for (long long r = first_row; r < s.to_height && r * s.stride <= down; ++r) {
      for (long long c = first_column; c < s.to_width && c * s.stride <= across; ++c) {
        if (largest_under(s, image, r, c) == own) sum += to_float(from[r * s.to_width + c]);
      }
    }
    store(x_gradient[i], sum);
  }
}

// Kernels for channels of [samples, channels, area].

/// Sets each element to the bias of its channel. A convolution is then added.
template <class T>
__device__ void bias_channels(T* y, const T* bias, long long channels, long long area,
                              long long count) {
  for (long long i = grid_first(); i < count; i += grid_step()) y[i] = bias[i / area % channels];
}

/// Calls visit(i) for this thread's elements of the block's channel.
template <class Visit>
__device__ void over_channel(long long samples, long long area, const Visit& visit) {
  const long long channels = gridDim.x;
  for (long long e = threadIdx.x; e < samples * area; e += blockDim.x)
    visit((e / area * channels + blockIdx.x) * area + e % area);
}

/// Adds the sum of each channel. One block per channel; one float of shared memory per thread, as
/// below.
template <class T>
__device__ void add_channel_sums(T* sums, const T* x, long long samples, long long area) {
  float sum = 0;
  over_channel(samples, area, [&](long long i) { sum += to_float(x[i]); });
  sum = block_sum(sum);
  if (threadIdx.x == 0) store(sums[blockIdx.x], to_float(sums[blockIdx.x]) + sum);
}

constexpr float kBatchNormEpsilon = 1e-5F;

/// y = scale (x - mean) rstd + shift with rstd = 1 / sqrt(variance + 1e-5), over all elements of a
/// channel. Then the skip is added if there is one, and if `rectifies`, elements below 0 become 0.
/// Writes mean and rstd.
template <class T>
__device__ void batch_norm(T* y, float* mean, float* rstd, const T* x, const T* scale,
                           const T* shift, const T* skip, long long samples, long long area,
                           int rectifies) {
  const auto count = static_cast<float>(samples * area);
  float sum = 0;
  over_channel(samples, area, [&](long long i) { sum += to_float(x[i]); });
  const float middle = block_sum(sum) / count;
  float squares = 0;
  over_channel(samples, area, [&](long long i) {
    const float off = to_float(x[i]) - middle;
    squares += off * off;
  });
  const float factor = 1.0F / sqrtf(block_sum(squares) / count + kBatchNormEpsilon);
  const float scaled = to_float(scale[blockIdx.x]);
  const float shifted = to_float(shift[blockIdx.x]);
  over_channel(samples, area, [&](long long i) {
    float value = scaled * ((to_float(x[i]) - middle) * factor) + shifted;
    if (skip != nullptr) value += to_float(skip[i]);
    store(y[i], rectifies != 0 && value <= 0 ? 0.0F : value);
  });
  if (threadIdx.x == 0) {
    mean[blockIdx.x] = middle;
    rstd[blockIdx.x] = factor;
  }
}

/// Let n = (x - mean) rstd and g the output's gradient. If there is a `gate`, g passes only where
/// the gate is above 0. Writes scale rstd (g - mean(g) - n mean(g n)) to x_gradient unless that is
/// null; it may be in place. Adds the sums of g n and of g to the gradients of scale and shift.
template <class T>
__device__ void batch_norm_gradient(T* x_gradient, T* scale_gradient, T* shift_gradient,
                                    const T* y_gradient, const T* gate, const T* x,
                                    const float* mean, const float* rstd, const T* scale,
                                    long long samples, long long area) {
  const float middle = mean[blockIdx.x];
  const float factor = rstd[blockIdx.x];
  const auto passed = [&](long long i) {
    return gate == nullptr || to_float(gate[i]) > 0 ? to_float(y_gradient[i]) : 0.0F;
  };
  float sum = 0;
  float sum_with_n = 0;
  over_channel(samples, area, [&](long long i) {
    const float g = passed(i);
    sum += g;
    sum_with_n += g * ((to_float(x[i]) - middle) * factor);
  });
  sum = block_sum(sum);
  sum_with_n = block_sum(sum_with_n);
  if (threadIdx.x == 0) {
    store(scale_gradient[blockIdx.x], to_float(scale_gradient[blockIdx.x]) + sum_with_n);
    store(shift_gradient[blockIdx.x], to_float(shift_gradient[blockIdx.x]) + sum);
  }
  if (x_gradient == nullptr) return;
  const auto count = static_cast<float>(samples * area);
  const float scaled = to_float(scale[blockIdx.x]) * factor;
  over_channel(samples, area, [&](long long i) {
    const float n = (to_float(x[i]) - middle) * factor;
    store(x_gradient[i], scaled * (passed(i) - sum / count - n * (sum_with_n / count)));
  });
}

}  // namespace plumbline::kernels

PLUMBLINE_KERNEL(max_pool, (Element * y, const Element* x, WindowShape shape), (y, x, shape))
PLUMBLINE_KERNEL(max_pool_gradient,
                 (Element * x_gradient, const Element* y_gradient, const Element* x,
                  WindowShape shape),
                 (x_gradient, y_gradient, x, shape))
PLUMBLINE_KERNEL(bias_channels,
                 (Element * y, const Element* bias, long long channels, long long area,
                  long long count),
                 (y, bias, channels, area, count))
PLUMBLINE_KERNEL(add_channel_sums,
                 (Element * sums, const Element* x, long long samples, long long area),
                 (sums, x, samples, area))
PLUMBLINE_KERNEL(batch_norm,
                 (Element * y, float* mean, float* rstd, const Element* x, const Element* scale,
                  const Element* shift, const Element* skip, long long samples, long long area,
                  int rectifies),
                 (y, mean, rstd, x, scale, shift, skip, samples, area, rectifies))
PLUMBLINE_KERNEL(batch_norm_gradient,
                 (Element * x_gradient, Element* scale_gradient, Element* shift_gradient,
                  const Element* y_gradient, const Element* gate, const Element* x,
                  const float* mean, const float* rstd, const Element* scale, long long samples,
                  long long area),
                 (x_gradient, scale_gradient, shift_gradient, y_gradient, gate, x, mean, rstd,
                  scale, samples, area))
