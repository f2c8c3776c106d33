// The page of a search: what there is to decide, then the rows as of a sweep, whose axes are the
// columns in which the layouts differ.
//
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/quantity.h"
#include "sim/report/report_facts.h"
#include "sim/report/search_report.h"
#include "sim/report/sweep_html.h"
#include "sim/search/search_columns.h"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

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

std::vector<RowsAxis> axes_of(const SearchReport& report,
                              const std::vector<const SearchRow*>& rows) {
  std::vector<RowsAxis> axes;
  const auto add = [&](const std::string& key, auto&& text) {
    std::vector<std::string> of_rows;
    of_rows.reserve(rows.size());
    for (const SearchRow* row : rows) of_rows.push_back(text(row->layout));
    axes.push_back(axis_of(key, of_rows));
  };
  for (const std::string& key : report.facts.varied_keys)
    add(key, [&](const Layout& layout) { return value_of(layout, key); });
  for (const LayoutColumn& column : layout_columns()) add(column.title, column.text);
  return axes;
}

/// The rows on the page: the reported ones, then choices and the front where these are others.
std::vector<const SearchRow*> rows_of(const SearchReport& report) {
  std::vector<const SearchRow*> rows;
  std::set<std::uint64_t> told;
  const auto add = [&](const SearchRow& row) {
    if (told.insert(row.row.point).second) rows.push_back(&row);
  };
  for (const SearchRow& row : report.rows) add(row);
  for (const SearchChoice& choice : report.choices) add(choice.row);
  for (const SearchRow& row : report.front) add(row);
  return rows;
}

/// A choice by the index of its row, its sizes in words and its memory.
Json choice_json(const SearchChoice& choice, std::size_t row) {
  Json json = {{"row", row}, {"words", in_words(choice.row.layout)}, {"alike", choice.alike}};
  if (choice.memory) json["memory"] = Json::parse(memory_json(*choice.memory));
  return json;
}

/// What the search decides between, and what it left out.
std::string decision_json(const SearchReport& report, const std::vector<const SearchRow*>& rows) {
  const auto place = [&](const SearchRow& row) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const SearchRow* one) {
      return one->row.point == row.row.point;
    });
    return static_cast<std::size_t>(found - rows.begin());
  };
  Json choices = Json::array();
  for (const SearchChoice& choice : report.choices)
    choices.push_back(choice_json(choice, place(choice.row)));
  Json front = Json::array();
  for (const SearchRow& row : report.front) front.push_back(place(row));
  const auto lacks = [](const SearchRow& row) {
    return row.row.numbers->peak_memory_bytes - *row.row.numbers->memory_limit_bytes;
  };
  const Json json = {{"mini_batch", report.mini_batch},
                     {"reported", report.rows.size()},
                     {"choices", std::move(choices)},
                     {"front", std::move(front)},
                     {"counts",
                      {{"layouts", report.layouts},
                       {"done", report.done},
                       {"feasible", report.feasible},
                       {"misfits", report.misfits},
                       {"cannot_run", report.cannot_run}}},
                     {"why_not", report.why_not},
                     {"nearest", report.nearest ? Json{{"words", in_words(report.nearest->layout)},
                                                       {"lacks_bytes", lacks(*report.nearest)}}
                                                : Json(nullptr)},
                     {"searched", report.facts.open_keys},
                     {"kept", report.facts.kept_keys}};
  return script_json(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

std::string html_report(const SearchReport& report, const std::string& command,
                        const std::string& version) {
  RowsPage page;
  page.result.scenario = report.facts.scenario;
  page.result.file = report.facts.file;
  page.result.points = 1;
  const std::vector<const SearchRow*> rows = rows_of(report);
  const std::vector<RowsAxis> axes = axes_of(report, rows);
  for (const RowsAxis& one : axes) {
    page.result.axes.push_back(one.axis);
    page.result.points *= std::max<std::size_t>(one.axis.values.size(), 1);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    SweepRow row = rows[i]->row;
    row.point = 0;
    for (const RowsAxis& one : axes) row.point = row.point * one.axis.values.size() + one.at[i];
    page.result.rows.push_back(std::move(row));
    page.overrides.push_back(rows[i]->layout.overrides);
  }
  page.question = question(report);
  page.remarks = remarks(report);
  page.decision = decision_json(report, rows);
  page.command = command;
  page.version = version;
  return rows_page(page);
}

}  // namespace plumbline
