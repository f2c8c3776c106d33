// The product with a matrix of weights, the main part of most layers.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace plumbline::cpu {

/// y = x W^T + b of x [rows, inputs] and W [outputs, inputs].
struct Dense {
  std::int64_t rows = 0;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;

  /// `bias` may be null. `skip` [rows, outputs] is added.
  void forward(float* y, const float* x, const float* weight, const float* bias,
               const float* skip = nullptr) const;
  void input_gradient(float* x_gradient, const float* y_gradient, const float* weight) const;
  /// Adds to the gradients; `bias_gradient` may be null.
  void weight_gradient(float* weight_gradient, float* bias_gradient, const float* y_gradient,
                       const float* x) const;
};

}  // namespace plumbline::cpu
