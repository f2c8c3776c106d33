// An lstm over fp32 rows, all samples of a step at once.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "calibrate/cpu/dense.h"
#include "calibrate/cpu/kernels.h"

namespace plumbline::cpu {

struct LstmShape {
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  std::int64_t features = 0;
  std::int64_t hidden = 0;
};

/// An lstm over [samples, tokens, features] from zero states, without the residual.
class Lstm {
 public:
  explicit Lstm(const LstmShape& shape);

  struct Weights {
    const float* input = nullptr;
    const float* hidden = nullptr;
    const float* bias = nullptr;
  };
  struct Gradients {
    float* input = nullptr;
    float* hidden = nullptr;
    float* bias = nullptr;
  };

  /// Writes gates [.., 4 hidden] after sigmoid and tanh, cells and h [.., hidden].
  void forward(float* gates, float* cells, float* h, const float* x, const Weights& weights);
  /// Writes the gradient of the gates before sigmoid and tanh. Writes the gradient of x unless
  /// `x_gradient` is null.
  void backward_input(float* gates_gradient, float* x_gradient, const float* h_gradient,
                      const float* gates, const float* cells, const Weights& weights);
  /// Adds to the gradients.
  void backward_weight(const Gradients& gradients, const float* gates_gradient, const float* x,
                       const float* h);

 private:
  LstmShape shape_;
  Dense input_;
  Scratch zeros_;          ///< The cell before the first step.
  Scratch turned_weight_;  ///< The weight of h, transposed: faster for products with few rows.
  Scratch cell_gradient_;  ///< [samples, hidden], from the next step; h_from_after_ too.
  Scratch h_from_after_;
  Scratch h_before_;  ///< The h that each step starts from.
};

}  // namespace plumbline::cpu
