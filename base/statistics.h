// What a set of measured times says: location, spread, what may be added.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

namespace plumbline {

/// Of samples, in their unit.
struct Statistics {
  std::size_t samples = 0;
  double mean = 0;  ///< Without the lowest and highest tenth: what enters sums.
  double median = 0;
  double q1 = 0;
  double q3 = 0;
  double min = 0;
  double max = 0;

  /// (q3 - q1) / median; 0 for a median of 0.
  double relative_spread() const;
  /// Half the 95 % interval of the median, relative: 1.82 x relative_spread() over the root of the
  /// number of samples (McGill, Tukey and Larsen 1978, for normal samples).
  double half_width_of_median() const;
};

/// Quantiles interpolate linearly between order statistics. Requires: at least one sample.
Statistics statistics_of(std::vector<double> samples);

/// The value below which this share of the samples lies. Requires: sorted, at least one.
double quantile(const std::vector<double>& sorted, double share);

}  // namespace plumbline
