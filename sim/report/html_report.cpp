// The page's files around the facts and the columns of its runs.
//
// SPDX-License-Identifier: MIT
#include "sim/report/html_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bug.h"
#include "sim/report/page_file.h"
#include "sim/report/report_columns.h"
#include "sim/report/report_facts.h"

namespace plumbline {
namespace {

/// The modules, in an order in which their code may run.
constexpr std::string_view kRunModules[] = {
    "format.js",   "codec.js",    "run.js",        "density.js", "window.js",  "hash.js",
    "describe.js", "dom.js",      "alike.js",      "page.js",    "palette.js", "paint.js",
    "stage.js",    "timeline.js", "export_svg.js", "legend.js",  "scale.js",   "bars.js",
    "figures.js",  "charts.js",   "tables.js",     "phases.js",  "present.js", "main.js"};

}  // namespace

std::string html_report(const Source& scenario, const std::vector<TracedRun>& runs,
                        const ReportOrigin& origin) {
  PLUMBLINE_CHECK(!runs.empty(), runs.size());
  Duration longest{};
  for (const TracedRun& run : runs) longest = std::max(longest, run.outcome.metrics.makespan);
  std::string columns;
  std::string run_list;
  for (const TracedRun& run : runs) {
    const ColumnLayout layout = append_columns(run.outcome, tick_for(longest), columns);
    if (!run_list.empty()) run_list += ",\n";
    run_list += run_facts(run, layout, origin.version);
  }
  std::string facts = fmt::format(
      "{{\"name\":{},\"version\":{},\"command\":{},\"scenario\":{{\"path\":{},\"text\":{}}},"
      "\"overrides\":{},\"figures\":{},\"remarks\":{},\n\"runs\":[{}]}}",
      script_text(runs.front().outcome.setup.name), script_text(origin.version),
      script_text(origin.command), script_text(scenario.name), script_text(scenario.text),
      texts_json(origin.overrides), figures_json(origin.figures), texts_json(origin.remarks),
      run_list);
  return page_file({"run.html", kRunModules, std::move(facts), std::move(columns)});
}

}  // namespace plumbline
