// Aligning columns.
// SPDX-License-Identifier: MIT
#include "sim/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace plumbline {

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

std::string percent(double fraction) { return fmt::format("{:.2f} %", 100 * fraction); }

}  // namespace plumbline
