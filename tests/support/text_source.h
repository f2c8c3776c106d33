// Helpers for all tests: texts as files, times and bytes in messages, dice.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include "base/diagnostic.h"
#include "base/units.h"

namespace plumbline {
inline std::ostream& operator<<(std::ostream& out, Duration d) { return out << d.count() << " ns"; }
inline std::ostream& operator<<(std::ostream& out, Bytes b) { return out << b.count << " B"; }
}  // namespace plumbline

namespace plumbline::test {

inline std::shared_ptr<const Source> text_source(std::string name, std::string text) {
  auto source = std::make_shared<Source>();
  source->name = std::move(name);
  source->text = std::move(text);
  return source;
}

/// A small generator of numbers that are the same on every machine.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {}

  /// A number in [min, max].
  std::int64_t roll(std::int64_t min, std::int64_t max) {
    state_ ^= state_ << 13U;
    state_ ^= state_ >> 7U;
    state_ ^= state_ << 17U;
    return min + static_cast<std::int64_t>(state_ % static_cast<std::uint64_t>(max - min + 1));
  }

 private:
  std::uint64_t state_;
};

}  // namespace plumbline::test
