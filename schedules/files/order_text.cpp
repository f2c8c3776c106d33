// One walk over the lines of the text for each form.
//
// SPDX-License-Identifier: MIT
#include "schedules/files/order_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "schedules/files/order_line.h"

namespace plumbline {
namespace {

/// The most characters that carets underline.
constexpr std::size_t kMaxUnderlined = 200;

/// Lists of numbers: [[0], [1, 2]] or [0, 1].
std::vector<std::vector<std::uint32_t>> lists_of_numbers(std::string_view text) {
  std::vector<std::vector<std::uint32_t>> lists;
  int depth = 0;
  while (!text.empty()) {
    if (const auto number = take_number(text)) {
      if (depth == 1) lists.emplace_back();
      if (depth < 1) return {};
      lists.back().push_back(*number);
      continue;
    }
    if (text.front() == '[' && ++depth == 2) lists.emplace_back();
    if (text.front() == ']') --depth;
    text.remove_prefix(1);
  }
  const bool any_empty =
      std::any_of(lists.begin(), lists.end(), [](const auto& list) { return list.empty(); });
  return any_empty ? std::vector<std::vector<std::uint32_t>>{} : lists;
}

}  // namespace

/// A line without its comment, and where it begins in the source.
struct OrderText::Line {
  std::uint32_t number = 0;
  const char* begin = nullptr;
  std::string_view text;

  std::uint32_t column(std::string_view piece) const {
    return static_cast<std::uint32_t>(piece.data() - begin) + 1;
  }
};

template <class Each>
void OrderText::each_line(Each&& each) const {
  std::string_view rest = text_;
  for (std::uint32_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    Line line{number, rest.data(), rest.substr(0, end)};
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (number == 1 && line.text.starts_with("\xEF\xBB\xBF")) line.text.remove_prefix(3);
    while (!line.text.empty() && line.text.back() == '\r') line.text.remove_suffix(1);
    line.text = line.text.substr(0, line.text.find('#'));
    if (trimmed(line.text).empty()) continue;
    if (!each(line)) return;
  }
}

Mark OrderText::mark(const Line& line, std::string_view piece) const {
  const std::size_t length = std::clamp<std::size_t>(piece.size(), 1, kMaxUnderlined);
  return {source_, static_cast<int>(line.number), static_cast<int>(line.column(piece)),
          static_cast<int>(length)};
}

/// Replaces `[rank12]:` by `Rank 12: `, or by blanks before a line of a grid.
void relabel(std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    std::string_view rest = line;
    const bool is_prefix = rest.starts_with("[") && (rest.remove_prefix(1), true) &&
                           (take_word(rest, "rank") || take_word(rest, "default"));
    const auto rank = is_prefix ? take_number(rest) : std::nullopt;
    if (rank && rest.starts_with("]:")) {
      rest.remove_prefix(2);
      const std::size_t length = line.size() - rest.size();
      std::string_view behind = rest;
      skip(behind, kBlank);
      const bool of_grid =
          take_word(behind, "step") || take_word(behind, "rank") || take_word(behind, "device");
      std::string label = of_grid ? "" : fmt::format("Rank {}:", *rank);
      label.resize(std::max(length, label.size()), ' ');
      text.replace(at, length, label);
      at += label.size() - length;
    }
    at = std::min(text.find('\n', at), text.size()) + 1;
  }
}

OrderText::OrderText(const std::shared_ptr<const Source>& source)
    : source_(source), text_(source->text) {
  relabel(text_);
  constexpr std::string_view devices = "# plan.devices:";
  if (const std::size_t at = source->text.find(devices);
      at != std::string::npos && (at == 0 || source->text[at - 1] == '\n')) {
    const std::string_view rest = std::string_view(source->text).substr(at + devices.size());
    devices_ = lists_of_numbers(rest.substr(0, rest.find('\n')));
  }
  tell_form();
}

void OrderText::tell_form() {
  bool is_grid = false;
  std::string_view first;
  std::size_t lists = 0;
  each_line([&](const Line& line) {
    std::string_view text = line.text;
    is_grid = take_step(text).has_value();
    if (is_grid) return false;
    for (std::size_t at = 0; lists < 2 && (at = text.find('[', at)) != std::string_view::npos;
         ++at) {
      std::string_view rest = text.substr(at + 1);
      skip(rest, kBlank);
      if (rest.empty() || rest.front() == '[') continue;
      const std::string_view word = first_word(rest);
      if (word.empty()) continue;
      if (first.empty()) first = word.substr(0, word.find(']'));
      ++lists;
    }
    lists_ = lists_ || text.find('[') != std::string_view::npos;
    return true;
  });
  if (is_grid) {
    form_ = OrderForm::grid;
    lists_ = false;
  } else if (lists_) {
    stageless_ = names_no_stage(first);
    if (stageless_ && lists == 1) form_ = OrderForm::host_loop;
  } else {
    tell_form_of_words();
  }
}

/// Decides whether lines of words are rows or a sequence.
void OrderText::tell_form_of_words() {
  std::size_t lines = 0;
  std::size_t words = 0;
  bool is_table = false;  // there are labels, or cells between commas or tabs
  std::string first;      // first word; a later line that has it too shows that lines are rows
  bool first_again = false;
  std::vector<std::uint32_t> line_of_stage;
  bool stage_recurs = false;
  each_line([&](const Line& line) {
    std::string_view text = line.text;
    const auto label = take_label(text);
    if (label && label->is_heads) {
      is_table = true;
      return true;
    }
    const char separator = separator_of(text);
    if (++lines == 1) first = std::string(first_word(text));
    stageless_ = names_no_stage(first);
    is_table = is_table || label || (separator != ' ' && !stageless_);
    if (is_table) return false;
    return each_piece(text, separator, [&](std::string_view piece, std::uint32_t) {
      std::string_view word = word_in(piece);
      if (word.empty()) return true;
      ++words;
      first_again = first_again || (lines > 1 && word == first);
      skip(word, "( \t");
      const auto stage = take_number(word);
      if (!stage || *stage >= 10'000) return true;
      if (*stage >= line_of_stage.size()) line_of_stage.resize(*stage + 1, 0);
      std::uint32_t& before = line_of_stage[*stage];
      stage_recurs = stage_recurs || (before != 0 && before != lines);
      before = static_cast<std::uint32_t>(lines);
      return true;
    });
  });
  if (is_table) return;
  if (stageless_) {
    if (!first_again) form_ = OrderForm::host_loop;
  } else if (words > 1 && (lines == 1 || stage_recurs)) {
    form_ = OrderForm::sequence;
  }
}

Diagnostics OrderText::each_word(const Visit& visit) {
  rows_.clear();
  if (source_->text.starts_with("\xFF\xFE") || source_->text.starts_with("\xFE\xFF")) {
    return {
        input_error({source_, 1, 1, 1}, "is written in UTF-16", "save it as plain text, in UTF-8")};
  }
  if (form_ == OrderForm::grid) return walk_grid(visit);
  return lists_ ? walk_lists(visit) : walk_rows(visit);
}

Diagnostics OrderText::walk_rows(const Visit& visit) {
  const bool is_sequence = form_ != OrderForm::rows;
  std::uint32_t before = 0;  // words on earlier lines of a sequence
  each_line([&](const Line& line) {
    std::string_view text = line.text;
    const auto label = take_label(text);
    if (label && label->is_heads) return true;
    if (!is_sequence || rows_.empty())
      rows_.push_back({line.number, label ? label->number : std::nullopt});
    std::uint32_t last = 0;
    const bool goes_on =
        each_piece(text, separator_of(text), [&](std::string_view piece, std::uint32_t number) {
          last = number;
          const std::string_view word = word_in(piece);
          if (word.empty()) return true;
          return visit({word, static_cast<std::uint32_t>(rows_.size() - 1), before + number,
                        line.number, line.column(word)});
        });
    if (is_sequence) before += last;
    return goes_on;
  });
  return {};
}

/// Python's lists, one per device: a list or map of lists, or one list per line behind `Rank 0:`.
Diagnostics OrderText::walk_lists(const Visit& visit) {
  Diagnostics problems;
  std::vector<Mark> open;    // the brackets that have not ended
  bool is_row = false;       // the innermost one has words
  bool holds_list = false;   // a list ended within the innermost one
  bool stopped = false;      // `visit` returned false
  std::uint32_t number = 1;  // number of the cell in its row
  std::string_view label;    // the word before a bracket
  each_line([&](const Line& line) {
    const std::string_view text = line.text;
    std::size_t from = 0;  // begin of the word or label that is being read
    Depth depth;
    const auto refuse = [&](std::string_view piece, const std::string& message, std::string help) {
      problems.push_back(input_error(mark(line, piece), message, std::move(help)));
      return false;
    };
    const auto end_word = [&](std::size_t at, char end) {
      const std::string_view word = word_in(text.substr(from, at - from));
      from = at + 1;
      if (word.empty()) return true;
      const bool is_label = word.back() == ':' || word.back() == '=';
      if (open.empty() || is_label) {
        label = word;
        const bool is_heading = is_label || end == '[' || end == '{' ||
                                word.find_first_of("0123456789") == std::string_view::npos;
        return is_heading ||
               refuse(word, fmt::format("'{}' stands outside of the lists", clipped(word)),
                      "one list holds the ops of one device: [0F0, 0F1, 0B0, 0B1]");
      }
      if (!is_row) rows_.push_back({line.number, {}});
      is_row = true;
      holds_list = false;
      stopped = !visit({word, static_cast<std::uint32_t>(rows_.size() - 1), number, line.number,
                        line.column(word)});
      return !stopped;
    };
    for (std::size_t at = 0; at < text.size(); ++at) {
      const char c = text[at];
      const bool outside = depth.is_outside(c);
      if (c == '[' || c == '{') {
        if (is_row) {
          return refuse(text.substr(at, 1), "a list stands among the ops of a row",
                        "one list holds the ops of one device: [0F0, 0F1, 0B0, 0B1]");
        }
        if (!end_word(at, c)) return false;
        open.push_back(mark(line, text.substr(at, 1)));
        if (c == '[') {
          number = 1;
          holds_list = false;
          const std::size_t digit = label.find_first_of("0123456789");
          if (digit != std::string_view::npos) {
            std::string_view digits = label.substr(digit);
            rows_.push_back({line.number, take_number(digits)});
            is_row = true;
          }
        }
        label = {};
        depth = {};
      } else if (c == ']' || c == '}') {
        if (open.empty()) {
          return refuse(text.substr(at, 1), fmt::format("'{}' ends a list that did not begin", c),
                        "one list holds the ops of one device: [0F0, 0F1, 0B0, 0B1]");
        }
        if (!end_word(at, c)) return false;
        open.pop_back();
        if (c == ']' && !is_row && !holds_list) rows_.push_back({line.number, {}});
        is_row = false;
        holds_list = true;
      } else if (outside && (c == ',' || c == ';')) {
        if (!end_word(at, c)) return false;
        if (is_row || !open.empty()) ++number;
      }
    }
    return from >= text.size() || end_word(text.size(), '\n');
  });
  if (problems.empty() && !stopped && !open.empty()) {
    problems.push_back(input_error(open.back(), "the list that begins here does not end",
                                   "one list holds the ops of one device: [0F0, 0F1, 0B0, 0B1]"));
  }
  return problems;
}

/// PyTorch's grid: cells are below the heads of their ranks.
Diagnostics OrderText::walk_grid(const Visit& visit) {
  constexpr std::string_view error_mark = "<--";  // PyTorch's mark behind a step that fails
  Diagnostics problems;
  std::vector<std::size_t> columns;  // the column of each head
  const auto refuse = [&](const Line& line, std::string_view piece, const std::string& message) {
    problems.push_back(input_error(mark(line, piece), message,
                                   "cells stand below the heads of their ranks, in the columns in "
                                   "which they were printed"));
    return false;
  };
  each_line([&](const Line& line) {
    std::string_view text = line.text;
    const auto step = take_step(text);
    if (!step) {
      if (!columns.empty()) return refuse(line, trimmed(text), "this line begins with no 'Step'");
      std::string_view rest = text;
      while (true) {
        skip(rest, kBlank);
        const auto begin = static_cast<std::size_t>(rest.data() - line.begin);
        if (rest.empty()) return true;
        if (!take_word(rest, "rank") && !take_word(rest, "device"))
          return refuse(line, rest, "this is no line of heads, such as 'Rank 0 Rank 1'");
        skip(rest, kBlank);
        const auto rank = take_number(rest);
        if (!rank) return refuse(line, trimmed(text), "a head of this line has no number");
        columns.push_back(begin);
        rows_.push_back({line.number, rank});
      }
    }
    if (columns.empty())
      return refuse(line, line.text, "no line of heads, such as 'Rank 0 Rank 1', stands above");
    text = text.substr(0, text.find(error_mark));
    const auto word_of = [&](std::size_t rank, std::string_view piece) {
      const std::string_view word = word_in(piece);
      return word.empty() || visit({word, static_cast<std::uint32_t>(rank), *step + 1, line.number,
                                    line.column(word)});
    };
    // A line in which all ranks have a cell needs no columns.
    const char separator = text.find('\t') == std::string_view::npos ? ' ' : '\t';
    std::vector<std::string_view> pieces;
    if (separator == '\t') skip(text, " ");
    if (separator == '\t' && !text.empty() && text.front() == '\t') text.remove_prefix(1);
    each_piece(text, separator, [&](std::string_view piece, std::uint32_t) {
      pieces.push_back(piece);
      return pieces.size() <= columns.size();
    });
    if (pieces.size() == columns.size() || (separator == '\t' && pieces.size() < columns.size())) {
      for (std::size_t rank = 0; rank < pieces.size(); ++rank) {
        if (!word_of(rank, pieces[rank])) return false;
      }
      return true;
    }
    for (const std::string_view piece : pieces) {
      const auto begin = static_cast<std::size_t>(piece.data() - line.begin);
      const auto column = std::lower_bound(columns.begin(), columns.end(), begin);
      if (column == columns.end() || *column != begin) {
        return refuse(line, trimmed(piece),
                      fmt::format("step {}: '{}' does not stand below the head of a rank", *step,
                                  clipped(trimmed(piece))));
      }
      if (!word_of(static_cast<std::size_t>(column - columns.begin()), piece)) return false;
    }
    return true;
  });
  return problems;
}

}  // namespace plumbline
