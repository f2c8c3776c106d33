// Always-on checks for our own mistakes: they print the values and end the program with code 70.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <sstream>
#include <string>

namespace plumbline {

/// Prints what was expected, the values and the place, and exits with 70. Never returns.
[[noreturn]] void report_bug(const char* condition, const std::string& values, const char* file,
                             int line);

namespace detail {
template <class... Values>
std::string join_values(const char* names, const Values&... values) {
  std::ostringstream text;
  text << names << " =";
  ((text << ' ' << values), ...);
  return text.str();
}
}  // namespace detail

}  // namespace plumbline

/// Checks an invariant of the program itself, in Release too; bad *input* is a Diagnostic instead.
#define PLUMBLINE_CHECK(condition, ...)                                                    \
  do {                                                                                     \
    if (!(condition)) [[unlikely]]                                                         \
      ::plumbline::report_bug(#condition,                                                  \
                              ::plumbline::detail::join_values(#__VA_ARGS__, __VA_ARGS__), \
                              __FILE__, __LINE__);                                         \
  } while (false)
