// How many times to measure, which measurements to drop, and statistics of the rest.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/profile/profile.h"

namespace plumbline {

/// The 97.5 % quantile of Student's t: 2.776 at 4 degrees of freedom. Within 0.02 %.
/// Requires: degrees >= 1.
double student_t(std::size_t degrees);

/// Half the width of the 95 % confidence interval of the mean without the lowest and highest tenth
/// (Statistics::mean), relative to that mean. Nothing for fewer than two samples, or a mean <= 0.
/// With g samples cut on each side and h = n - 2 g kept: t(h - 1) x sqrt(SSD / (h (h - 1))), where
/// SSD sums the squared deviations of the n winsorised samples (Tukey and McLaughlin 1963; Yuen
/// 1974, section 2).
/// It holds for independent samples. One set does not show drift from set to set.
std::optional<double> relative_half_width(std::vector<double> samples);

/// Why a measurement ended.
enum class StopReason : std::uint8_t {
  precise,       ///< The confidence interval is narrow enough.
  stable_noise,  ///< More samples would not change the spread; the interval may be wide.
  samples,       ///< The caller's limit of samples.
  time,          ///< The caller's limit of time.
};

/// "precise", "stable noise", "most samples", "most time".
std::string_view name(StopReason reason);

/// When to stop. The caller sets the caps; the other members have defaults.
struct StopLimits {
  std::size_t max_samples = 0;  ///< Dropped ones included.
  Duration max_time{};          ///< In the caller's measure of time.
  std::size_t min_samples = 30;
  Duration min_time{};            ///< Only caps end a measurement before this.
  double half_width = 0.0025;     ///< Relative, of the 95 % confidence interval: below is precise.
  double noise_deviation = 0.05;  ///< Relative, of the noise estimates: below is stable.
  std::size_t every = 16;         ///< Rules are checked after this many samples.
};

/// Decides after each sample whether another one is worth its time. It stops at the first of: a
/// narrow interval; stable noise; a cap. Noise is stable by the second rule of nvbench's `stdrel`:
/// there is one estimate of the relative standard deviation after each sample, and the last 512
/// estimates deviate little from the newest. More than 64 estimates are required. Both rules need
/// the least samples and time. Independent normal samples with a deviation of 1 % stop after some
/// 80, of 2 % after some 270. With 5 % or more they stop after some 530, when the first estimates
/// have left the window. add() takes O(1), but every `every`-th call takes O(n). It reads no clock,
/// and it sees no drift: a slow drift looks like stable noise.
class StopRule {
 public:
  /// Requires: every >= 1.
  explicit StopRule(const StopLimits& limits);

  /// A sample in ns; `elapsed` is the time since the measurement began.
  void add(double sample, Duration elapsed);
  /// A sample was taken and dropped: it counts towards the caps.
  void drop(Duration elapsed);

  /// The reason to stop; nothing = go on. The first reason stays.
  std::optional<StopReason> stopped() const { return reason_; }
  /// relative_half_width of the samples up to the last check of the rules.
  std::optional<double> half_width() const { return half_width_; }
  std::size_t samples() const { return sorted_.size() + pending_.size(); }
  std::size_t dropped() const { return dropped_; }

 private:
  static constexpr std::size_t kNoiseWindow = 512;

  void look(Duration elapsed, bool is_due);
  bool noise_is_stable() const;

  StopLimits limits_;
  std::optional<StopReason> reason_;
  std::optional<double> half_width_;
  std::vector<double> sorted_;
  std::vector<double> pending_;  ///< Samples since the last check of the rules.
  double mean_ = 0;
  double squares_ = 0;  ///< The sum of squared deviations from the mean (Welford 1962).
  std::size_t dropped_ = 0;
  std::array<double, kNoiseWindow> noise_{};  ///< A ring.
  std::size_t noises_ = 0;                    ///< All estimates that ever entered the ring.
};

/// One execution by two clocks: wall time, and the thread's CPU time.
struct ClockedSample {
  Duration wall{};
  Duration cpu{};
};

/// Whether other work took the core away: wall - cpu is above 1 % of the wall's time and above
/// 20 us.
bool is_contaminated(const ClockedSample& sample);

/// The samples without the contaminated ones, in their order.
struct CleanSamples {
  std::vector<double> walls;  ///< In ns.
  std::size_t dropped = 0;

  /// In [0, 1]; 0 for no samples.
  double dropped_share() const;
};

CleanSamples clean(const std::vector<ClockedSample>& samples);

/// The line latency + bytes / bandwidth that fits a table, and its largest residual.
struct LinkFit {
  Duration latency{};
  std::optional<BytesPerSecond> bandwidth;  ///< Nothing = larger sizes do not take longer.
  double largest_residual = 0;              ///< The largest |fitted - measured| / measured.

  double nanoseconds(Bytes size) const;
};

/// Least squares on relative residuals (weights 1 / t^2): the smallest transfers, which determine
/// the latency, count as much as the largest, which determine the bandwidth. The latency is at
/// least 0. Nothing where the table has no two sizes. Requires: times > 0.
std::optional<LinkFit> fit_link(const TransferTable& table);

/// The link with its fit and its table, sorted by size. Nothing where there is no fit.
std::optional<MeasuredLink> measured_link(std::string kind, TransferTable table);

/// How much longer the later samples take: the ratio of the means without the lowest and highest
/// tenth, less 1. Nothing where a set is empty or the earlier mean is 0.
std::optional<double> drift(const std::vector<double>& earlier, const std::vector<double>& later);

/// How much longer a block takes as one piece than its layers on their own, summed: the ratio less
/// 1. Nothing where the sum is 0.
std::optional<double> closure(Duration block, const std::vector<Duration>& layers);

/// The factors that make the times of layers, timed one by one, add up to their time as one piece.
/// The cost of timing is the same for each layer, so the same time is subtracted from each (or
/// added). No layer goes below a tenth of its time. The rest is shared in proportion to the times.
/// All 1 where nothing can be shared. Requires: no time below 0.
std::vector<double> closing_factors(const std::vector<double>& layers, double piece);

/// The closure of the forward and of the full backward.
struct BlockClosure {
  std::optional<double> forward;
  std::optional<double> backward;
};

/// Requires: the block's layers are in the measurement.
BlockClosure closure(const Block& block, const Measurement& measurement);

}  // namespace plumbline
