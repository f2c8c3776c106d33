// Three products.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/dense.h"

#include <algorithm>

#include "calibrate/cpu/gemm.h"
#include "calibrate/cpu/kernels.h"

namespace plumbline::cpu {

void Dense::forward(float* y, const float* x, const float* weight, const float* bias,
                    const float* skip) const {
  // The target first gets the values to which the product is added.
  if (skip != nullptr && bias != nullptr) {
    add_row(y, skip, bias, {rows, outputs});
  } else if (skip != nullptr) {
    std::copy_n(skip, rows * outputs, y);
  } else if (bias != nullptr) {
    fill_rows(y, bias, {rows, outputs});
  }
  const float keep = bias != nullptr || skip != nullptr ? 1 : 0;
  multiply({rows, outputs, inputs}, {x, inputs}, {weight, inputs, true}, {y, outputs, keep});
}

void Dense::input_gradient(float* x_gradient, const float* y_gradient, const float* weight) const {
  multiply({rows, inputs, outputs}, {y_gradient, outputs}, {weight, inputs}, {x_gradient, inputs});
}

void Dense::weight_gradient(float* weight_gradient, float* bias_gradient, const float* y_gradient,
                            const float* x) const {
  multiply({outputs, inputs, rows}, {y_gradient, outputs, true}, {x, inputs},
           {weight_gradient, inputs, 1});
  if (bias_gradient != nullptr) add_column_sums(bias_gradient, y_gradient, {rows, outputs});
}

}  // namespace plumbline::cpu
