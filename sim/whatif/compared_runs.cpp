// Reading and predicting.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/compared_runs.h"

#include <algorithm>
#include <filesystem>

#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "sim/scenario/axes.h"
#include "sim/scenario/bare_model.h"
#include "sim/scenario/overrides.h"
#include "sim/whatif/likeness.h"

namespace plumbline {
namespace {

constexpr std::size_t kMaxBytes = 100'000'000;

/// "gpipe" for schedule.name=gpipe, "micro_batches=8" for others.
std::string short_name(const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string key = assignment.substr(0, equals);
  std::string value = assignment.substr(equals + 1);
  if (key == "schedule.name") return value;
  const std::size_t dot = key.rfind('.');
  return (dot == std::string::npos ? key : key.substr(dot + 1)) + '=' + value;
}

/// The title that distinguishes a run from the others: its file, if there are several, and the keys
/// that vary.
std::string title_of(const std::string& path, bool several_files,
                     const std::vector<std::string>& varying) {
  std::string title;
  if (several_files || varying.empty()) title = std::filesystem::path(path).stem().string();
  for (const std::string& assignment : varying)
    title += (title.empty() ? "" : " ") + short_name(assignment);
  return printable(title);
}

bool is_infeasible(const Diagnostics& problems) {
  return std::all_of(problems.begin(), problems.end(),
                     [](const Diagnostic& problem) { return problem.fault == Fault::infeasible; });
}

/// Predicts a scenario, and adds its keys to the run.
Result<ComparedRun> predict_run(const std::string& path, const std::vector<std::string>& overrides,
                                std::string title) {
  auto opened = open_scenario(path, BareLayout::one_stage);
  if (!opened) return opened.problems();
  auto scenario = read_opened(*opened, overrides);
  if (!scenario) return scenario.problems();
  const auto settled = resolve_plan(*std::move(scenario));
  if (!settled) return settled.problems();
  auto prediction = predict(*settled);
  if (!prediction) return prediction.problems();
  ComparedRun run =
      compared(std::make_shared<const Outcome>(*std::move(prediction)), std::move(title));
  run.keys = written_keys(opened->root);
  return run;
}

}  // namespace

bool is_result(const std::string& path) {
  if (!path.ends_with(".json")) return false;
  const auto root = read_yaml(path);
  return !root || !is_bare_model(*root);
}

Result<ComparedRuns> compared_runs(const std::vector<std::string>& paths,
                                   const std::vector<std::vector<std::string>>& combinations) {
  const auto varying = varying_overrides(combinations);
  Diagnostics problems;
  ComparedRuns all;
  for (const std::string& path : paths) {
    if (is_result(path)) {
      const auto file = read_file(path, kMaxBytes);
      if (!keep(file, problems)) continue;
      auto run = read_result(*file, title_of(path, true, {}));
      if (!keep(run, problems)) continue;
      all.runs.push_back(*std::move(run));
      all.origins.push_back({path, {}});
      continue;
    }
    for (std::size_t i = 0; i < combinations.size(); ++i) {
      const std::string title = title_of(path, paths.size() > 1, varying[i]);
      auto run = predict_run(path, combinations[i], title);
      if (run) {
        all.runs.push_back(*std::move(run));
        all.origins.push_back({path, combinations[i]});
      } else if (is_infeasible(run.problems())) {
        keep(run, all.why_refused);
        all.refused.push_back({title, printable(run.problems().front().message)});
      } else {
        keep(run, problems);
      }
    }
  }
  if (!problems.empty()) return problems;
  if (all.runs.size() < 2) return all.why_refused;
  return all;
}

}  // namespace plumbline
