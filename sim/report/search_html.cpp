// The rows of a search on the page of a sweep. The columns in which the layouts differ are its
// axes.
//
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <utility>

#include "base/quantity.h"
#include "sim/report/search_report.h"
#include "sim/report/sweep_html.h"
#include "sim/search/search_columns.h"

namespace plumbline {
namespace {

/// The order of values: numbers by size, then words by their letters.
bool before(const std::string& a, const std::string& b) {
  const auto x = parse_count(a).value;
  const auto y = parse_count(b).value;
  if (x && y) return *x < *y;
  return x.has_value() != y.has_value() ? x.has_value() : a < b;
}

/// An axis with the values of these rows, and the index of each row's value.
struct RowsAxis {
  SweepAxis axis;
  std::vector<std::size_t> at;
};

RowsAxis axis_of(const std::string& key, const std::vector<std::string>& of_rows) {
  std::vector<std::string> values = of_rows;
  std::sort(values.begin(), values.end(), before);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  RowsAxis found{{key, values}, {}};
  found.at.reserve(of_rows.size());
  for (const std::string& value : of_rows) {
    found.at.push_back(
        static_cast<std::size_t>(std::find(values.begin(), values.end(), value) - values.begin()));
  }
  return found;
}

std::vector<RowsAxis> axes_of(const SearchReport& report) {
  std::vector<RowsAxis> axes;
  const auto add = [&](const std::string& key, auto&& text) {
    std::vector<std::string> of_rows;
    of_rows.reserve(report.rows.size());
    for (const SearchRow& row : report.rows) of_rows.push_back(text(row.layout));
    axes.push_back(axis_of(key, of_rows));
  };
  for (const std::string& key : report.facts.varied_keys)
    add(key, [&](const Layout& layout) { return value_of(layout, key); });
  for (const LayoutColumn& column : layout_columns()) add(column.title, column.text);
  return axes;
}

}  // namespace

std::string html_report(const SearchReport& report, const std::string& command,
                        const std::string& version) {
  RowsPage page;
  page.result.scenario = report.facts.scenario;
  page.result.file = report.facts.file;
  page.result.points = 1;
  const std::vector<RowsAxis> axes = axes_of(report);
  for (const RowsAxis& one : axes) {
    page.result.axes.push_back(one.axis);
    page.result.points *= std::max<std::size_t>(one.axis.values.size(), 1);
  }
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    SweepRow row = report.rows[i].row;
    row.point = 0;
    for (const RowsAxis& one : axes) row.point = row.point * one.axis.values.size() + one.at[i];
    page.result.rows.push_back(std::move(row));
    page.overrides.push_back(report.rows[i].layout.overrides);
  }
  page.question = question(report);
  page.remarks = remarks(report);
  page.command = command;
  page.version = version;
  return rows_page(page);
}

}  // namespace plumbline
