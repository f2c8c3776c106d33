// Conditions on the numbers of a row and on its layout.
//
// SPDX-License-Identifier: MIT
#include "sim/search/search_selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "schedules/generators/generators.h"
#include "sim/search/search_columns.h"

namespace plumbline {
namespace {

/// Errors: a value that no row can have.
std::optional<Diagnostic> check_value(const ConditionText& condition, bool of_schedules) {
  const std::string& value = condition.value;
  const bool equality = condition.operation == "==" || condition.operation == "!=";
  const auto source = std::make_shared<const Source>(Source{"--where", condition.text, ""});
  const auto wrong = [&](std::string_view problem, std::string help) {
    return input_error(
        {source, 1, 1, static_cast<int>(condition.text.size())},
        fmt::format("{} is compared with '{}', which {}", condition.key, clipped(value), problem),
        std::move(help));
  };
  if (value.empty() || (!equality && !is_comparable(value)))
    return wrong("is no number, size, time or rate", "only == and != take words");
  if (of_schedules && !find_schedule_rule(value)) {
    const std::string near = did_you_mean(value, schedule_names(), schedule_abbreviations());
    return wrong("is no schedule",
                 near.empty() ? "plumbline list schedules" : near + " (plumbline list schedules)");
  }
  return std::nullopt;
}

bool meets_one(const Layout& layout, const ConditionText& condition) {
  const LayoutColumn* column = find_column(condition.key);
  return meets(condition, column ? column->text(layout) : value_of(layout, condition.key));
}

bool meets_all(const Layout& layout, const std::vector<ConditionText>& conditions) {
  return std::all_of(conditions.begin(), conditions.end(),
                     [&](const ConditionText& condition) { return meets_one(layout, condition); });
}

}  // namespace

Result<SearchSelection> select_layouts(SweepSelection rows, const std::vector<std::string>& where,
                                       const std::vector<std::string>& varied_keys) {
  SearchSelection selection{std::move(rows), {}, false};
  Diagnostics problems;
  for (const std::string& text : where) {
    auto parts = split_condition(text);
    if (!keep(parts, problems)) continue;
    const bool is_varied =
        std::find(varied_keys.begin(), varied_keys.end(), parts->key) != varied_keys.end();
    if (const LayoutColumn* column = find_column(parts->key); column || is_varied) {
      const bool of_schedules = column && column->key == std::string_view("schedule");
      if (auto wrong = check_value(*parts, of_schedules)) {
        problems.push_back(*std::move(wrong));
      } else {
        if (of_schedules) parts->value = find_schedule_rule(parts->value)->name;
        selection.layout.push_back(*std::move(parts));
      }
    } else if (auto condition = parse_condition(text, {}); keep(condition, problems)) {
      selection.rows.where.push_back(*std::move(condition));
    } else {
      Diagnostic& problem = problems.back();
      std::vector<std::string> titles = varied_keys;
      for (const LayoutColumn& one : layout_columns()) titles.emplace_back(one.title);
      std::vector<std::string> taken = layout_names();
      taken.insert(taken.end(), varied_keys.begin(), varied_keys.end());
      const std::string near = did_you_mean(parts->key, taken);
      if (!near.empty()) {
        problem.help = near;
      } else if (problem.help.starts_with("one of ")) {
        problem.help += fmt::format("; or of the layout {}", fmt::join(titles, ", "));
      }
    }
  }
  if (!problems.empty()) return problems;
  return selection;
}

bool may_meet(const SearchSelection& selection, const Layout& layout) {
  return std::all_of(selection.layout.begin(), selection.layout.end(),
                     [&](const ConditionText& condition) {
                       const LayoutColumn* column = find_column(condition.key);
                       const bool is_open = column && column->key == std::string_view("made_again");
                       return is_open || meets_one(layout, condition);
                     });
}

RankedLayouts rank(const std::vector<SearchRow>& feasible, const SearchSelection& selection) {
  RankedLayouts ranked;
  std::vector<SweepRow> rows;
  for (const SearchRow& row : feasible) {
    if (!meets_all(row.layout, selection.layout)) continue;
    ranked.by_point.emplace(row.row.point, &row);
    rows.push_back(row.row);
  }
  SweepSelection all = selection.rows;
  all.top = 0;
  ranked.rows = select(std::move(rows), all);
  std::set<std::string> told;
  for (const SweepRow& row : ranked.rows) {
    const SearchRow* const found = ranked.by_point.at(row.point);
    const std::string alike = selection.distinct ? sizes(found->layout) : identity(found->layout);
    if (told.insert(alike).second) ranked.best.push_back(found);
  }
  return ranked;
}

}  // namespace plumbline
