// Aligning columns.
//
// SPDX-License-Identifier: MIT
#include "base/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/quantity.h"

namespace plumbline {

void Table::join_alike() {
  const auto alike = [&](std::size_t a, std::size_t b) {
    return remarks_[a] == remarks_[b] && rows_[a].size() == rows_[b].size() &&
           std::equal(rows_[a].begin() + 1, rows_[a].end(), rows_[b].begin() + 1);
  };
  const auto follows = [&](std::size_t a, std::size_t b) {
    const auto one = parse_count(rows_[a].front());
    const auto next = parse_count(rows_[b].front());
    return one.value && next.value && *next.value == *one.value + 1;
  };
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> remarks;
  for (std::size_t first = 0; first < rows_.size();) {
    std::size_t end = first + 1;
    while (first > 0 && end < rows_.size() && alike(first, end) && follows(end - 1, end)) ++end;
    rows.push_back(rows_[first]);
    remarks.push_back(remarks_[first]);
    if (end > first + 1) rows.back().front() += '-' + rows_[end - 1].front();
    first = end;
  }
  rows_ = std::move(rows);
  remarks_ = std::move(remarks);
}

std::string Table::print() const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const auto& row = rows_[r];
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      line += c == 0 ? fmt::format("  {:<{}}", row[c], widths[c])
                     : fmt::format("  {:>{}}", row[c], widths[c]);
    }
    if (!remarks_[r].empty()) line += "  " + remarks_[r];
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + '\n';
  }
  return text;
}

std::string Table::markdown() const {
  const bool remarked = std::any_of(remarks_.begin(), remarks_.end(),
                                    [](const std::string& remark) { return !remark.empty(); });
  std::string text;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    for (const std::string& cell : rows_[i]) text += fmt::format("| {} ", escaped_markdown(cell));
    const std::string& remark = i == 0 ? "remark" : remarks_[i];
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
