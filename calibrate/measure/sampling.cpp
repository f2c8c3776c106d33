// Confidence of a trimmed mean, stopping rules, contamination, and a straight line through a link.
//
// SPDX-License-Identifier: MIT
#include "calibrate/measure/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/bug.h"
#include "base/statistics.h"

namespace plumbline {
namespace {

/// relative_half_width of sorted samples.
std::optional<double> half_width_of(const std::vector<double>& sorted) {
  const std::size_t cut = sorted.size() / 10;  // as statistics_of does
  const std::size_t kept = sorted.size() - 2 * cut;
  if (sorted.size() < 2) return std::nullopt;
  const auto from = sorted.begin() + static_cast<std::ptrdiff_t>(cut);
  const auto to = sorted.end() - static_cast<std::ptrdiff_t>(cut);
  const auto count = static_cast<double>(kept);
  const auto cut_count = static_cast<double>(cut);
  const double sum = std::accumulate(from, to, 0.0);
  const double min = *from;
  const double max = *(to - 1);
  const double mean = sum / count;
  if (!(mean > 0)) return std::nullopt;
  // The winsorised samples: each cut sample has the value of the nearest kept one.
  const double winsorised = (sum + cut_count * (min + max)) / static_cast<double>(sorted.size());
  const auto square = [&](double sample) { return (sample - winsorised) * (sample - winsorised); };
  double squares = cut_count * (square(min) + square(max));
  for (auto at = from; at != to; ++at) squares += square(*at);
  return student_t(kept - 1) * std::sqrt(squares / (count * (count - 1))) / mean;
}

double trimmed_mean(const std::vector<double>& samples) { return statistics_of(samples).mean; }

std::optional<double> relative_difference(double base, double other) {
  if (!(base > 0)) return std::nullopt;
  return other / base - 1;
}

}  // namespace

double student_t(std::size_t degrees) {
  PLUMBLINE_CHECK(degrees >= 1, degrees);
  constexpr std::array<double, 5> few = {12.7062, 4.30265, 3.18245, 2.77645, 2.57058};
  if (degrees <= few.size()) return few[degrees - 1];
  // Abramowitz and Stegun 1964, 26.7.5.
  constexpr double z = 1.959963985;  // the normal distribution's
  constexpr double s = z * z;
  const auto n = static_cast<double>(degrees);
  const double first = z * (s + 1) / 4;
  const double second = z * ((5 * s + 16) * s + 3) / 96;
  const double third = z * (((3 * s + 19) * s + 17) * s - 15) / 384;
  const double fourth = z * ((((79 * s + 776) * s + 1482) * s - 1920) * s - 945) / 92160;
  return z + (first + (second + (third + fourth / n) / n) / n) / n;
}

std::optional<double> relative_half_width(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return half_width_of(samples);
}

std::string_view name(StopReason reason) {
  constexpr std::string_view names[] = {"precise", "stable noise", "most samples", "most time"};
  return names[static_cast<std::size_t>(reason)];
}

StopRule::StopRule(const StopLimits& limits) : limits_(limits) {
  PLUMBLINE_CHECK(limits.every >= 1, limits.every);
}

void StopRule::add(double sample, Duration elapsed) {
  pending_.push_back(sample);
  const auto count = static_cast<double>(samples());
  const double deviation = sample - mean_;
  mean_ += deviation / count;
  squares_ += deviation * (sample - mean_);
  if (samples() >= 2 && mean_ > 0)
    noise_[noises_++ % kNoiseWindow] = std::sqrt(squares_ / (count - 1)) / mean_;
  look(elapsed, samples() % limits_.every == 0);
}

void StopRule::drop(Duration elapsed) {
  ++dropped_;
  look(elapsed, false);
}

void StopRule::look(Duration elapsed, bool is_due) {
  if (reason_) return;
  const bool max_samples = samples() + dropped_ >= limits_.max_samples;
  const bool max_time = elapsed >= limits_.max_time;
  if (!is_due && !max_samples && !max_time) return;

  std::sort(pending_.begin(), pending_.end());
  const auto middle = static_cast<std::ptrdiff_t>(sorted_.size());
  sorted_.insert(sorted_.end(), pending_.begin(), pending_.end());
  std::inplace_merge(sorted_.begin(), sorted_.begin() + middle, sorted_.end());
  pending_.clear();
  half_width_ = half_width_of(sorted_);

  if (samples() >= limits_.min_samples && elapsed >= limits_.min_time) {
    if (half_width_ && *half_width_ < limits_.half_width) {
      reason_ = StopReason::precise;
    } else if (noise_is_stable()) {
      reason_ = StopReason::stable_noise;
    }
  }
  if (!reason_ && max_samples) reason_ = StopReason::samples;
  if (!reason_ && max_time) reason_ = StopReason::time;
}

bool StopRule::noise_is_stable() const {
  constexpr std::size_t min = 64;
  if (noises_ <= min) return false;
  const std::size_t held = std::min(noises_, kNoiseWindow);
  const double newest = noise_[(noises_ - 1) % kNoiseWindow];
  double squares = 0;
  for (std::size_t i = 0; i < held; ++i) squares += (noise_[i] - newest) * (noise_[i] - newest);
  return std::sqrt(squares / static_cast<double>(held - 1)) < limits_.noise_deviation * newest;
}

bool is_contaminated(const ClockedSample& sample) {
  constexpr Duration negligible = std::chrono::microseconds(20);
  return sample.wall - sample.cpu > std::max(sample.wall / 100, negligible);
}

double CleanSamples::dropped_share() const {
  const std::size_t all = walls.size() + dropped;
  return all == 0 ? 0 : static_cast<double>(dropped) / static_cast<double>(all);
}

CleanSamples clean(const std::vector<ClockedSample>& samples) {
  CleanSamples cleaned;
  cleaned.walls.reserve(samples.size());
  for (const ClockedSample& sample : samples) {
    if (is_contaminated(sample)) {
      ++cleaned.dropped;
    } else {
      cleaned.walls.push_back(static_cast<double>(sample.wall.count()));
    }
  }
  return cleaned;
}

double LinkFit::nanoseconds(Bytes size) const {
  const auto constant = static_cast<double>(latency.count());
  if (!bandwidth) return constant;
  return constant + static_cast<double>(size.count) * 1e9 / static_cast<double>(bandwidth->count);
}

std::optional<LinkFit> fit_link(const TransferTable& table) {
  // Weighted means of size and time, then the slope about them: sums of squares of sizes from
  // bytes to gigabytes would lose the latency.
  double weights = 0;
  double mean_size = 0;
  double mean_time = 0;
  for (const auto& [size, time] : table) {
    PLUMBLINE_CHECK(size.count >= 0 && time.count() > 0, size.count, time.count());
    const auto t = static_cast<double>(time.count());
    weights += 1 / (t * t);
    mean_size += static_cast<double>(size.count) / (t * t);
    mean_time += 1 / t;
  }
  const bool has_two_sizes = std::any_of(table.begin(), table.end(), [&](const auto& row) {
    return row.first != table.front().first;
  });
  if (!has_two_sizes) return std::nullopt;
  mean_size /= weights;
  mean_time /= weights;
  double size_squares = 0;
  double products = 0;
  double products_at_zero = 0;  // the same about the origin, for a latency of 0
  double size_squares_at_zero = 0;
  for (const auto& [size, time] : table) {
    const auto t = static_cast<double>(time.count());
    const auto x = static_cast<double>(size.count);
    size_squares += (x - mean_size) / t * ((x - mean_size) / t);
    products += (x - mean_size) / t * ((t - mean_time) / t);
    products_at_zero += x / t;
    size_squares_at_zero += x / t * (x / t);
  }
  double slope = products / size_squares;  // ns for each byte
  double latency = mean_time - slope * mean_size;
  if (slope <= 0) {
    slope = 0;
    latency = mean_time;
  } else if (latency < 0) {
    latency = 0;
    slope = products_at_zero / size_squares_at_zero;
  }

  LinkFit fit;
  fit.latency = Duration{std::llround(latency)};
  // A rate above the limit of a profile counts as no limit.
  const double rate = slope > 0 ? 1e9 / slope : 0;
  if (slope > 0 && rate <= static_cast<double>(kLargestQuantity))
    fit.bandwidth = BytesPerSecond{std::max<std::int64_t>(std::llround(rate), 1)};
  for (const auto& [size, time] : table) {
    const auto t = static_cast<double>(time.count());
    fit.largest_residual = std::max(fit.largest_residual, std::abs(fit.nanoseconds(size) - t) / t);
  }
  return fit;
}

std::optional<MeasuredLink> measured_link(std::string kind, TransferTable table) {
  const std::optional<LinkFit> fit = fit_link(table);
  if (!fit) return std::nullopt;
  std::sort(table.begin(), table.end());
  return MeasuredLink{std::move(kind), fit->latency, fit->bandwidth, std::move(table)};
}

std::optional<double> drift(const std::vector<double>& earlier, const std::vector<double>& later) {
  if (earlier.empty() || later.empty()) return std::nullopt;
  return relative_difference(trimmed_mean(earlier), trimmed_mean(later));
}

std::optional<double> closure(Duration block, const std::vector<Duration>& layers) {
  const Duration sum = std::accumulate(layers.begin(), layers.end(), Duration::zero());
  return relative_difference(static_cast<double>(sum.count()), static_cast<double>(block.count()));
}

std::vector<double> closing_factors(const std::vector<double>& layers, double piece) {
  const double sum = std::accumulate(layers.begin(), layers.end(), 0.0);
  if (sum <= 0 || piece <= 0) return std::vector<double>(layers.size(), 1.0);
  constexpr double kMinShare = 0.1;
  const auto timed = std::count_if(layers.begin(), layers.end(), [](double t) { return t > 0; });
  const double each = (sum - piece) / static_cast<double>(timed);
  std::vector<double> closed;
  closed.reserve(layers.size());
  for (const double time : layers)
    closed.push_back(time > 0 ? std::max(time - each, kMinShare * time) : 0.0);
  const double rest = piece / std::accumulate(closed.begin(), closed.end(), 0.0);
  std::vector<double> factors;
  factors.reserve(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i)
    factors.push_back(layers[i] > 0 ? closed[i] * rest / layers[i] : 1.0);
  return factors;
}

BlockClosure closure(const Block& block, const Measurement& measurement) {
  std::vector<Duration> forward;
  std::vector<Duration> backward;
  forward.reserve(block.layers.size());
  backward.reserve(block.layers.size());
  for (const LayerId id : block.layers) {
    PLUMBLINE_CHECK(id.value < measurement.layers.size(), id.value, measurement.layers.size());
    forward.push_back(measurement.layers[id.value].forward.mean);
    backward.push_back(measurement.layers[id.value].backward.mean);
  }
  return {closure(block.forward, forward), closure(block.backward, backward)};
}

}  // namespace plumbline
