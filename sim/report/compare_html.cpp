// The comparison's JSON, then the columns of the runs that have a trace.
//
// SPDX-License-Identifier: MIT
#include "sim/report/compare_html.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bug.h"
#include "sim/report/compare_report.h"
#include "sim/report/page_file.h"
#include "sim/report/report_columns.h"
#include "sim/report/report_facts.h"

namespace plumbline {
namespace {

/// The modules, in an order in which their code may run.
constexpr std::string_view kCompareModules[] = {
    "format.js",      "codec.js",    "run.js",    "density.js",       "window.js",
    "hash.js",        "describe.js", "dom.js",    "alike.js",         "page.js",
    "palette.js",     "paint.js",    "stage.js",  "timeline.js",      "scale.js",
    "bars.js",        "charts.js",   "legend.js", "compare_parts.js", "compare_timelines.js",
    "compare_main.js"};

/// What the peak of each device holds.
std::string memories_json(const Outcome& outcome) {
  std::string json = "[";
  for (const DeviceMemory& device : outcome.memory)
    json += (json.size() > 1 ? "," : "") + memory_json(device.peak);
  return json + ']';
}

}  // namespace

std::string html_report(const std::vector<ComparedRun>& runs,
                        const std::vector<std::string>& sources, const std::string& command,
                        const std::string& version, const std::vector<RefusedRun>& refused) {
  PLUMBLINE_CHECK(runs.size() >= 2 && sources.size() == runs.size(), runs.size());
  Duration longest{};
  for (const ComparedRun& run : runs) {
    if (run.outcome) longest = std::max(longest, run.outcome->metrics.makespan);
  }
  std::string columns;
  std::string layouts;
  std::string limits;
  std::string memories;
  for (const ComparedRun& run : runs) {
    const char* separator = layouts.empty() ? "" : ",\n";
    // Where devices are of several kinds, no one line is the limit of all.
    const bool limited =
        run.outcome && run.outcome->setup.cluster.memory && run.outcome->setup.cluster.runs.empty();
    limits +=
        fmt::format("{}{}", separator,
                    limited ? std::to_string(run.outcome->setup.cluster.memory->count) : "null");
    memories += separator + (run.outcome ? memories_json(*run.outcome) : "null");
    layouts += separator;
    layouts += run.outcome ? layout_json(*run.outcome,
                                         append_columns(*run.outcome, tick_for(longest), columns))
                           : "null";
  }
  std::string facts = fmt::format(
      "{{\"version\":{},\"command\":{},\"sources\":{},\"comparison\":{},\"memory_limits\":[{}],"
      "\"memories\":[{}],\n"
      "\"layouts\":[{}]}}",
      script_text(version), script_text(command), texts_json(sources),
      script_json(to_json(runs, version, refused)), limits, memories, layouts);
  return page_file({"compare.html", kCompareModules, std::move(facts), std::move(columns)});
}

}  // namespace plumbline
