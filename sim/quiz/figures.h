// A student's own figures: drawn from the student number and the question, the same everywhere.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace plumbline {

/// The 64-bit hash FNV-1a (Fowler, Noll and Vo).
std::uint64_t fnv_of(std::string_view text);

/// The figures of one question, drawn one after the other. Let h be the 64-bit FNV-1a hash of the
/// student number, '/' and the question's id. Draw i, from 0, is random_bits(h, i) (base/random.h,
/// the finaliser of splitmix64) modulo the number of values. Only whole numbers of 64 bits take
/// part, so 32-bit WebAssembly draws the same. Without a student number each draw is the course's
/// own figure.
class Figures {
 public:
  /// Requires: a student number as student_number() gives it.
  Figures(const std::string& student, const std::string& question);

  /// A whole number in [min, max]; `course` without a student number.
  std::int64_t between(std::int64_t course, std::int64_t min, std::int64_t max);
  /// One of these; `course` without a student number.
  std::int64_t one_of(std::int64_t course, std::initializer_list<std::int64_t> values);

 private:
  bool own_;
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

}  // namespace plumbline
