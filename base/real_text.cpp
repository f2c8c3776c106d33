// std::from_chars where the library has it for doubles, else strtod.
//
// SPDX-License-Identifier: MIT
#include "base/real_text.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

namespace plumbline {
namespace {

std::string_view without_minus(std::string_view text) {
  return text.substr(text.starts_with('-') ? 1 : 0);
}

/// Whether a number is there: neither "inf" nor "nan" counts as one.
bool begins_with_digit(std::string_view text) {
  std::string_view digits = without_minus(text);
  if (digits.starts_with('.')) digits.remove_prefix(1);
  return !digits.empty() && digits.front() >= '0' && digits.front() <= '9';
}

}  // namespace

RealText real_by_strtod(std::string_view text) {
  if (!begins_with_digit(text)) return {};
  const std::string_view digits = without_minus(text);
  const bool is_hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
  const std::string copy(is_hexadecimal ? text.substr(0, text.size() - digits.size() + 1) : text);
  char* end = nullptr;
  errno = 0;
  RealText read;
  read.value = std::strtod(copy.c_str(), &end);
  read.used = static_cast<std::size_t>(end - copy.c_str());
  // strtod also complains of small numbers that have fewer digits than others.
  read.out_of_range = errno == ERANGE && (std::isinf(read.value) || read.value == 0);
  return read;
}

#if defined(__cpp_lib_to_chars)

RealText real_at_front(std::string_view text) {
  if (!begins_with_digit(text)) return {};
  RealText read;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read.value);
  read.used = static_cast<std::size_t>(end - text.data());
  read.out_of_range = error == std::errc::result_out_of_range;
  return read;
}

#else  // Emscripten 3.1

RealText real_at_front(std::string_view text) { return real_by_strtod(text); }

#endif

}  // namespace plumbline
