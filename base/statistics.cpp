// Order statistics and a trimmed mean.
//
// SPDX-License-Identifier: MIT
#include "base/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/bug.h"

namespace plumbline {

double Statistics::relative_spread() const { return median > 0 ? (q3 - q1) / median : 0; }

double Statistics::half_width_of_median() const {
  return 1.82 * relative_spread() /
         std::sqrt(static_cast<double>(std::max<std::size_t>(samples, 1)));
}

double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

Statistics statistics_of(std::vector<double> samples) {
  PLUMBLINE_CHECK(!samples.empty(), samples.size());
  std::sort(samples.begin(), samples.end());
  const auto trimmed = static_cast<std::ptrdiff_t>(samples.size() / 10);
  Statistics statistics;
  statistics.samples = samples.size();
  const double kept = static_cast<double>(samples.size()) - 2.0 * static_cast<double>(trimmed);
  statistics.mean = std::accumulate(samples.begin() + trimmed, samples.end() - trimmed, 0.0) / kept;
  statistics.median = quantile(samples, 0.5);
  statistics.q1 = quantile(samples, 0.25);
  statistics.q3 = quantile(samples, 0.75);
  statistics.min = samples.front();
  statistics.max = samples.back();
  return statistics;
}

double nearest_rank(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

}  // namespace plumbline
