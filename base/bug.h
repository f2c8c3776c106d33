// Always-on checks for our own mistakes: they throw a Bug that tells the values and the place.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace plumbline {

/// A mistake of our own: what() tells what was expected, the values and the place, in two lines. A
/// host program may catch it; the command tells it and exits with 70.
class Bug : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Throws the Bug.
[[noreturn]] void throw_bug(const char* condition, const std::string& values, const char* file,
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
#define PLUMBLINE_CHECK(condition, ...)                                                   \
  do {                                                                                    \
    if (!(condition)) [[unlikely]]                                                        \
      ::plumbline::throw_bug(#condition,                                                  \
                             ::plumbline::detail::join_values(#__VA_ARGS__, __VA_ARGS__), \
                             __FILE__, __LINE__);                                         \
  } while (false)
