// Means, extremes and counts.
//
// SPDX-License-Identifier: MIT
#include "tools/summary.h"

#include <algorithm>
#include <cmath>

#include "base/statistics.h"

namespace plumbline {
namespace {

Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  if (values.empty()) return spread;
  std::vector<double> sizes;
  sizes.reserve(values.size());
  for (const double value : values) {
    sizes.push_back(std::abs(value));
    spread.mean += value;
    spread.mean_size += std::abs(value);
  }
  std::sort(sizes.begin(), sizes.end());
  spread.median_size = quantile(sizes, 0.5);
  spread.mean /= static_cast<double>(values.size());
  spread.mean_size /= static_cast<double>(values.size());
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  spread.min = *min;
  spread.max = *max;
  return spread;
}

TimedAgain timed_again(const std::vector<const ResultFile*>& files) {
  TimedAgain again;
  std::vector<double> by_profile;
  std::vector<double> errors;
  std::vector<double> rounds;
  for (const ResultFile* file : files) {
    for (const ResultPoint& point : file->points) {
      if (!point.measured || !point.measured->again_error) continue;
      const ResultPoint::Measured& measured = *point.measured;
      if (!again.worst ||
          std::abs(*measured.again_error) > std::abs(*again.worst->measured->again_error)) {
        again.worst = &point;
        again.worst_of = file;
      }
      by_profile.push_back(measured.error);
      errors.push_back(*measured.again_error);
      rounds.push_back(measured.range_of_rounds());
    }
  }
  again.runs = errors.size();
  again.by_profile = spread_of(by_profile);
  again.error = spread_of(errors);
  again.rounds = spread_of(rounds);
  return again;
}

}  // namespace

Summary summarize(const std::vector<const ResultFile*>& files) {
  Summary summary;
  std::vector<double> errors;
  std::array<std::vector<double>, kCauses.size()> causes;
  for (const ResultFile* file : files) {
    summary.ranking.pairs += file->ranking.pairs;
    summary.ranking.equal += file->ranking.equal;
    summary.ranking.ties += file->ranking.ties;
    summary.ranking.right += file->ranking.right;
    summary.ranking.wrong += file->ranking.wrong;
    for (const ResultPoint& point : file->points) {
      ++summary.runs;
      ++summary.verdicts[static_cast<std::size_t>(point.verdict)];
      summary.clean += point.clean;
      summary.iterations += point.iterations;
      if (!point.measured) continue;
      const ResultPoint::Measured& measured = *point.measured;
      ++summary.memory[static_cast<std::size_t>(measured.memory)];
      if (!summary.worst || std::abs(measured.error) > std::abs(summary.worst->measured->error)) {
        summary.worst = &point;
        summary.worst_of = file;
      }
      errors.push_back(measured.error);
      const auto parts = by_cause(measured.shares);
      for (std::size_t i = 0; i < causes.size(); ++i)
        causes[i].push_back(parts[i] / measured.time_s);
    }
  }
  summary.again = timed_again(files);
  summary.measured = errors.size();
  summary.error = spread_of(errors);
  for (std::size_t i = 0; i < causes.size(); ++i) summary.causes[i] = spread_of(causes[i]);
  return summary;
}

}  // namespace plumbline
