// Times with a derivative, as one integer each.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace plumbline {

/// The direction in which an infinitely small step moves a time.
enum class DualSide : std::int64_t { shorter = -1, longer = 1 };

/// A dual number: a time in nanoseconds, and the number of infinitely small steps that move it.
struct DualTime {
  std::int64_t time = 0;
  std::int64_t steps = 0;

  friend bool operator==(const DualTime& a, const DualTime& b) {
    return a.time == b.time && a.steps == b.steps;
  }
};

/// Dual numbers of one side as integers: the time x scale, plus or minus the steps. Integers add up
/// and compare as these numbers do. So code that knows only whole nanoseconds (CompiledGraph)
/// carries derivatives at no cost. Among paths of equal length the maximum picks one by its steps:
/// the fewest where steps make times shorter, the most where they make times longer.
class DualScale {
 public:
  /// For times up to `longest`. Requires: at least 1.
  explicit DualScale(std::int64_t longest) : scale_((std::int64_t{1} << 62) / longest) {}

  /// The factor of a time. The steps of one time must stay below it.
  std::int64_t scale() const { return scale_; }

  std::int64_t pack(DualTime dual, DualSide side) const {
    return dual.time * scale_ + static_cast<std::int64_t>(side) * dual.steps;
  }

  /// Requires: a time of at least 0, and no fewer than 0 steps.
  DualTime unpack(std::int64_t packed, DualSide side) const {
    if (side == DualSide::longer) return {packed / scale_, packed % scale_};
    const std::int64_t time = (packed + scale_ - 1) / scale_;
    return {time, time * scale_ - packed};
  }

 private:
  std::int64_t scale_;
};

}  // namespace plumbline
