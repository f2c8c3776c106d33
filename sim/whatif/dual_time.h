// Times with a derivative, as one integer each.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace plumbline {

/// Which way a time is moved by an infinitely small step.
enum class DualSide : std::int64_t { shorter = -1, longer = 1 };

/// A dual number: a time in nanoseconds, and by how many infinitely small steps it is moved.
struct DualTime {
  std::int64_t time = 0;
  std::int64_t steps = 0;

  friend bool operator==(const DualTime& a, const DualTime& b) {
    return a.time == b.time && a.steps == b.steps;
  }
};

/// Dual numbers of one side as integers: time x scale, and the steps more or less. Integers add up
/// and compare as these numbers do, so what knows only whole nanoseconds (CompiledGraph) carries
/// derivatives at no cost: of several paths as long as each other, the maximum is that which is
/// moved the least where steps make times shorter, and the most where they make them longer.
class DualScale {
 public:
  /// For times up to `longest`. Requires: at least 1.
  explicit DualScale(std::int64_t longest) : scale_((std::int64_t{1} << 62) / longest) {}

  /// What a time is multiplied by. The steps of one time have to stay below that.
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
