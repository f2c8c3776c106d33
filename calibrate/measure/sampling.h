// How many times to measure, which measurements to drop, and what the rest says.
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
/// It holds for independent samples: one set does not show what drifts from set to set.
std::optional<double> relative_half_width(std::vector<double> samples);

/// Why a measurement ended.
enum class StopReason : std::uint8_t {
  precise,       ///< The confidence interval is narrow enough.
  stable_noise,  ///< More samples would not change the spread; the interval may be wide.
  samples,       ///< As many samples as the caller allows.
  time,          ///< As long as the caller allows.
};

/// "precise", "stable noise", "most samples", "most time".
std::string_view name(StopReason reason);

/// When to stop. The caller sets the caps; the rest are the rules of the house.
struct StopLimits {
  std::size_t max_samples = 0;  ///< Dropped ones included.
  Duration max_time{};          ///< As the caller counts it.
  std::size_t min_samples = 30;
  Duration min_time{};            ///< Only caps end a measurement before this.
  double half_width = 0.0025;     ///< Relative, of the 95 % confidence interval: below is precise.
  double noise_deviation = 0.05;  ///< Relative, of the noise estimates: below is stable.
  std::size_t every = 16;         ///< Rules are looked at after this many samples.
};

/// Decides after each sample whether another one is worth its time. It stops at the first of:
/// a narrow interval; noise that no longer changes (the second rule of nvbench's `stdrel`: of the
/// estimates of the relative standard deviation, one after each sample, the last 512 deviate little
/// from the newest; more than 64 are wanted); a cap. Both rules want the least samples and time.
/// Independent normal samples with a deviation of 1 % stop after some 80, of 2 % after some 270,
/// and of 5 % or more after some 530, when the first estimates have left the window.
/// add() takes O(1) but for each `every`-th, which takes O(n). It reads no clock, and it sees no
/// drift: a slow one looks like noise that is stable.
class StopRule {
 public:
  /// Requires: every >= 1.
  explicit StopRule(const StopLimits& limits);

  /// A sample in ns; `elapsed` is the time since the measurement began.
  void add(double sample, Duration elapsed);
  /// A sample was taken and dropped: it counts towards the caps.
  void drop(Duration elapsed);

  /// Why to stop; nothing = go on. What it says first, it keeps.
  std::optional<StopReason> stopped() const { return reason_; }
  /// As relative_half_width, of the samples up to the last look at the rules.
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
  std::vector<double> pending_;  ///< Since the last look at the rules.
  double mean_ = 0;
  double squares_ = 0;  ///< Of the deviations from the mean, summed (Welford 1962).
  std::size_t dropped_ = 0;
  std::array<double, kNoiseWindow> noise_{};  ///< A ring.
  std::size_t noises_ = 0;                    ///< All that were ever put into the ring.
};

/// One execution by two clocks: the wall's, and that of the thread's time on a core.
struct ClockedSample {
  Duration wall{};
  Duration cpu{};
};

/// Whether other work took the core away: wall - cpu is above 1 % of the wall's time and above
/// 20 us.
bool is_contaminated(const ClockedSample& sample);

/// What is left of samples without the contaminated ones, in their order.
struct CleanSamples {
  std::vector<double> walls;  ///< In ns.
  std::size_t dropped = 0;

  /// In [0, 1]; 0 for no samples.
  double dropped_share() const;
};

CleanSamples clean(const std::vector<ClockedSample>& samples);

/// What transfers of several sizes took.
using TransferTable = std::vector<std::pair<Bytes, Duration>>;

/// The line latency + bytes / bandwidth that fits a table, and how far from it the table lies.
struct LinkFit {
  Duration latency{};
  std::optional<BytesPerSecond> bandwidth;  ///< Nothing = larger sizes do not take longer.
  double largest_residual = 0;              ///< The largest |fitted - measured| / measured.

  double nanoseconds(Bytes size) const;
};

/// Least squares on relative residuals (weights 1 / t^2): the smallest transfers, which tell the
/// latency, count as much as the largest, which tell the bandwidth. The latency is at least 0.
/// Nothing where the table has no two sizes. Requires: times > 0.
std::optional<LinkFit> fit_link(const TransferTable& table);

/// The link with its fit and its table, sorted by size. Nothing where there is no fit.
std::optional<MeasuredLink> measured_link(std::string kind, TransferTable table);

/// How much longer the later samples take: the ratio of the means without the lowest and highest
/// tenth, less 1. Nothing where a set is empty or the earlier mean is 0.
std::optional<double> drift(const std::vector<double>& earlier, const std::vector<double>& later);

/// How much longer a block takes as one piece than its layers on their own, summed: the ratio less
/// 1. Nothing where the sum is 0.
std::optional<double> closure(Duration block, const std::vector<Duration>& layers);

/// By what the times of layers, timed one by one, are multiplied so that they add up to what they
/// take as one piece. To time a layer costs the same for each, so each gives the same time back (or
/// gets it), down to a tenth of it at least; what is left then is shared as the times are. All 1
/// where nothing can be shared. Requires: none below 0.
std::vector<double> closing_factors(const std::vector<double>& layers, double piece);

/// The closure of the forward and of the full backward.
struct BlockClosure {
  std::optional<double> forward;
  std::optional<double> backward;
};

/// Requires: the block's layers are in the measurement.
BlockClosure closure(const Block& block, const Measurement& measurement);

}  // namespace plumbline
