// The recorded run takes the place of the one that a backend would make.
//
// SPDX-License-Identifier: MIT
#include "calibrate/diagnosis/against.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "calibrate/diagnosis/measured_run.h"
#include "calibrate/diagnosis/run_costs.h"

namespace plumbline {
namespace {

Diagnostic at_folder(const std::string& folder, std::string message) {
  auto source = std::make_shared<Source>();
  source->name = folder;
  return {.mark = {std::move(source)},
          .message = std::move(message),
          .help = "a folder has the traces of one run: rank0.json, rank1.json.gz, ...",
          .detail = {},
          .fault = Fault::file};
}

Result<TraceFiles> traces_in(const std::string& folder) {
  std::error_code failed;
  TraceFiles files;
  for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (name.ends_with(".json") || name.ends_with(".json.gz")) files.push_back(at->path().string());
  }
  if (failed) return at_folder(folder, failed.message());
  const auto names_rank = [](const std::string& file) {
    return lower_case(std::filesystem::path(file).filename().string()).find("rank") !=
           std::string::npos;
  };
  if (std::any_of(files.begin(), files.end(), names_rank))
    std::erase_if(files, [&](const std::string& file) { return !names_rank(file); });
  if (files.empty()) return at_folder(folder, "has no file that ends in .json or .json.gz");
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Result<std::vector<TraceFiles>> runs_of(const std::vector<std::string>& words) {
  std::vector<TraceFiles> runs;
  TraceFiles single;
  Diagnostics problems;
  for (const std::string& word : words) {
    std::error_code ignored;  // what cannot be looked at is reported by who reads it
    if (!std::filesystem::is_directory(word, ignored)) {
      single.push_back(word);
      continue;
    }
    auto files = traces_in(word);
    if (keep(files, problems)) runs.push_back(*std::move(files));
  }
  if (!problems.empty()) return problems;
  if (!single.empty()) runs.push_back(std::move(single));
  return runs;
}

Result<std::vector<ValidationPoint>> validate_against(std::vector<PlannedRun> planned,
                                                      const std::vector<RecordedRun>& runs,
                                                      double tolerance) {
  std::vector<ValidationPoint> points;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    PlannedRun& one = planned[i];
    auto measured = measured_run(one.prediction.setup, runs[i], costs_of(runs[i]));
    if (!measured) return located(measured.problems(), one.scenario.schedule.name_mark);
    points.push_back({std::move(one.varying),
                      validate(std::move(one.prediction), *std::move(measured), tolerance)});
  }
  return points;
}

}  // namespace plumbline
