// A stored run's scenario is made of its name.
//
// SPDX-License-Identifier: MIT
#include "tools/resimulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_tree.h"
#include "base/section_reader.h"
#include "sim/planning/predict.h"
#include "tools/markdown.h"
#include "tools/summary.h"

namespace plumbline {
namespace {

constexpr const char* kScenario = "examples/gpt2-on-h100.yaml";
constexpr const char* kProfiles = "examples/profiles";
constexpr std::int64_t kMaxMicroBatches = 1'000'000;

/// "mlp on 4, hybrid": the network, the parts of the GPU, and how it ran. Of another GPU than an
/// H100, "mlp on 4 of an H200, hybrid".
struct StoredName {
  std::string network;
  std::string parts;
  std::string how;
};

StoredName parts_of(const std::string& name) {
  const std::size_t on = name.find(" on ");
  if (on == std::string::npos) return {name, "", ""};
  const std::size_t comma = name.find(", ", on);
  const std::size_t end = comma == std::string::npos ? name.size() : comma;
  const std::size_t parts_end = std::min(name.find_first_not_of("0123456789", on + 4), end);
  return {name.substr(0, on), name.substr(on + 4, parts_end - on - 4),
          comma == std::string::npos ? "" : name.substr(comma + 2)};
}

/// "nvidia-h100-80gb-hbm3": the folder of a GPU's profiles.
std::string folder_of(const std::string& gpu) {
  std::string folder;
  for (const char c : gpu) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    const bool is_kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    folder += is_upper ? static_cast<char>(c - 'A' + 'a') : is_kept ? c : '-';
  }
  return folder;
}

/// The overrides that make the scenario of a stored run of `kScenario`. Errors: see resimulate().
Result<std::vector<std::string>> overrides_of(const ResultFile& file) {
  const StoredName name = parts_of(file.name);
  std::vector<std::string> overrides = {
      fmt::format("model.network=examples/networks/{}.network.yaml", name.network),
      "cluster.devices=" + name.parts};
  if (name.how == "blocking") {
    overrides.emplace_back("schedule.transfers=blocking");
  } else if (name.how == "hybrid") {
    overrides.emplace_back("plan.data_parallel=2");
  } else if (name.parts.empty() || !name.how.empty()) {
    return input_error({}, fmt::format("'{}' is no name of a stored run", printable(file.name)),
                       "such as 'mlp on 4' or 'gpt-small on 4, hybrid'");
  }
  const auto gpu = file.machine.find("processor");
  if (gpu == file.machine.end()) {
    return input_error({},
                       fmt::format("'{}' does not say which GPU it ran on", printable(file.name)));
  }
  overrides.push_back(fmt::format("model.profile={}/{}/{}-{}.profile.yaml", kProfiles,
                                  folder_of(gpu->second), name.network, name.parts));
  return overrides;
}

Result<ResultPoint> resimulated(ResultPoint point, std::vector<std::string> overrides) {
  overrides.push_back("schedule.name=" + point.schedule);
  overrides.push_back(fmt::format("schedule.micro_batches={}", point.micro_batches));
  const auto scenario = read_scenario(kScenario, overrides);
  if (!scenario) return scenario.problems();
  const auto outcome = predict(*scenario);
  if (!outcome) return outcome.problems();
  point.predicted_s = outcome->iteration_time_s;
  point.verdict = Verdict::inconclusive;
  if (point.measured) {
    ResultPoint::Measured known;
    known.time_s = point.measured->time_s;
    known.error = point.predicted_s / known.time_s - 1;
    point.measured = known;
  }
  return point;
}

std::vector<ResultPoint> read_points(SectionReader& section, Diagnostics& problems) {
  std::vector<ResultPoint> points;
  section.require("points");
  const auto* nodes = section.list("points");
  if (!nodes) return points;
  for (const YamlNode& node : *nodes) {
    SectionReader row(node, section.path_of("points"), problems);
    if (!row.is_map()) continue;
    for (const char* key : {"schedule", "devices", "micro_batches"}) row.require(key);
    ResultPoint point;
    if (auto schedule = row.text("schedule")) point.schedule = schedule->value;
    if (auto devices = row.count("devices", 1, kMaxMicroBatches)) point.devices = devices->value;
    if (auto count = row.count("micro_batches", 1, kMaxMicroBatches))
      point.micro_batches = count->value;
    point.predicted_s = signed_number(row, "predicted_s", problems);
    if (row.has("measured_s")) {
      ResultPoint::Measured measured;
      measured.time_s = signed_number(row, "measured_s", problems);
      if (measured.time_s > 0) measured.error = point.predicted_s / measured.time_s - 1;
      point.measured = measured;
    }
    row.finish();
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace

Result<std::vector<ResultFile>> resimulate(const std::vector<ResultFile>& results) {
  std::vector<ResultFile> all;
  for (const ResultFile& file : results) {
    if (file.group != ResultGroup::gpu_networks) continue;
    const auto overrides = overrides_of(file);
    if (!overrides) return overrides.problems();
    ResultFile again;
    again.group = file.group;
    again.name = file.name;
    for (const ResultPoint& point : file.points) {
      auto predicted = resimulated(point, *overrides);
      if (!predicted) return predicted.problems();
      again.points.push_back(*std::move(predicted));
    }
    all.push_back(std::move(again));
  }
  return all;
}

std::string resimulation_json(const std::vector<ResultFile>& resimulated) {
  using Json = nlohmann::ordered_json;
  const auto time = [](double time_s) { return std::stod(fmt::format("{:.9f}", time_s)); };
  std::string text = "{\n \"schema_version\": 1,\n \"resimulated\": [";
  for (const ResultFile& file : resimulated) {
    text += fmt::format("{}\n  {{\"name\": {}, \"points\": [",
                        &file == resimulated.data() ? "" : ",", Json(file.name).dump());
    for (const ResultPoint& point : file.points) {
      Json row = {{"schedule", point.schedule},
                  {"devices", point.devices},
                  {"micro_batches", point.micro_batches},
                  {"predicted_s", time(point.predicted_s)}};
      if (point.measured) row["measured_s"] = time(point.measured->time_s);
      text += (&point == file.points.data() ? "\n   " : ",\n   ") + row.dump();
    }
    text += "]}";
  }
  return text + "\n ]\n}\n";
}

Result<std::vector<ResultFile>> read_resimulation(const std::string& path) {
  const auto tree = read_json(path);
  if (!tree) return tree.problems();
  Diagnostics problems;
  std::vector<ResultFile> files;
  SectionReader document(*tree, "", problems);
  if (document.is_map()) {
    document.require("schema_version");
    document.count("schema_version", 1, 1);
    document.require("resimulated");
    const auto* nodes = document.list("resimulated");
    for (std::size_t i = 0; nodes && i < nodes->size(); ++i) {
      SectionReader section((*nodes)[i], fmt::format("resimulated[{}]", i), problems);
      if (!section.is_map()) continue;
      ResultFile file;
      file.group = ResultGroup::gpu_networks;
      section.require("name");
      if (auto name = section.text("name")) file.name = name->value;
      file.points = read_points(section, problems);
      section.finish();
      files.push_back(std::move(file));
    }
    document.finish();
  }
  if (!problems.empty()) return problems;
  return files;
}

std::string resimulation_table(const std::vector<const ResultFile*>& results,
                               const std::vector<ResultFile>& resimulated,
                               const std::string& noun) {
  std::vector<std::vector<std::string>> rows = {
      {noun, "runs", "error as it ran, mean of sizes", "predicted again", "from ... to", "worst"}};
  const auto row = [&](const std::string& name, const Summary& then, const Summary& again) {
    rows.push_back({name, std::to_string(again.runs), unsigned_percent(then.error.mean_size),
                    unsigned_percent(again.error.mean_size), range_cell(again.error, true),
                    worst_cell(again)});
  };
  std::vector<const ResultFile*> then;
  std::vector<const ResultFile*> again;
  for (const ResultFile& file : resimulated) {
    const auto found = std::find_if(results.begin(), results.end(),
                                    [&](const ResultFile* one) { return one->name == file.name; });
    if (found == results.end()) continue;
    then.push_back(*found);
    again.push_back(&file);
    row(file.name, summarize({*found}), summarize({&file}));
  }
  if (again.size() > 1) row("all", summarize(then), summarize(again));
  return rows.size() == 1 ? "" : markdown_table(rows, {0, 5});
}

}  // namespace plumbline
