// exp, sigmoid and tanh in fp32, to a few units in the last place, for loops that are vectorized.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

/// Polynomials are interpolations at Chebyshev nodes, computed with 60 digits. NaN stays NaN.
namespace plumbline::cpu {

/// Relative error below 2e-7. Arguments are clamped to +-86.5.
[[gnu::always_inline]] inline float fast_exp(float x) {
  constexpr float kLimit = 86.5F;
  constexpr float kLog2E = 1.44269504F;
  constexpr float kShift = 12582912.F;        // 1.5 x 2^23: a number added to it is rounded
  constexpr float kLn2High = 0.693359375F;    // few digits: its multiples are exact
  constexpr float kLn2Low = -2.12194440e-4F;  // ln 2 - kLn2High
  x = x < -kLimit ? -kLimit : x;
  x = x > kLimit ? kLimit : x;
  // exp(x) = 2^n exp(r) with |r| <= ln 2 / 2; exp(r) = 1 + r + r^2 p(r) to 1e-8.
  const float shifted = x * kLog2E + kShift;
  const float n = shifted - kShift;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  const float p =
      0.5F + r * (0.166665767F + r * (0.0416665542F + r * (0.00836323288F + r * 0.00139262508F)));
  const float exp_r = 1 + (r + r * r * p);
  // The low bits of `shifted` are n: they go into the exponent.
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(exp_r) +
                              (std::bit_cast<std::uint32_t>(shifted) << 23U));
}

/// 1 / (1 + exp(-x)). Relative error below 4e-7.
[[gnu::always_inline]] inline float fast_sigmoid(float x) { return 1 / (1 + fast_exp(-x)); }

/// Relative error below 4e-7.
[[gnu::always_inline]] inline float fast_tanh(float x) {
  constexpr float kSmall = 0.625F;
  // Near zero x + x^3 p(x^2) to 2e-8, because the other form loses digits there.
  const float square = x * x;
  const float p =
      -0.333333289F +
      square * (0.133327697F +
                square * (-0.0538509096F + square * (0.020997179F - square * 0.00609671416F)));
  const float near = x + x * square * p;
  const float size = std::fabs(x);
  const float decay = fast_exp(-2 * size);
  const float far = std::copysign((1 - decay) / (1 + decay), x);
  return size < kSmall ? near : far;
}

}  // namespace plumbline::cpu
