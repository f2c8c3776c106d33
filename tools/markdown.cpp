// Text for cells.
//
// SPDX-License-Identifier: MIT
#include "tools/markdown.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/quantity.h"
#include "base/units.h"

namespace plumbline {
namespace {

/// A '|' would end the cell.
std::string escaped(const std::string& text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

std::string line(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += ' ' + escaped(cell) + " |";
  return text + '\n';
}

/// "6 SAME, 2 CLOSE"; zeros are left out.
template <class Enum, std::size_t Count>
std::string counts(const std::array<std::size_t, Count>& numbers) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < Count; ++i) {
    if (numbers[i] > 0)
      parts.push_back(fmt::format("{} {}", numbers[i], name(static_cast<Enum>(i))));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string plural(std::int64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace

std::string markdown_table(const std::vector<std::vector<std::string>>& rows,
                           const std::vector<std::size_t>& left) {
  std::string text = line(rows.front()) + "|";
  for (std::size_t i = 0; i < rows.front().size(); ++i)
    text += std::find(left.begin(), left.end(), i) != left.end() ? "---|" : "---:|";
  text += '\n';
  for (std::size_t i = 1; i < rows.size(); ++i) text += line(rows[i]);
  return text;
}

std::string signed_percent(double fraction) { return fmt::format("{:+.2f} %", 100 * fraction); }

std::string unsigned_percent(double fraction) { return fmt::format("{:.2f} %", 100 * fraction); }

std::string time_cell(double time_s) { return to_text(round_up(time_s * 1e9)); }

std::string point_name(const ResultFile& file, const ResultPoint& point) {
  std::string text = fmt::format("{}, {}, {}", point.schedule,
                                 plural(point.micro_batches, "micro-batch", "micro-batches"),
                                 plural(point.devices, "device", "devices"));
  if (has_scenarios(file.group)) return point.scenario + ", " + text;
  return trains(file.group) ? file.name + ", " + text : text;
}

std::string range_cell(const Spread& spread, bool any) {
  if (!any) return "-";
  return fmt::format("{} to {}", signed_percent(spread.min), signed_percent(spread.max));
}

std::string worst_cell(const Summary& summary) {
  if (!summary.worst) return "-";
  return fmt::format("{}: {}", signed_percent(summary.worst->measured->error),
                     point_name(*summary.worst_of, *summary.worst));
}

std::string worst_cell(const TimedAgain& again) {
  if (!again.worst) return "-";
  return fmt::format("{}: {}", signed_percent(*again.worst->measured->again_error),
                     point_name(*again.worst_of, *again.worst));
}

std::string memory_cell(const Summary& summary) {
  return summary.measured > 0 ? counts<MemoryVerdict>(summary.memory) : "-";
}

std::string verdict_cell(const Summary& summary) { return counts<Verdict>(summary.verdicts); }

std::string order_cell(const Ranking& ranking) {
  const std::size_t told = ranking.right + ranking.wrong;
  if (ranking.pairs == 0) return "-";
  std::string text =
      fmt::format("{} of {}, {} within the noise", ranking.right, told, ranking.ties);
  if (ranking.equal > 0) text += fmt::format(", {} predicted as equal", ranking.equal);
  return text;
}

}  // namespace plumbline
