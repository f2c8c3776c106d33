// A real number at the front of a text.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string_view>

namespace plumbline {

/// A number, and the length of its text.
struct RealText {
  double value = 0;
  std::size_t used = 0;       ///< 0 = there is no number.
  bool out_of_range = false;  ///< It is larger or smaller than a double.
};

/// The number at the front of `text`, rounded to the nearest double, as std::from_chars reads it:
/// no sign but a minus, no space before it, no hexadecimal digits; nor is it "inf" or "nan". The
/// value counts only where it is in range.
RealText real_at_front(std::string_view text);

/// The same for libraries whose std::from_chars reads no doubles. Requires: the locale "C", in
/// which a point is a point.
RealText real_by_strtod(std::string_view text);

}  // namespace plumbline
