// The JSON of a sweep's report.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/report/sweep_report.h"
#include "sim/whatif/kept_lines.h"
#include "sim/whatif/sweep_file.h"
#include "sim/whatif/sweep_numbers.h"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string to_json(const SweepReport& report, const std::string& version) {
  const SweepResult& result = report.result;
  std::string text = "{\n";
  const auto line = [&](std::string_view key, const Json& json) {
    text += fmt::format(" \"{}\": {},\n", key, in_a_line(json));
  };
  line("schema_version", 1);
  line("kind", kSweepKind);
  line("tool", {{"name", "plumbline"}, {"version", version}});
  line("scenario", result.scenario);
  line("scenario_file", result.file);
  line("fingerprint", result.fingerprint);
  line("points", result.points);
  line("shard", shard_json(result.shard));
  line("axes", axes_json(result.axes));
  line("objective", name(report.selection.objective));
  Json where = Json::array();
  for (const Condition& condition : report.selection.where) where.push_back(condition.text);
  line("where", where);
  line("pareto", report.selection.front != Front::none);
  if (report.selection.front == Front::cost) line("front", name(report.selection.front));
  line("top", report.selection.top > 0 ? Json(report.selection.top) : Json(nullptr));
  std::vector<std::string> estimated;
  for (const SweepRow& row : result.rows)
    estimated.insert(estimated.end(), row.estimated.begin(), row.estimated.end());
  std::sort(estimated.begin(), estimated.end());
  estimated.erase(std::unique(estimated.begin(), estimated.end()), estimated.end());
  line("estimated", estimated);
  text += " \"rows\": [";
  for (const SweepRow& row : result.rows)
    text += (&row == &result.rows.front() ? "\n  " : ",\n  ") + row_json(result, row);
  return text + (result.rows.empty() ? "]\n}\n" : "\n ]\n}\n");
}

}  // namespace plumbline
