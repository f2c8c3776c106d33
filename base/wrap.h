// Text that fits a page: its width in characters, and lines that are broken to fit.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace plumbline {

/// The width of a page in characters. Absent: the page is as wide as its text.
using PageWidth = std::optional<std::size_t>;

/// The narrowest and the widest page that is believed of a terminal, or taken from a user.
inline constexpr std::size_t kMinPageWidth = 20;
inline constexpr std::size_t kMaxPageWidth = 10'000;

/// The characters of UTF-8 text. No character is wide, and none combines: that is so for all that
/// reports draw with.
std::size_t characters(std::string_view text);

/// A line broken at its spaces, so that each part has at most `width` characters. The parts behind
/// the first are indented by `hang`, or by half of the width if that is less. A word that is too
/// long for a line stands out; an address of the web is broken behind a slash. Does not end in a
/// newline.
std::string wrapped(std::string_view line, PageWidth width, std::size_t hang);

/// As above. The parts behind the first are indented by two more than the line.
std::string wrapped(std::string_view line, PageWidth width);

}  // namespace plumbline
