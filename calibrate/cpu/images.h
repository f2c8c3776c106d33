// Convolutions and pools over fp32 pictures.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "calibrate/cpu/kernels.h"

namespace plumbline::cpu {

/// A square window that moves over [samples, channels, height, width].
struct Window {
  std::int64_t samples = 0;
  std::int64_t channels = 0;  ///< Channels of the input picture.
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;

  std::int64_t rows() const { return (height + 2 * padding - kernel) / stride + 1; }
  std::int64_t columns() const { return (width + 2 * padding - kernel) / stride + 1; }
  std::int64_t places() const { return rows() * columns(); }  ///< Per channel of the output.
  std::int64_t area() const { return height * width; }
};

/// A convolution with weight [outputs, channels, kernel, kernel], as one product for each sample.
/// The elements under the window, at some rows of places, are laid out as a matrix that fits the
/// cache.
class Convolution {
 public:
  Convolution(const Window& window, std::int64_t outputs);

  /// `bias` may be null.
  void forward(float* y, const float* x, const float* weight, const float* bias);
  /// Adds to `x_gradient`.
  void add_input_gradient(float* x_gradient, const float* y_gradient, const float* weight);
  /// Adds to the gradients; `bias_gradient` may be null.
  void weight_gradient(float* weight_gradient, float* bias_gradient, const float* y_gradient,
                       const float* x);

 private:
  struct Rows;

  /// Whether the picture already is the matrix.
  bool plain() const { return window_.kernel == 1 && window_.stride == 1 && window_.padding == 0; }
  Rows rows_at(std::int64_t first) const;
  void lay_out(const float* image, const Rows& rows);
  void add_back(float* image, const Rows& rows);
  template <class Visit>
  void for_each_tap(const Rows& rows, const Visit& visit);

  Window window_;
  std::int64_t outputs_;
  std::int64_t depth_;  ///< Elements of the window, all channels.
  std::int64_t rows_;   ///< Rows of places laid out at a time.
  Scratch laid_out_;    ///< [depth, places].
};

/// Padding never wins. Requires: padding < kernel.
void max_pool(float* y, const float* x, const Window& window);
/// The gradient goes to the first of the largest elements, in row order.
void max_pool_gradient(float* x_gradient, const float* y_gradient, const float* x,
                       const Window& window);

}  // namespace plumbline::cpu
