// Counts that cannot overflow: exact up to 2^53, larger ones are known to be larger.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>

namespace plumbline {

/// A count of elements, bytes or FLOPs in [0, 2^53], the range in which a double is exact too. Sums
/// and products beyond that stay "beyond" in all further sums and products (except times 0).
class SaturatingCount {
 public:
  static constexpr std::int64_t kLargest = std::int64_t{1} << 53U;

  /// Requires: value >= 0.
  constexpr SaturatingCount(std::int64_t value = 0) : value_(std::min(value, kLargest + 1)) {}

  constexpr bool is_exact() const { return value_ <= kLargest; }
  /// The count; 2^53 + 1 if it is beyond.
  constexpr std::int64_t value() const { return value_; }

  friend constexpr SaturatingCount operator+(SaturatingCount a, SaturatingCount b) {
    return {a.value_ + b.value_};
  }
  friend constexpr SaturatingCount operator*(SaturatingCount a, SaturatingCount b) {
    if (a.value_ != 0 && b.value_ > kLargest / a.value_) return {kLargest + 1};
    return {a.value_ * b.value_};
  }
  SaturatingCount& operator+=(SaturatingCount other) { return *this = *this + other; }
  SaturatingCount& operator*=(SaturatingCount other) { return *this = *this * other; }

 private:
  std::int64_t value_;
};

}  // namespace plumbline
