// Element-wise steps.
// SPDX-License-Identifier: MIT
#include "calibrate/optimizer.h"

#include <cmath>

namespace plumbline {
namespace {

constexpr float kDecay1 = 0.9F;
constexpr float kDecay2 = 0.999F;
constexpr float kEpsilon = 1e-8F;

float sum_at(const std::vector<const float*>& gradients, std::size_t i) {
  float sum = gradients.front()[i];
  for (std::size_t member = 1; member < gradients.size(); ++member) sum += gradients[member][i];
  return sum;
}

}  // namespace

OptimizerKind optimizer_for(double optimizer_state) {
  return optimizer_state >= 2 ? OptimizerKind::adam : OptimizerKind::gradient_descent;
}

Optimizer::Optimizer(OptimizerKind kind, std::size_t parameters, double rate)
    : kind_(kind), rate_(static_cast<float>(rate)) {
  if (kind == OptimizerKind::gradient_descent) return;
  for (Buffer* moment : {&first_moment_, &second_moment_}) {
    *moment = Buffer(parameters);
    std::fill_n(moment->data(), parameters, 0.0F);
  }
}

void Optimizer::step() { ++steps_; }

void Optimizer::update(std::size_t first, std::size_t last,
                       const std::vector<const float*>& gradients, const float* before,
                       float* after) {
  if (kind_ == OptimizerKind::gradient_descent && gradients.size() == 1) {
    const float* const gradient = gradients.front();
    const float rate = rate_;
#pragma GCC ivdep  // each element depends on itself alone, also in place
    for (std::size_t i = first; i < last; ++i) after[i] = before[i] - rate * gradient[i];
    return;
  }
  if (kind_ == OptimizerKind::gradient_descent) {
    for (std::size_t i = first; i < last; ++i) after[i] = before[i] - rate_ * sum_at(gradients, i);
    return;
  }
  const auto steps = static_cast<float>(steps_);
  const float correction1 = 1 / (1 - std::pow(kDecay1, steps));
  const float correction2 = 1 / (1 - std::pow(kDecay2, steps));
  float* const m = first_moment_.data();
  float* const v = second_moment_.data();
  for (std::size_t i = first; i < last; ++i) {
    const float gradient = sum_at(gradients, i);
    m[i] = kDecay1 * m[i] + (1 - kDecay1) * gradient;
    v[i] = kDecay2 * v[i] + (1 - kDecay2) * gradient * gradient;
    after[i] = before[i] - rate_ * m[i] * correction1 / (std::sqrt(v[i] * correction2) + kEpsilon);
  }
}

}  // namespace plumbline
