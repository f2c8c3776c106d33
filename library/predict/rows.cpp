// Sweeps and searches.
//
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>

#include "base/parallel.h"
#include "base/real_text.h"
#include "library/predict/inside.h"
#include "sim/report/search_report.h"
#include "sim/report/shell_command.h"
#include "sim/report/sweep_html.h"
#include "sim/report/sweep_report.h"
#include "sim/search/run_search.h"
#include "sim/search/search_columns.h"
#include "sim/whatif/cost_figures.h"
#include "sim/whatif/row_number.h"
#include "sim/whatif/run_sweep.h"

namespace plumbline::v1 {

struct Rows::Inside {
  std::vector<Column> columns;
  std::vector<Settings> settings;
  std::vector<std::string> reasons;
  std::vector<std::string> remarks;
  std::uint64_t done = 0;
  std::uint64_t wanted = 0;
  bool stopped = false;
  std::function<std::string(std::size_t)> text;
  std::function<std::string()> csv, json, html;
};

namespace {

const char* unit_name(RowNumber::Unit unit) {
  switch (unit) {
    case RowNumber::Unit::seconds:
      return "s";
    case RowNumber::Unit::bytes:
      return "B";
    case RowNumber::Unit::flops_per_second:
      return "FLOP/s";
    case RowNumber::Unit::per_second:
      return "1/s";
    case RowNumber::Unit::fraction:
      return "fraction";
    case RowNumber::Unit::truth:
      return "truth";
    case RowNumber::Unit::count:
      break;
  }
  return "count";
}

std::optional<double> number_in(const std::string& text) {
  const RealText read = real_at_front(text);
  const bool whole = read.used > 0 && read.used == text.size() && !read.out_of_range;
  if (!whole || !std::isfinite(read.value)) return std::nullopt;
  return read.value;
}

/// The column of these texts; of numbers, if all of them are.
Column column_of(std::string name, std::vector<std::string> texts) {
  Column column;
  column.name = std::move(name);
  std::vector<double> numbers;
  numbers.reserve(texts.size());
  for (const std::string& text : texts) {
    const auto number = number_in(text);
    if (!number) break;
    numbers.push_back(*number);
  }
  if (numbers.size() == texts.size()) {
    column.unit = "count";
    column.numbers = std::move(numbers);
  } else {
    column.texts = std::move(texts);
  }
  return column;
}

/// Whether a column is there even if no row has the number.
bool is_always_told(std::string_view name) {
  constexpr std::string_view names[] = {"iteration_time_s", "throughput_samples_per_s",
                                        "bubble_fraction", "peak_memory_bytes", "fits"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// `text` without the quotes that it was written in.
std::string unquoted(std::string text) {
  const bool quoted = text.size() >= 2 && text.front() == text.back() &&
                      (text.front() == '"' || text.front() == '\'');
  return quoted ? text.substr(1, text.size() - 2) : text;
}

/// Adds a column for each number that any row has, or that is always told, and their reasons.
void add_numbers(const std::vector<const SweepRow*>& rows, Rows::Inside& inside) {
  for (const RowNumber& number : row_numbers()) {
    Column column;
    column.name = number.name;
    column.unit = unit_name(number.unit);
    column.numbers.reserve(rows.size());
    bool any = is_always_told(number.name);
    for (const SweepRow* row : rows) {
      const auto value = row->numbers ? number.of(*row->numbers) : std::nullopt;
      any = any || value;
      column.numbers.push_back(value.value_or(std::numeric_limits<double>::quiet_NaN()));
    }
    if (any) inside.columns.push_back(std::move(column));
  }
  inside.reasons.reserve(rows.size());
  for (const SweepRow* row : rows) inside.reasons.push_back(row->reason);
}

WorkOptions options_of(const Work& work) {
  if (work.keep_freed_memory) keep_freed_memory();
  WorkOptions options;
  options.threads = work.threads;
  options.stop = work.stop;
  options.progress = work.progress;
  return options;
}

/// The selection but for its conditions.
plumbline::Result<SweepSelection> ordered(const Selection& selection) {
  Diagnostics problems;
  SweepSelection rows;
  rows.top = selection.top;
  const auto objective = parse_objective(selection.objective);
  if (keep(objective, problems)) rows.objective = *objective;
  if (!selection.front.empty()) {
    const auto front = parse_front(selection.front);
    if (keep(front, problems)) rows.front = *front;
  }
  if (!problems.empty()) return problems;
  return rows;
}

plumbline::Result<SweepSelection> selection_of(const Selection& selection,
                                               const std::vector<SweepAxis>& axes) {
  auto rows = ordered(selection);
  if (!rows) return rows;
  Diagnostics problems;
  for (const std::string& text : selection.where) {
    auto condition = parse_condition(text, axes);
    if (keep(condition, problems)) rows->where.push_back(*std::move(condition));
  }
  if (!problems.empty()) return problems;
  return rows;
}

Rows rows_of(SweepReport report, std::uint64_t wanted, bool stopped, const std::string& command) {
  auto inside = std::make_shared<Rows::Inside>();
  const SweepResult& result = report.result;
  std::vector<const SweepRow*> rows;
  rows.reserve(result.rows.size());
  for (const SweepRow& row : result.rows) rows.push_back(&row);
  inside->settings.resize(rows.size());
  for (std::size_t axis = 0; axis < result.axes.size(); ++axis) {
    std::vector<std::string> texts;
    texts.reserve(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      texts.push_back(result.axes[axis].values[result.values_at(rows[i]->point)[axis]]);
      inside->settings[i].push_back(result.axes[axis].key + '=' + texts.back());
    }
    for (std::string& text : texts) text = unquoted(std::move(text));
    inside->columns.push_back(column_of(result.axes[axis].key, std::move(texts)));
  }
  add_numbers(rows, *inside);
  inside->remarks = remarks(report);
  inside->done = report.done;
  inside->wanted = wanted;
  inside->stopped = stopped;
  const auto told = std::make_shared<const SweepReport>(std::move(report));
  inside->text = [told](std::size_t width) { return to_table(*told).print(page_of(width)); };
  inside->csv = [told] { return to_csv(*told); };
  inside->json = [told] { return to_json(*told, kLibraryVersion); };
  inside->html = [told, command] { return html_report(*told, command, kLibraryVersion); };
  return Rows(inside);
}

Rows rows_of(SearchReport report, const std::shared_ptr<const Search>& search, bool stopped,
             const std::string& command) {
  auto inside = std::make_shared<Rows::Inside>();
  std::vector<const SweepRow*> rows;
  rows.reserve(report.rows.size());
  for (const SearchRow& row : report.rows) {
    rows.push_back(&row.row);
    inside->settings.push_back(row.layout.overrides);
  }
  const auto add = [&](const std::string& name, const auto& text) {
    std::vector<std::string> texts;
    texts.reserve(report.rows.size());
    for (const SearchRow& row : report.rows) texts.push_back(text(row.layout));
    inside->columns.push_back(column_of(name, std::move(texts)));
  };
  for (const LayoutColumn& column : layout_columns()) add(column.key, column.text);
  for (const std::string& key : report.facts.varied_keys)
    add(key, [&](const Layout& layout) { return value_of(layout, key); });
  add_numbers(rows, *inside);
  inside->remarks = remarks(report);
  inside->done = report.done;
  inside->wanted = report.layouts;
  inside->stopped = stopped;
  const auto told = std::make_shared<const SearchReport>(std::move(report));
  inside->text = [told](std::size_t width) { return to_table(*told).print(page_of(width)); };
  inside->csv = [told] { return to_csv(*told); };
  inside->json = [told] { return to_json(*told, kLibraryVersion); };
  inside->html = [told, search, command] {
    SearchReport page = *told;
    add_memory_parts(*search, page.choices);
    return html_report(page, command, kLibraryVersion);
  };
  return Rows(inside);
}

}  // namespace

Result<Rows> sweep(const Input& input, const Settings& settings, const Selection& selection,
                   const Work& work) {
  const auto asked =
      input.text ? Sweep::parse(source_of(input), settings) : Sweep::open(input.path, settings);
  if (!asked) return error_of(asked.problems());
  auto rows = selection_of(selection, asked->header().axes);
  if (!rows) return error_of(rows.problems());
  if (const auto first = asked->scenario(0)) {
    if (const auto wrong = check_figures(*rows, first->rates)) return error_of({*wrong});
  }
  auto run = run_sweep(*asked, options_of(work));
  if (!run) return error_of(run.problems());
  if (const auto wrong = check_figures(*rows, run->result.rows)) return error_of({*wrong});
  return rows_of(report(std::move(run->result), *std::move(rows)), asked->points(), run->stopped,
                 shell_command("sweep", input.path, settings));
}

Result<Rows> search(const Input& input, const Settings& settings, const Selection& selection,
                    bool free, const Work& work) {
  auto opened = input.text ? Search::parse(source_of(input), settings, free)
                           : Search::open(input.path, settings, free);
  if (!opened) return error_of(opened.problems());
  const auto asked = std::make_shared<const Search>(*std::move(opened));
  auto rows = ordered(selection);
  if (!rows) return error_of(rows.problems());
  auto layouts = select_layouts(*std::move(rows), selection.where, asked->facts().varied_keys);
  if (!layouts) return error_of(layouts.problems());
  layouts->distinct = selection.distinct;
  if (const auto wrong = check_figures(layouts->rows, asked->rates())) return error_of({*wrong});
  auto run = run_search(*asked, options_of(work));
  if (!run) return error_of(run.problems());
  SearchReport told = report(std::move(run->part), *std::move(layouts));
  if (!told.rows.empty()) {
    if (!input.text)
      told.command = shell_command("simulate", input.path, told.rows.front().layout.overrides);
    if (!run->stopped) try_other_devices(*asked, told, work.threads);
  }
  std::string command = shell_command("search", input.path, settings);
  if (free) command += " --free";
  return rows_of(std::move(told), asked, run->stopped, command);
}

std::size_t Rows::size() const { return inside_->settings.size(); }
const std::vector<Column>& Rows::columns() const { return inside_->columns; }
const Settings& Rows::settings(std::size_t row) const { return inside_->settings[row]; }
const std::string& Rows::reason(std::size_t row) const { return inside_->reasons[row]; }
std::uint64_t Rows::done() const { return inside_->done; }
std::uint64_t Rows::wanted() const { return inside_->wanted; }
bool Rows::stopped() const { return inside_->stopped; }
const std::vector<std::string>& Rows::remarks() const { return inside_->remarks; }
std::string Rows::text(std::size_t width) const { return inside_->text(width); }
std::string Rows::csv() const { return inside_->csv(); }
std::string Rows::json() const { return inside_->json(); }
std::string Rows::html() const { return inside_->html(); }

}  // namespace plumbline::v1
