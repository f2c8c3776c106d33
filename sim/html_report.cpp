// The page's files around the facts and the columns of its runs.
// SPDX-License-Identifier: MIT
#include "sim/html_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/bug.h"
#include "sim/report_assets.h"
#include "sim/report_columns.h"
#include "sim/report_facts.h"

namespace plumbline {
namespace {

/// Below this many bytes the columns are not compressed, so that even a browser without
/// DecompressionStream shows the page.
constexpr std::size_t kPlain = 16'384;

/// In the order in which their code may run.
constexpr std::string_view kModules[] = {"format.js",  "codec.js",  "run.js",      "density.js",
                                         "window.js",  "hash.js",   "describe.js", "dom.js",
                                         "palette.js", "paint.js",  "stage.js",    "timeline.js",
                                         "charts.js",  "tables.js", "main.js"};

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group <<= 8;
      if (i + j < bytes.size()) group |= static_cast<unsigned char>(bytes[i + j]);
    }
    for (std::size_t j = 0; j < 4; ++j)
      text += i + j <= bytes.size() ? digits[(group >> (18 - 6 * j)) & 63] : '=';
  }
  return text;
}

/// The modules as one script. They import each other by name and only at the start of a line, so
/// that without those lines, and without `export`, they are one program.
std::string script() {
  std::string text;
  for (const std::string_view module : kModules) {
    const std::string_view source = report_asset(module);
    bool importing = false;
    for (std::size_t at = 0; at < source.size();) {
      const std::size_t end = std::min(source.find('\n', at), source.size());
      std::string_view line = source.substr(at, end - at);
      at = end + 1;
      importing = importing || line.starts_with("import ");
      if (importing) {
        importing = !line.ends_with(';');
        continue;
      }
      if (line.starts_with("export ")) line.remove_prefix(7);
      text += line;
      text += '\n';
    }
  }
  return text;
}

/// `text` with `value` in the place of the one `mark` in it.
void fill(std::string& text, std::string_view mark, std::string_view value) {
  const std::size_t at = text.find(mark);
  PLUMBLINE_CHECK(at != std::string::npos, mark);
  text.replace(at, mark.size(), value);
}

}  // namespace

std::string html_report(const Scenario& scenario, const std::vector<TracedRun>& runs,
                        const ReportOrigin& origin) {
  PLUMBLINE_CHECK(!runs.empty(), runs.size());
  Duration longest{};
  for (const TracedRun& run : runs) longest = std::max(longest, run.outcome.metrics.makespan);
  std::string columns;
  std::string run_list;
  for (const TracedRun& run : runs) {
    const ColumnLayout layout = append_columns(run.outcome, tick_for(longest), columns);
    if (!run_list.empty()) run_list += ",\n";
    run_list += run_facts(scenario, run, layout, origin.version);
  }
  const bool plain = columns.size() < kPlain;
  const std::string facts = fmt::format(
      "{{\"name\":{},\"version\":{},\"command\":{},\"scenario\":{{\"path\":{},\"text\":{}}},"
      "\"overrides\":{},\"figures\":{},\"remarks\":{},\"encoding\":\"{}\",\n\"runs\":[{}]}}",
      script_text(scenario.name), script_text(origin.version), script_text(origin.command),
      script_text(scenario.source->name), script_text(scenario.source->text),
      texts_json(origin.overrides), figures_json(origin.figures), texts_json(origin.remarks),
      plain ? "plain" : "gzip", run_list);
  // What comes from the scenario is put in last, so that no mark is looked for in it.
  std::string page(report_asset("page.html"));
  fill(page, "/*STYLE*/", report_asset("page.css"));
  fill(page, "/*SCRIPT*/", script());
  const std::size_t at = page.find("<!--DATA-->");
  PLUMBLINE_CHECK(at != std::string::npos, page.size());
  const std::string data = fmt::format(
      "<script type=\"application/json\" id=\"facts\">{}</script>\n"
      "<script type=\"text/plain\" id=\"columns\">{}</script>",
      facts, base64(plain ? columns : gzip(columns, 9)));
  page.replace(at, std::string_view("<!--DATA-->").size(), data);
  return page;
}

}  // namespace plumbline
