// The draws.
//
// SPDX-License-Identifier: MIT
#include "sim/quiz/figures.h"

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "base/random.h"
#include "sim/quiz/quiz.h"

namespace plumbline {
namespace {

constexpr std::size_t kLongestStudent = 32;

bool may_name_a_student(char one) {
  return (one >= 'a' && one <= 'z') || (one >= '0' && one <= '9') || one == '-' || one == '_' ||
         one == '.';
}

}  // namespace

std::uint64_t fnv_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char one : text) {
    hash ^= static_cast<unsigned char>(one);
    hash *= 0x100000001b3U;
  }
  return hash;
}

Result<std::string> student_number(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return std::string();
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  const std::string number = lower_case(text.substr(begin, end + 1 - begin));
  const std::string help = fmt::format(
      "1 to {} letters (a to z), digits, '-', '_' and '.', such as 1234567", kLongestStudent);
  if (number.size() > kLongestStudent)
    return input_error({}, fmt::format("'{}' is too long for a student number", clipped(text)),
                       help);
  for (const char one : number) {
    if (!may_name_a_student(one))
      return input_error({}, fmt::format("'{}' is no student number", clipped(text)), help);
  }
  return number;
}

Figures::Figures(const std::string& student, const std::string& question)
    : own_(!student.empty()), seed_(fnv_of(student + '/' + question)) {}

std::int64_t Figures::between(std::int64_t course, std::int64_t min, std::int64_t max) {
  if (!own_) return course;
  const auto values = static_cast<std::uint64_t>(max - min + 1);
  return min + static_cast<std::int64_t>(random_bits(seed_, drawn_++) % values);
}

std::int64_t Figures::one_of(std::int64_t course, std::initializer_list<std::int64_t> values) {
  if (!own_) return course;
  return values.begin()[between(0, 0, static_cast<std::int64_t>(values.size()) - 1)];
}

}  // namespace plumbline
