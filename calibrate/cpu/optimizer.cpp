// Element-wise steps.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/optimizer.h"

#include <algorithm>
#include <cmath>

namespace plumbline {
namespace {

constexpr float kDecay1 = 0.9F;
constexpr float kDecay2 = 0.999F;
constexpr float kEpsilon = 1e-8F;

/// No two arrays overlap, so that the loops are vectorized.
void descend(float* __restrict weights, const float* __restrict gradient, std::size_t size,
             float rate) {
  for (std::size_t i = 0; i < size; ++i) weights[i] -= rate * gradient[i];
}

void descend_with_moments(float* __restrict weights, const float* __restrict gradient,
                          float* __restrict first, float* __restrict second, std::size_t size,
                          float rate, float steps) {
  const float correction1 = 1 / (1 - std::pow(kDecay1, steps));
  const float correction2 = 1 / (1 - std::pow(kDecay2, steps));
  for (std::size_t i = 0; i < size; ++i) {
    first[i] = kDecay1 * first[i] + (1 - kDecay1) * gradient[i];
    second[i] = kDecay2 * second[i] + (1 - kDecay2) * gradient[i] * gradient[i];
    weights[i] -= rate * first[i] * correction1 / (std::sqrt(second[i] * correction2) + kEpsilon);
  }
}

void add(float* __restrict sum, const float* __restrict values, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) sum[i] += values[i];
}

}  // namespace

Optimizer::Optimizer(OptimizerKind kind, const ParameterRange& own, double rate)
    : kind_(kind), own_(own), rate_(static_cast<float>(rate)) {
  if (kind == OptimizerKind::gradient_descent) return;
  for (Buffer* moment : {&first_moment_, &second_moment_}) {
    *moment = Buffer(own.last - own.first);
    std::fill_n(moment->data(), own.last - own.first, 0.0F);
  }
}

void Optimizer::step() { ++steps_; }

void Optimizer::update(const ParameterRange& range, const std::vector<const float*>& gradients,
                       const float* before, float* after) {
  const ParameterRange mine = range.within(own_);
  if (after != before) std::copy(before + mine.first, before + mine.last, after + mine.first);
  if (gradients.size() == 1) return descend_along(mine, gradients.front() + mine.first, after);
  // Piece by piece, so that sums are used while the nearest cache holds them.
  constexpr std::size_t piece = 2048;
  sum_.resize(piece);
  for (std::size_t first = mine.first; first < mine.last; first += piece) {
    const ParameterRange part{first, std::min(first + piece, mine.last)};
    const std::size_t size = part.last - part.first;
    std::copy_n(gradients.front() + first, size, sum_.data());
    for (std::size_t member = 1; member < gradients.size(); ++member)
      add(sum_.data(), gradients[member] + first, size);
    descend_along(part, sum_.data(), after);
  }
}

void Optimizer::descend_along(const ParameterRange& part, const float* gradient, float* weights) {
  const std::size_t size = part.last - part.first;
  if (kind_ == OptimizerKind::gradient_descent)
    return descend(weights + part.first, gradient, size, rate_);
  const std::size_t moment = part.first - own_.first;
  descend_with_moments(weights + part.first, gradient, first_moment_.data() + moment,
                       second_moment_.data() + moment, size, rate_, static_cast<float>(steps_));
}

}  // namespace plumbline
