// One line of an order, from left to right.
//
// SPDX-License-Identifier: MIT
#include "schedules/files/order_line.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/diagnostic.h"

namespace plumbline {
namespace {

std::string_view unquoted(std::string_view text) {
  while (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
         text.back() == text.front())
    text = trimmed(text.substr(1, text.size() - 2));
  return text;
}

bool is_idle(std::string_view word) {
  constexpr std::array<std::string_view, 12> words = {"",    ".",    "-",   "--",   "_",  "none",
                                                      "nan", "null", "nil", "idle", "->", "\u2192"};
  return word.size() <= 4 && std::find(words.begin(), words.end(), lower_case(word)) != words.end();
}

constexpr std::array<std::string_view, 9> kLabelWords = {
    "rank", "device", "gpu", "stage", "worker", "process", "pp_rank", "pp", "dev"};

/// The label before the bar of a line: `device 3`, `device 0,4,8...` for copies, `step`.
std::optional<RowLabel> label_before_bar(std::string_view text) {
  text = trimmed(text);
  RowLabel label{take_word(text, "step"), {}};
  for (const std::string_view word : kLabelWords) {
    if (take_word(text, word)) break;
  }
  skip(text, kBlank);
  if (text.find_first_not_of("0123456789,. ") != std::string_view::npos) return std::nullopt;
  label.number = take_number(text);
  if (!label.is_heads && !label.number) return std::nullopt;
  return label;
}

bool holds_outside(std::string_view line, char wanted) {
  Depth depth;
  return std::any_of(line.begin(), line.end(),
                     [&](char c) { return depth.is_outside(c) && c == wanted; });
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return text.substr(0, 0);
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::optional<std::uint32_t> take_number(std::string_view& text) {
  std::size_t end = 0;
  std::uint64_t number = 0;
  while (end < text.size() && is_digit(text[end])) {
    number = std::min<std::uint64_t>(number * 10 + static_cast<std::uint64_t>(text[end] - '0'),
                                     std::numeric_limits<std::uint32_t>::max());
    ++end;
  }
  if (end == 0) return std::nullopt;
  text.remove_prefix(end);
  return static_cast<std::uint32_t>(number);
}

void skip(std::string_view& text, std::string_view characters) {
  text.remove_prefix(std::min(text.find_first_not_of(characters), text.size()));
}

bool take_word(std::string_view& text, std::string_view word) {
  if (lower_case(text.substr(0, word.size())) != word) return false;
  if (text.size() > word.size() && is_letter(text[word.size()])) return false;
  text.remove_prefix(word.size());
  return true;
}

std::optional<RowLabel> take_label(std::string_view& line) {
  if (const std::size_t bar = line.find('|'); bar != std::string_view::npos) {
    auto label = label_before_bar(line.substr(0, bar));
    if (label) line.remove_prefix(bar + 1);
    return label;
  }
  std::string_view rest = line;
  skip(rest, " \t\"'");
  const bool has_word = std::any_of(kLabelWords.begin(), kLabelWords.end(),
                                    [&](std::string_view word) { return take_word(rest, word); });
  skip(rest, " \t_#");
  const auto number = take_number(rest);
  if (!number) return std::nullopt;
  skip(rest, "\"'");
  const std::size_t left = rest.size();
  skip(rest, kBlank);
  const std::string_view ends = has_word ? ":,;" : ":";
  if (!rest.empty() && ends.find(rest.front()) != std::string_view::npos) {
    line = rest.substr(1);
  } else if (has_word && rest.size() < left) {
    line = rest;  // only blanks follow the number
  } else {
    return std::nullopt;
  }
  return RowLabel{false, number};
}

std::optional<std::uint32_t> take_step(std::string_view& line) {
  std::string_view rest = line;
  skip(rest, kBlank);
  if (!take_word(rest, "step")) return std::nullopt;
  skip(rest, kBlank);
  const auto step = take_number(rest);
  skip(rest, kBlank);
  if (!step || rest.empty() || rest.front() != ':') return std::nullopt;
  line = rest.substr(1);
  return step;
}

char separator_of(std::string_view line) {
  if (line.find(',') != std::string_view::npos) return ',';
  for (const char c : {';', '\t'}) {
    if (holds_outside(line, c)) return c;
  }
  return ' ';
}

std::string_view word_in(std::string_view piece) {
  const std::string_view word = unquoted(trimmed(piece));
  return is_idle(word) ? word.substr(0, 0) : word;
}

std::string_view first_word(std::string_view line) {
  std::string_view first;
  each_piece(line, separator_of(line), [&](std::string_view piece, std::uint32_t) {
    first = word_in(piece);
    return first.empty();
  });
  return first;
}

bool names_no_stage(std::string_view word) {
  skip(word, "( \t");
  constexpr std::array<std::string_view, 5> ops = {"f", "b", "i", "w", "bw"};
  return std::any_of(ops.begin(), ops.end(), [&](std::string_view op) {
    std::string_view rest = word;
    return take_word(rest, op) && !rest.empty() && is_digit(rest.front());
  });
}

}  // namespace plumbline
