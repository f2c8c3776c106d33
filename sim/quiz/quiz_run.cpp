// Scenario texts and their outcomes.
//
// SPDX-License-Identifier: MIT
#include "sim/quiz/quiz_run.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/bug.h"
#include "base/quantity.h"
#include "sim/planning/predict.h"

namespace plumbline {

QuizRun QuizRun::with(std::vector<std::string> more) const {
  QuizRun run = *this;
  for (std::string& one : more) run.settings.push_back(std::move(one));
  return run;
}

Result<Outcome> try_quiz_run(const QuizRun& run) {
  const MemoryFiles files(run.files);
  auto source = std::make_shared<Source>();
  source->name = "question.yaml";
  source->text = run.scenario;
  const auto scenario = parse_scenario(source, run.settings);
  if (!scenario) return scenario.problems();
  return predict(*scenario);
}

Outcome outcome_of(const QuizRun& run) {
  auto outcome = try_quiz_run(run);
  PLUMBLINE_CHECK(outcome, to_text(outcome.problems()), run.scenario);
  return *std::move(outcome);
}

IdleShare idle_share_of(const Outcome& outcome) {
  const Metrics& metrics = outcome.metrics;
  return {metrics.idle().count(),
          metrics.whole().count() * static_cast<std::int64_t>(metrics.devices.size())};
}

QuizRun equal_stages(std::int64_t stages, const std::string& schedule, std::int64_t micro_batches) {
  return {fmt::format("version: 1\n"
                      "name: {1} on {0} GPUs\n"
                      "model:\n"
                      "  uniform: {{layers: {0}, forward: 1 ms, backward: 2 ms}}\n"
                      "cluster: {{devices: {0}}}\n"
                      "plan: {{stages: {0}}}\n"
                      "schedule: {{name: {1}, micro_batches: {2}}}\n",
                      stages, schedule, micro_batches),
          {},
          {}};
}

std::string setting(const std::string& key, std::int64_t value) {
  return fmt::format("{}={}", key, value);
}

std::string time_of(const Outcome& outcome) { return to_text(outcome.metrics.makespan); }

std::string percent_text(double percent) { return fmt::format("{:.2f} %", percent); }

std::string counted(std::int64_t count, const std::string& one, const std::string& many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace plumbline
