// The input's share of the gates is one product for all steps; the rest goes step by step.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/lstm.h"

#include <algorithm>

#include "calibrate/cpu/gemm.h"

namespace plumbline::cpu {

Lstm::Lstm(const LstmShape& shape)
    : shape_(shape),
      input_{shape.samples * shape.tokens, shape.features, 4 * shape.hidden},
      zeros_(shape.hidden),
      turned_weight_(4 * shape.hidden * shape.hidden),
      cell_gradient_(shape.samples * shape.hidden),
      h_from_after_(shape.samples * shape.hidden),
      h_before_(shape.samples * shape.tokens * shape.hidden) {}

// The rows of one step are a sample's tokens apart.

void Lstm::forward(float* gates, float* cells, float* h, const float* x, const Weights& weights) {
  const std::int64_t hidden = shape_.hidden;
  const std::int64_t tokens = shape_.tokens;
  input_.forward(gates, x, weights.input, weights.bias);
  transpose(turned_weight_.data(), weights.hidden, {4 * hidden, hidden});
  for (std::int64_t t = 0; t < tokens; ++t) {
    if (t > 0) {
      multiply({shape_.samples, 4 * hidden, hidden}, {h + (t - 1) * hidden, tokens * hidden},
               {turned_weight_.data(), 4 * hidden},
               {gates + t * 4 * hidden, tokens * 4 * hidden, 1});
    }
    for (std::int64_t s = 0; s < shape_.samples; ++s) {
      const std::int64_t row = s * tokens + t;
      lstm_step(gates + row * 4 * hidden, cells + row * hidden, h + row * hidden,
                t > 0 ? cells + (row - 1) * hidden : zeros_.data(), hidden);
    }
  }
}

void Lstm::backward_input(float* gates_gradient, float* x_gradient, const float* h_gradient,
                          const float* gates, const float* cells, const Weights& weights) {
  const std::int64_t hidden = shape_.hidden;
  const std::int64_t tokens = shape_.tokens;
  std::fill_n(cell_gradient_.data(), shape_.samples * hidden, 0.0F);
  std::fill_n(h_from_after_.data(), shape_.samples * hidden, 0.0F);
  for (std::int64_t t = tokens - 1; t >= 0; --t) {
    for (std::int64_t s = 0; s < shape_.samples; ++s) {
      const std::int64_t row = s * tokens + t;
      const LstmStep step{t > 0 ? cells + (row - 1) * hidden : zeros_.data(), cells + row * hidden,
                          gates + row * 4 * hidden};
      lstm_step_gradient(gates_gradient + row * 4 * hidden, cell_gradient_.data() + s * hidden,
                         step, h_gradient + row * hidden, h_from_after_.data() + s * hidden,
                         hidden);
    }
    if (t > 0) {
      multiply({shape_.samples, hidden, 4 * hidden},
               {gates_gradient + t * 4 * hidden, tokens * 4 * hidden}, {weights.hidden, hidden},
               {h_from_after_.data(), hidden});
    }
  }
  if (x_gradient != nullptr) input_.input_gradient(x_gradient, gates_gradient, weights.input);
}

void Lstm::backward_weight(const Gradients& gradients, const float* gates_gradient, const float* x,
                           const float* h) {
  const std::int64_t row = shape_.hidden;
  const std::int64_t sample = shape_.tokens * row;
  for (std::int64_t s = 0; s < shape_.samples; ++s) {
    float* before = h_before_.data() + s * sample;
    std::fill_n(before, row, 0.0F);
    std::copy_n(h + s * sample, sample - row, before + row);
  }
  input_.weight_gradient(gradients.input, gradients.bias, gates_gradient, x);
  const Dense of_hidden{shape_.samples * shape_.tokens, row, 4 * row};
  of_hidden.weight_gradient(gradients.hidden, nullptr, gates_gradient, h_before_.data());
}

}  // namespace plumbline::cpu
