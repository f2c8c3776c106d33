// Rows of a sweep put into grids.
//
// SPDX-License-Identifier: MIT
#include "sim/report/sweep_pivot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "base/quantity.h"
#include "base/table.h"
#include "base/yaml.h"

namespace plumbline {
namespace {

using Unit = RowNumber::Unit;

/// A name of the option's text, with its place there.
struct PivotName {
  std::string text;
  std::size_t at = 0;
};

std::vector<PivotName> names_in(const std::string& text) {
  std::vector<PivotName> names;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::size_t first = std::min(text.find_first_not_of(' ', at), end);
    const std::size_t last = text.find_last_not_of(' ', end - 1);
    names.push_back({first < end ? text.substr(first, last + 1 - first) : "", first});
    at = end + 1;
  }
  return names;
}

/// An error at a name of the option's text.
Diagnostic wrong_name(const std::string& text, const PivotName& name, std::string message,
                      std::string help) {
  const auto source = std::make_shared<const Source>(Source{"--table", text, ""});
  const auto length = static_cast<int>(std::max<std::size_t>(name.text.size(), 1));
  return input_error({source, 1, static_cast<int>(name.at) + 1, length}, std::move(message),
                     std::move(help));
}

/// Help for a name that is none of these.
std::string help_for(const std::string& name, const std::vector<std::string>& known) {
  const std::string help = did_you_mean(name, known);
  return help.empty() ? fmt::format("one of {}", fmt::join(known, ", ")) : help;
}

/// The axis of this key, or of the only key that ends in it.
Result<std::size_t> find_axis(const std::string& text, const PivotName& name,
                              const std::vector<SweepAxis>& axes) {
  const std::string key = dotted(name.text);
  std::vector<std::string> keys;
  std::vector<std::string> ending;
  std::size_t found = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].key == key) return i;
    keys.push_back(axes[i].key);
    if (!axes[i].key.ends_with('.' + key)) continue;
    ending.push_back(axes[i].key);
    found = i;
  }
  if (ending.size() == 1) return found;
  if (!ending.empty())
    return wrong_name(text, name, fmt::format("'{}' is the end of several keys", clipped(key)),
                      fmt::format("one of {}", fmt::join(ending, ", ")));
  return wrong_name(text, name, fmt::format("'{}' is no key that the sweep varies", clipped(key)),
                    help_for(key, keys));
}

Result<const RowNumber*> find_value(const std::string& text, const PivotName& name) {
  if (const RowNumber* const number = find_row_number(name.text)) return number;
  std::vector<std::string> names;
  for (const RowNumber& known : row_numbers()) names.emplace_back(known.name);
  return wrong_name(text, name, fmt::format("'{}' is no number of a row", clipped(name.text)),
                    help_for(name.text, names));
}

/// The rows of one combination of the other keys: by row, then by column; null = not reported.
struct Grid {
  std::vector<std::string> others;  ///< The values of the other keys.
  std::vector<std::vector<const SweepRow*>> cells;
};

/// A report seen through a pivot.
class PivotedReport {
 public:
  PivotedReport(const SweepReport& report, const SweepPivot& pivot)
      : report_(report), pivot_(pivot) {
    const std::vector<SweepAxis>& axes = report.result.axes;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (i != pivot.rows && i != pivot.columns && axes[i].values.size() > 1) others_.push_back(i);
    }
  }

  const SweepAxis& rows() const { return report_.result.axes[pivot_.rows]; }
  const SweepAxis& columns() const { return report_.result.axes[pivot_.columns]; }
  const RowNumber& value() const { return *pivot_.value; }

  /// The other keys with several values.
  std::vector<std::string> other_keys() const {
    std::vector<std::string> keys;
    for (const std::size_t axis : others_) keys.push_back(report_.result.axes[axis].key);
    return keys;
  }

  /// The grids with a reported row, in the order of points.
  std::vector<Grid> grids() const {
    std::map<std::vector<std::size_t>, Grid> by_others;
    for (const SweepRow& row : report_.result.rows) {
      const std::vector<std::size_t> indices = report_.result.values_at(row.point);
      std::vector<std::size_t> key;
      for (const std::size_t axis : others_) key.push_back(indices[axis]);
      Grid& grid = by_others[key];
      if (grid.cells.empty()) grid = empty_grid(indices);
      grid.cells[indices[pivot_.rows]][indices[pivot_.columns]] = &row;
    }
    std::vector<Grid> grids;
    grids.reserve(by_others.size());
    for (auto& [key, grid] : by_others) grids.push_back(std::move(grid));
    return grids;
  }

  /// "schedule.recompute full, plan.stages 4"; "" if no other key varies.
  std::string heading(const Grid& grid) const {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < others_.size(); ++i)
      parts.push_back(part(report_.result.axes[others_[i]].key, grid.others[i]));
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  /// What the tables show, in a line.
  std::string question() const {
    return fmt::format("{} of {}; rows: {}; columns: {}", value().title,
                       plural(report_.result.points, "point"), printable(rows().key),
                       printable(columns().key));
  }

  /// The reasons of points that are not feasible, then the remarks on all rows.
  std::vector<std::string> lines() const {
    std::vector<std::string> lines = reasons();
    if (!any_value()) lines.push_back(fmt::format("no point has the number {}", value().name));
    for (std::string& remark : remarks(report_)) lines.push_back(std::move(remark));
    return lines;
  }

 private:
  static std::string part(const std::string& key, const std::string& value) {
    return fmt::format("{} {}", printable(key), printable(value));
  }

  Grid empty_grid(const std::vector<std::size_t>& indices) const {
    Grid grid;
    for (const std::size_t axis : others_)
      grid.others.push_back(report_.result.axes[axis].values[indices[axis]]);
    grid.cells.assign(rows().values.size(),
                      std::vector<const SweepRow*>(columns().values.size(), nullptr));
    return grid;
  }

  bool any_value() const {
    const std::vector<SweepRow>& rows = report_.result.rows;
    return rows.empty() || std::any_of(rows.begin(), rows.end(), [&](const SweepRow& row) {
             return row.numbers && value().of(*row.numbers);
           });
  }

  /// "schedule.name gpipe, schedule.micro_batches 64".
  std::string place_of(const SweepRow& row) const {
    const std::vector<std::size_t> indices = report_.result.values_at(row.point);
    std::vector<std::string> parts;
    const auto add = [&](std::size_t axis) {
      const SweepAxis& one = report_.result.axes[axis];
      parts.push_back(part(one.key, one.values[indices[axis]]));
    };
    for (const std::size_t axis : others_) add(axis);
    add(pivot_.rows);
    add(pivot_.columns);
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  /// A line for each reason why points are not feasible, with the first of these points.
  std::vector<std::string> reasons() const {
    constexpr std::size_t max = 10;
    std::vector<std::pair<const SweepRow*, std::size_t>> found;  // the first point, their number
    for (const SweepRow& row : report_.result.rows) {
      if (row.feasible()) continue;
      const auto same = std::find_if(found.begin(), found.end(), [&](const auto& one) {
        return one.first->reason == row.reason;
      });
      if (same == found.end()) {
        found.emplace_back(&row, 1);
      } else {
        ++same->second;
      }
    }
    std::vector<std::string> lines;
    for (const auto& [row, count] : found) {
      if (lines.size() == max) {
        lines.push_back(fmt::format("{} more; without --table each row says why",
                                    plural(found.size() - max, "reason")));
        break;
      }
      const std::string more = count > 1 ? fmt::format(" and {} more", count - 1) : "";
      lines.push_back(fmt::format("{}{}: {}", place_of(*row), more, row->reason));
    }
    return lines;
  }

  const SweepReport& report_;
  const SweepPivot& pivot_;
  std::vector<std::size_t> others_;  ///< The other axes with several values.
};

std::string rounded_text(Unit unit, double value) {
  switch (unit) {
    case Unit::seconds:
      return to_text(round_up(value * 1e9));
    case Unit::bytes:
      return to_text(Bytes{static_cast<std::int64_t>(value)});
    case Unit::flops_per_second:
      return to_text(FlopsPerSecond{static_cast<std::int64_t>(value)});
    case Unit::per_second:
      return fmt::format("{:.5g}", value);
    case Unit::fraction:
      return percent(value);
    case Unit::count:
      return fmt::format("{}", static_cast<std::int64_t>(value));
    case Unit::truth:
      break;
  }
  return value != 0 ? "yes" : "no";
}

std::string exact_text(Unit unit, double value) {
  if (unit == Unit::truth) return value != 0 ? "true" : "false";
  if (unit == Unit::bytes || unit == Unit::count)
    return fmt::format("{}", static_cast<std::int64_t>(value));
  return fmt::format("{}", value);
}

/// A cell for people.
std::string shown_cell(const RowNumber& number, const SweepRow* row) {
  if (!row) return "";
  if (!row->numbers) return "-";
  const std::optional<double> value = number.of(*row->numbers);
  std::string text = value ? rounded_text(number.unit, *value) : "-";
  if (number.unit == Unit::truth || row->feasible()) return text;
  return value && number.unit == Unit::bytes ? text + ", does not fit" : "does not fit";
}

/// A cell for programs.
std::string exact_cell(const RowNumber& number, const SweepRow* row) {
  const bool is_known_anyway = number.unit == Unit::truth || number.unit == Unit::bytes;
  const bool counts = row && row->numbers && (is_known_anyway || row->feasible());
  const std::optional<double> value = counts ? number.of(*row->numbers) : std::nullopt;
  return value ? exact_text(number.unit, *value) : "";
}

Table table_of(const PivotedReport& pivoted, const Grid& grid) {
  Table table;
  std::vector<std::string> header = {printable(pivoted.rows().key)};
  for (const std::string& value : pivoted.columns().values) header.push_back(printable(value));
  table.row(std::move(header));
  for (std::size_t i = 0; i < grid.cells.size(); ++i) {
    std::vector<std::string> cells = {printable(pivoted.rows().values[i])};
    for (const SweepRow* const row : grid.cells[i])
      cells.push_back(shown_cell(pivoted.value(), row));
    table.row(std::move(cells));
  }
  return table;
}

}  // namespace

Result<SweepPivot> parse_pivot(const std::string& text, const std::vector<SweepAxis>& axes) {
  const std::vector<PivotName> names = names_in(text);
  if (names.size() != 3) {
    return wrong_name(text, {text, 0},
                      fmt::format("--table takes three names, not {}", names.size()),
                      "ROWS,COLUMNS,VALUE: two keys of the sweep and a number, such as "
                      "schedule.name,schedule.micro_batches,iteration_time_s");
  }
  Diagnostics problems;
  const auto rows = find_axis(text, names[0], axes);
  const auto columns = find_axis(text, names[1], axes);
  const auto value = find_value(text, names[2]);
  keep(rows, problems);
  keep(columns, problems);
  keep(value, problems);
  if (!problems.empty()) return problems;
  if (*rows == *columns) {
    return wrong_name(text, names[1], fmt::format("'{}' is both rows and columns", axes[*rows].key),
                      "two keys of the sweep");
  }
  return SweepPivot{*rows, *columns, *value};
}

Document to_table(const SweepReport& report, const SweepPivot& pivot) {
  const PivotedReport pivoted(report, pivot);
  Document text;
  text.sentence(fmt::format("{}\n  {}\n", printable(report.result.scenario), pivoted.question()));
  if (report.result.rows.empty()) text.sentence("\n  no row is left");
  for (const Grid& grid : pivoted.grids()) {
    text.blank_line();
    if (const std::string heading = pivoted.heading(grid); !heading.empty())
      text.sentence(heading + '\n');
    text.table(table_of(pivoted, grid));
  }
  const std::vector<std::string> lines = pivoted.lines();
  if (!lines.empty()) text.sentence(fmt::format("\n{}", fmt::join(lines, "\n")));
  return text;
}

std::string to_markdown(const SweepReport& report, const SweepPivot& pivot) {
  const PivotedReport pivoted(report, pivot);
  std::string text = fmt::format("{}: {}\n", printable(report.result.scenario), pivoted.question());
  for (const Grid& grid : pivoted.grids()) {
    if (const std::string heading = pivoted.heading(grid); !heading.empty())
      text += '\n' + escaped_markdown(heading) + '\n';
    text += '\n' + table_of(pivoted, grid).markdown();
  }
  const std::vector<std::string> lines = pivoted.lines();
  if (!lines.empty())
    text += "\n- " + escaped_markdown(fmt::format("{}\n", fmt::join(lines, "\n- ")));
  return text;
}

std::string to_csv(const SweepReport& report, const SweepPivot& pivot) {
  const PivotedReport pivoted(report, pivot);
  std::vector<std::string> header;
  for (const std::string& key : pivoted.other_keys()) header.push_back(csv_cell(key));
  header.push_back(csv_cell(pivoted.rows().key));
  for (const std::string& value : pivoted.columns().values)
    header.push_back(
        csv_cell(fmt::format("{} at {}={}", pivoted.value().name, pivoted.columns().key, value)));
  std::string text = fmt::format("{}\n", fmt::join(header, ","));
  for (const Grid& grid : pivoted.grids()) {
    for (std::size_t i = 0; i < grid.cells.size(); ++i) {
      std::vector<std::string> line;
      for (const std::string& value : grid.others) line.push_back(csv_cell(value));
      line.push_back(csv_cell(pivoted.rows().values[i]));
      for (const SweepRow* const row : grid.cells[i])
        line.push_back(exact_cell(pivoted.value(), row));
      text += fmt::format("{}\n", fmt::join(line, ","));
    }
  }
  return text;
}

}  // namespace plumbline
