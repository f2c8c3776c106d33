// Helpers of all plain loops: sizes, indices, sums of exponentials.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/bug.h"
#include "calibrate/training/reference_math.h"

namespace plumbline::reference {

inline std::int64_t count(const Values& values) { return std::ssize(values); }

/// How many parts of `size` elements there are.
inline std::int64_t parts(const Values& values, std::int64_t size) {
  PLUMBLINE_CHECK(size > 0 && count(values) % size == 0, count(values), size);
  return count(values) / size;
}

inline void check_size(const Values& values, std::int64_t size) {
  PLUMBLINE_CHECK(count(values) == size, count(values), size);
}

/// A label or an id as an index.
inline std::int64_t index_below(double value, std::int64_t limit) {
  PLUMBLINE_CHECK(value >= 0 && value < static_cast<double>(limit) && value == std::floor(value),
                  value, limit);
  return static_cast<std::int64_t>(value);
}

inline double log_sum_exp(const Values& scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const double score : scores) sum += std::exp(score - largest);
  return largest + std::log(sum);
}

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace plumbline::reference
