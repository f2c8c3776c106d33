// Rows as short arrays; a text that occurs in many rows is written once.
//
// SPDX-License-Identifier: MIT
#include "sim/report/sweep_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/report/page_file.h"
#include "sim/report/report_facts.h"

namespace plumbline {
namespace {

/// The modules, in an order in which their code may run.
constexpr std::string_view kSweepModules[] = {
    "format.js",      "codec.js",       "dom.js",        "page.js",      "palette.js", "scale.js",
    "sweep.js",       "sweep_hash.js",  "marks.js",      "looks.js",     "plot.js",    "grid.js",
    "sweep_plots.js", "sweep_point.js", "sweep_page.js", "sweep_main.js"};
constexpr std::string_view kSearchModules[] = {
    "format.js", "codec.js",   "dom.js",          "page.js",        "palette.js",
    "scale.js",  "sweep.js",   "sweep_hash.js",   "marks.js",       "looks.js",
    "plot.js",   "grid.js",    "sweep_plots.js",  "sweep_point.js", "sweep_page.js",
    "bars.js",   "figures.js", "search_parts.js", "search_main.js"};

template <class T>
std::string text_or_null(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "null";
}

/// Texts, numbered in the order in which they came.
class Texts {
 public:
  std::size_t number(const std::string& text) {
    const auto [place, is_new] = numbers_.try_emplace(text, texts_.size());
    if (is_new) texts_.push_back(text);
    return place->second;
  }
  const std::vector<std::string>& all() const { return texts_; }

 private:
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::string> texts_;
};

/// A row as an array, as sweep.js reads it: `[point, reason or null, [estimates], numbers...]`. The
/// numbers are missing if the row has none.
std::string row_array(const SweepRow& row, Texts& reasons, Texts& estimates) {
  std::string text = fmt::format(
      "[{},{},[", row.point,
      row.reason.empty() ? std::string("null") : std::to_string(reasons.number(row.reason)));
  for (std::size_t i = 0; i < row.estimated.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ",", estimates.number(row.estimated[i]));
  text += ']';
  if (const auto& n = row.numbers) {
    text += fmt::format(",{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", n->iteration_time_s,
                        text_or_null(n->throughput_samples_per_s), n->bubble_fraction,
                        n->bubble_overhead, text_or_null(n->steady_bubble_fraction),
                        text_or_null(n->formula_bubble_fraction), n->communication_stall_fraction,
                        n->peak_memory_bytes, n->peak_memory_device, text_or_null(n->fits),
                        text_or_null(n->memory_limit_bytes), n->devices_without_stage, n->devices,
                        text_or_null(n->model_flops_per_device_per_s),
                        text_or_null(n->model_flops_utilization));
  }
  return text + ']';
}

std::string axes_json(const SweepResult& result) {
  std::string text = "[";
  for (const SweepAxis& axis : result.axes) {
    text += fmt::format("{}{{\"key\":{},\"values\":{}}}", text.size() > 1 ? "," : "",
                        script_text(axis.key), texts_json(axis.values));
  }
  return text + ']';
}

}  // namespace

std::string rows_page(const RowsPage& page) {
  const SweepResult& result = page.result;
  const std::size_t told = std::min(result.rows.size(), kMaxPageRows);
  Texts reasons;
  Texts estimates;
  std::string rows = "{\"rows\":[";
  for (std::size_t i = 0; i < told; ++i)
    rows += (i == 0 ? "\n" : ",\n") + row_array(result.rows[i], reasons, estimates);
  rows += fmt::format("],\n\"reasons\":{},\"estimates\":{}", texts_json(reasons.all()),
                      texts_json(estimates.all()));
  if (!page.overrides.empty()) {
    rows += ",\n\"overrides\":[";
    for (std::size_t i = 0; i < told; ++i)
      rows += (i == 0 ? "\n" : ",\n") + texts_json(page.overrides[i]);
    rows += ']';
  }
  rows += '}';
  std::vector<std::string> said = page.remarks;
  if (told < result.rows.size()) {
    said.push_back(fmt::format("this page holds the first {} of {} rows; --csv and --json have all",
                               told, result.rows.size()));
  }
  std::string facts = fmt::format(
      "{{\"name\":{},\"version\":{},\"command\":{},\"file\":{},\"question\":{},\"points\":{},"
      "\"remarks\":{},\"axes\":{}{}}}",
      script_text(result.scenario), script_text(page.version), script_text(page.command),
      script_text(result.file), script_text(page.question), result.points, texts_json(said),
      axes_json(result), page.decision.empty() ? "" : ",\"decision\":" + page.decision);
  return page.decision.empty()
             ? page_file({"sweep.html", kSweepModules, std::move(facts), std::move(rows)})
             : page_file({"search.html", kSearchModules, std::move(facts), std::move(rows)});
}

std::string html_report(const SweepReport& report, const std::string& command,
                        const std::string& version) {
  return rows_page({report.result, question(report), remarks(report), {}, command, version});
}

}  // namespace plumbline
