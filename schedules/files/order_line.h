// Cutting one line of an order into its label, cells and words.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace plumbline {

inline constexpr std::string_view kBlank = " \t";

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

/// `text` without blanks at both ends; always a part of `text`, even when empty.
std::string_view trimmed(std::string_view text);
/// Removes these characters from the front.
void skip(std::string_view& text, std::string_view characters);
/// Removes the number at the front of `text` and returns it; nothing where there is none.
std::optional<std::uint32_t> take_number(std::string_view& text);
/// Whether `text` begins with this lower-case word, in any case; removes it then.
bool take_word(std::string_view& text, std::string_view word);

/// The label before the ops of a row: `Rank 0:`, `Rank 0,`, `0:`, `device 0 |`.
struct RowLabel {
  bool is_heads = false;  ///< The line has the numbers of steps, no ops.
  std::optional<std::uint32_t> number;
};

/// Removes the label of a line and returns it; nothing where it has none.
std::optional<RowLabel> take_label(std::string_view& line);
/// Removes `Step 3:` from the front of a line of PyTorch's grid; returns its number.
std::optional<std::uint32_t> take_step(std::string_view& line);

/// The depth of parentheses, which hold a pair of ops. A pair is not cut.
class Depth {
 public:
  /// Whether `c` stands outside of all parentheses.
  bool is_outside(char c) {
    if (c == '(') ++depth_;
    if (c == ')' && depth_ > 0) --depth_;
    return depth_ == 0;
  }

 private:
  int depth_ = 0;
};

/// The separator of a line's cells: a comma, a semicolon, a tab, or ' ' for any blanks.
char separator_of(std::string_view line);

/// Calls `each(piece, number)` for each cell of a line, idle or not, until it returns false.
/// Returns whether it never did.
template <class Each>
bool each_piece(std::string_view line, char separator, Each&& each) {
  std::uint32_t number = 0;
  while (true) {
    if (separator == ' ') {
      skip(line, kBlank);
      if (line.empty()) return true;
    }
    const auto parts = [&](char c) {
      return separator == ' ' ? kBlank.find(c) != std::string_view::npos : c == separator;
    };
    Depth depth;
    std::size_t end = 0;
    for (; end < line.size(); ++end) {
      const bool is_outside = depth.is_outside(line[end]) || separator == ',';
      if (is_outside && parts(line[end])) break;
    }
    if (!each(line.substr(0, end), ++number)) return false;
    if (end == line.size()) return true;
    line.remove_prefix(end + 1);
  }
}

/// The word in a piece of text, without blanks and quotes; "" where the cell is idle (`None`, `.`).
std::string_view word_in(std::string_view piece);
/// The first word of a line that is not idle.
std::string_view first_word(std::string_view line);
/// Whether a word is an op that names no stage: `F0`.
bool names_no_stage(std::string_view word);

}  // namespace plumbline
