// Statistics of measured times: location, spread, and the mean that enters sums.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

namespace plumbline {

/// The statistics of samples, in their unit.
struct Statistics {
  std::size_t samples = 0;
  double mean = 0;  ///< Trimmed: without the lowest and highest tenth. Sums use it.
  double median = 0;
  double q1 = 0;
  double q3 = 0;
  double min = 0;
  double max = 0;

  /// (q3 - q1) / median; 0 for a median of 0.
  double relative_spread() const;
  /// Half of the 95 % interval of the median, relative to it: 1.82 x relative_spread() / the square
  /// root of the number of samples (McGill, Tukey and Larsen 1978, for normal samples).
  double half_width_of_median() const;
};

/// Quantiles interpolate linearly between order statistics. Requires: at least one sample.
Statistics statistics_of(std::vector<double> samples);

/// The value with this share of the samples below it. Requires: sorted, at least one.
double quantile(const std::vector<double>& sorted, double share);

/// The least sample that `share` of the samples do not exceed. Requires: sorted, at least one;
/// `share` in [0, 1].
double nearest_rank(const std::vector<double>& sorted, double share);

}  // namespace plumbline
