// Aligning columns.
//
// SPDX-License-Identifier: MIT
#include "base/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <optional>
#include <utility>

#include "base/quantity.h"

namespace plumbline {
namespace {

/// The columns of a table as they are printed.
class Layout {
 public:
  Layout(const std::vector<std::vector<std::string>>& rows, std::size_t repeated)
      : rows_(rows), repeated_(repeated) {
    for (const auto& row : rows) {
      widths_.resize(std::max(widths_.size(), row.size()), 0);
      for (std::size_t c = 0; c < row.size(); ++c)
        widths_[c] = std::max(widths_[c], characters(row[c]));
    }
    shown_.resize(widths_.size(), true);
    titles_.resize(widths_.size());
    for (std::size_t c = 0; !rows.empty() && c < rows.front().size(); ++c)
      titles_[c] = {rows.front()[c]};
  }

  /// The characters of the widest line without remarks.
  std::size_t width() const {
    std::size_t sum = 0;
    for (std::size_t c = 0; c < widths_.size(); ++c) sum += shown_[c] ? 2 + widths_[c] : 0;
    return sum;
  }

  /// Breaks each title at its spaces where that makes its column narrower.
  void break_titles() {
    for (std::size_t c = 1; c < widths_.size(); ++c) {
      std::size_t cells = 1;
      for (std::size_t r = 1; r < rows_.size(); ++r) {
        if (c < rows_[r].size()) cells = std::max(cells, characters(rows_[r][c]));
      }
      if (titles_[c].empty() || cells >= widths_[c]) continue;
      titles_[c] = parts_of(titles_[c].front(), cells);
      widths_[c] = cells;
      for (const std::string& part : titles_[c])
        widths_[c] = std::max(widths_[c], characters(part));
    }
  }

  /// Leaves out columns until the rest fits. If it does not fit without all of them, none is.
  void leave_out(const std::vector<std::string>& titles, std::size_t max) {
    const std::vector<bool> all = shown_;
    for (const std::string& title : titles) {
      if (width() > max) leave_out(title);
    }
    if (width() <= max) return;
    shown_ = all;
    left_out_.clear();
  }

  void leave_out(const std::string& title) {
    const auto& header = rows_.front();
    const auto found = std::find(header.begin(), header.end(), title);
    if (found == header.end()) return;
    shown_[static_cast<std::size_t>(found - header.begin())] = false;
    left_out_.push_back(title);
  }
  const std::vector<std::string>& left_out() const { return left_out_; }

  /// The shown columns in blocks that fit `width`, as far as one column does. Each begins with the
  /// repeated columns. A column without a title stays with the one before it.
  std::vector<std::vector<std::size_t>> blocks(PageWidth width) const {
    std::vector<std::vector<std::size_t>> blocks;
    std::size_t used = 0;
    std::vector<std::size_t> leading = {0};
    for (std::size_t c = 1; c < std::min(repeated_, widths_.size()); ++c) leading.push_back(c);
    std::size_t leading_width = 0;
    for (const std::size_t c : leading) leading_width += 2 + widths_[c];
    for (std::size_t c = leading.size(); c < widths_.size();) {
      std::vector<std::size_t> together;
      std::size_t needed = 0;
      do {
        if (shown_[c]) together.push_back(c);
        needed += shown_[c] ? 2 + widths_[c] : 0;
        ++c;
      } while (c < widths_.size() && titles_[c].size() == 1 && titles_[c].front().empty());
      if (together.empty()) continue;
      if (blocks.empty() || (width && used + needed > *width)) {
        blocks.push_back(leading);
        used = leading_width;
      }
      blocks.back().insert(blocks.back().end(), together.begin(), together.end());
      used += needed;
    }
    if (blocks.empty()) blocks.push_back(leading);
    return blocks;
  }

  void show_only(const std::vector<std::size_t>& columns) {
    std::fill(shown_.begin(), shown_.end(), false);
    for (const std::size_t column : columns) shown_[column] = true;
  }

  /// The lines of a row, without newlines: several if it is a header with broken titles.
  std::vector<std::string> lines(std::size_t row) const {
    if (row > 0) return {line(rows_[row])};
    std::size_t height = 1;
    for (std::size_t c = 0; c < titles_.size(); ++c)
      height = shown_[c] ? std::max(height, titles_[c].size()) : height;
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < height; ++i) {
      std::vector<std::string> cells;
      for (const auto& parts : titles_) {
        const std::size_t above =
            height - std::min(height, parts.size());  // they stand on the rows
        cells.push_back(i < above || parts.empty() ? "" : parts[i - above]);
      }
      lines.push_back(line(cells));
    }
    return lines;
  }

 private:
  static bool is_letter(const std::string& text, std::size_t at) {
    return at < text.size() && std::isalpha(static_cast<unsigned char>(text[at])) != 0;
  }

  /// Whether a title may be broken behind this character: a dot, dash, underscore or slash between
  /// words. Numbers, units and formulas stay whole.
  static bool ends_part(const std::string& title, std::size_t at) {
    const char c = title[at];
    if (c != '.' && c != '-' && c != '_' && c != '/') return false;
    const bool is_behind_word = at >= 2 && is_letter(title, at - 1) && is_letter(title, at - 2);
    if (!is_behind_word || !is_letter(title, at + 1)) return false;
    return c == '/' ? at >= 3 && is_letter(title, at - 3) : is_letter(title, at + 2);
  }

  /// The next part of a title from `at` on that is never broken.
  static std::string next_part(const std::string& title, std::size_t at) {
    for (std::size_t i = at; i < title.size(); ++i) {
      if (title[i] == ' ') return title.substr(at, i - at);
      if (ends_part(title, i)) return title.substr(at, i + 1 - at);
    }
    return title.substr(at);
  }

  /// The parts of a title, joined where at most `width` characters hold them.
  static std::vector<std::string> parts_of(const std::string& title, std::size_t width) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < title.size();) {
      const bool is_word = at > 0 && title[at] == ' ';
      if (is_word) ++at;
      const std::string part = next_part(title, at);
      const std::size_t joined = parts.empty() ? 0 : characters(parts.back()) + (is_word ? 1 : 0);
      if (!parts.empty() && joined + characters(part) <= width) {
        parts.back() += (is_word ? " " : "") + part;
      } else {
        parts.push_back(part);
      }
      at += std::max<std::size_t>(part.size(), 1);
    }
    return parts;
  }

  std::string line(const std::vector<std::string>& cells) const {
    std::string text;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (!shown_[c]) continue;
      const std::string pad(widths_[c] - characters(cells[c]), ' ');
      text += "  " + (c == 0 ? cells[c] + pad : pad + cells[c]);
    }
    return text;
  }

  const std::vector<std::vector<std::string>>& rows_;
  std::size_t repeated_;  ///< The leading columns that stand in each block.
  std::vector<std::size_t> widths_;
  std::vector<bool> shown_;
  std::vector<std::vector<std::string>> titles_;  ///< Of each column the lines of its title.
  std::vector<std::string> left_out_;
};

std::optional<std::uint32_t> device_number(const std::string& name) {
  const auto number = parse_count(name);
  if (!number.value || *number.value > std::numeric_limits<std::uint32_t>::max())
    return std::nullopt;
  return static_cast<std::uint32_t>(*number.value);
}

std::vector<DeviceId> as_devices(const std::vector<std::uint32_t>& numbers) {
  std::vector<DeviceId> devices;
  devices.reserve(numbers.size());
  for (const std::uint32_t number : numbers) devices.push_back(DeviceId{number});
  return devices;
}

std::string without_end(std::string line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

/// The lines of a row with a remark behind the last, or below it where few words would fit there.
std::string with_remark(const std::vector<std::string>& lines, const std::string& remark,
                        PageWidth width) {
  constexpr std::size_t least = 24;
  std::string text;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) text += without_end(lines[i]) + '\n';
  const std::string& last = lines.back();
  if (remark.empty()) return text + without_end(last) + '\n';
  const std::size_t column = characters(last) + 2;
  if (width && column + std::min(least, characters(remark)) > *width)
    return text + without_end(last) + '\n' + wrapped("      " + remark, width, 6) + '\n';
  const std::string behind = wrapped(std::string(column, ' ') + remark, width, column);
  return text + last + "  " + behind.substr(column) + '\n';
}

}  // namespace

void Table::join_alike() {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> remarks;
  std::vector<std::vector<std::uint32_t>> numbers;  // of each row; none if its name is no number
  const auto joins = [&](std::size_t row, std::size_t into) {
    return !numbers[into].empty() && remarks_[row] == remarks[into] &&
           std::equal(rows_[row].begin() + 1, rows_[row].end(), rows[into].begin() + 1,
                      rows[into].end());
  };
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    const auto number = rows_[row].empty() ? std::nullopt : device_number(rows_[row].front());
    std::size_t into = 0;
    while (into < rows.size() && !(number && joins(row, into))) ++into;
    if (into == rows.size()) {
      rows.push_back(rows_[row]);
      remarks.push_back(remarks_[row]);
      numbers.emplace_back();
    }
    if (number) numbers[into].push_back(*number);
    if (numbers[into].size() > 1) rows[into].front() = alike_name(numbers[into]);
  }
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (numbers[row].size() > 1 && rows[row].front().ends_with(" more"))
      remarks[row] += (remarks[row].empty() ? "" : "; ") + ranges(as_devices(numbers[row]));
  }
  rows_ = std::move(rows);
  remarks_ = std::move(remarks);
}

std::string Table::print(PageWidth width) const {
  if (rows_.empty()) return "";
  Layout layout(rows_, repeated_);
  if (width && has_header_) {
    if (layout.width() > *width) layout.break_titles();
    layout.leave_out(may_lack_, *width);
  }
  std::string text;
  const auto blocks = layout.blocks(width);
  for (const std::vector<std::size_t>& block : blocks) {
    const bool is_last = &block == &blocks.back();
    layout.show_only(block);
    for (std::size_t row = 0; row < rows_.size(); ++row)
      text += with_remark(layout.lines(row), is_last ? remarks_[row] : "", width);
    if (!is_last) text += '\n';
  }
  if (layout.left_out().empty()) return text;
  return text +
         wrapped(fmt::format("  no room for {} (--wide)", fmt::join(layout.left_out(), ", ")),
                 width) +
         '\n';
}

std::string Table::markdown() const {
  const bool remarked = std::any_of(remarks_.begin(), remarks_.end(),
                                    [](const std::string& remark) { return !remark.empty(); });
  std::string text;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    for (const std::string& cell : rows_[i]) text += fmt::format("| {} ", escaped_markdown(cell));
    const std::string& remark = i == 0 && remarks_[i].empty() ? "remark" : remarks_[i];
    text += remarked ? fmt::format("| {} |\n", escaped_markdown(remark)) : "|\n";
    if (i > 0) continue;
    for (std::size_t column = 0; column < rows_[0].size(); ++column)
      text += column == 0 ? "|---" : "|---:";
    text += remarked ? "|---|\n" : "|\n";
  }
  return text;
}

std::string escaped_markdown(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string plural(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : noun.ends_with("ch") ? "es" : "s");
}

std::string alike_name(const std::vector<std::uint32_t>& numbers) {
  constexpr std::size_t longest = 16;
  const std::size_t count = numbers.size();
  const std::uint32_t step = count > 1 ? numbers[1] - numbers[0] : 0;
  bool is_even = count > 3 && step > 1;
  for (std::size_t i = 1; i < count; ++i) is_even = is_even && numbers[i] - numbers[i - 1] == step;
  if (is_even) return fmt::format("{},{},..,{}", numbers[0], numbers[1], numbers.back());
  std::string text = ranges(as_devices(numbers));
  if (text.size() <= longest) return text;
  return fmt::format("{} and {} more", numbers.front(), count - 1);
}

std::string ranges(const std::vector<DeviceId>& devices) {
  std::string text;
  for (std::size_t i = 0; i < devices.size();) {
    std::size_t end = i + 1;
    while (end < devices.size() && devices[end].value == devices[end - 1].value + 1) ++end;
    if (!text.empty()) text += ',';
    text += end - i > 1 ? fmt::format("{}-{}", devices[i].value, devices[end - 1].value)
                        : std::to_string(devices[i].value);
    i = end;
  }
  return text;
}

std::string percent(double fraction) { return fmt::format("{:.2f} %", 100 * fraction); }

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + '"';
}

}  // namespace plumbline
