// Plan, run in rounds, compare.
//
// SPDX-License-Identifier: MIT
#include "calibrate/validate/validate_runs.h"

#include <optional>
#include <utility>

#include "calibrate/runtime/real_run.h"
#include "calibrate/runtime/refused_training.h"
#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "sim/scenario/axes.h"

namespace plumbline {
namespace {

void tell(const ValidationOptions& options, const ValidationStep& step) {
  if (options.progress) options.progress(step);
}

/// Executes one of the runs in one of the rounds: number `number` of `count` in all.
Result<RealRun> run_once(const Scenario& scenario, const ValidationOptions& options,
                         std::size_t number, std::size_t count) {
  RunOptions part = options.run;
  part.iterations = (part.iterations + options.rounds - 1) / options.rounds;
  part.progress = [&](std::uint32_t done, std::uint32_t max) {
    tell(options, {false, number, count, done, max});
  };
  const auto backend = options.backend(scenario);
  if (!backend) return backend.problems();
  return run_scenario(scenario, **backend, part);
}

/// Merges the rounds of each run into one, with a common remark if there is one.
std::vector<RealRun> together_each(std::vector<std::vector<RealRun>> runs,
                                   const std::string& remark) {
  std::vector<RealRun> all;
  all.reserve(runs.size());
  for (std::vector<RealRun>& rounds : runs) {
    all.push_back(together(std::move(rounds)));
    if (!remark.empty()) all.back().remarks.push_back(remark);
  }
  return all;
}

/// Runs all of them, round after round; the layers are timed before, between and after.
Result<std::vector<RealRun>> run_rounds(const std::vector<PlannedRun>& planned,
                                        const ValidationOptions& options,
                                        Recalibrations& recalibrations) {
  const auto time_layers = [&] {
    if (options.devices) tell(options, {true});
    return recalibrations.measure_pass();
  };
  if (auto failed = time_layers()) return *failed;
  std::string untimed;  // the reason why the layers were no longer timed
  std::vector<std::vector<RealRun>> runs(planned.size());
  const std::size_t count = planned.size() * options.rounds;
  for (std::uint32_t round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < planned.size(); ++i) {
      auto run = run_once(planned[i].scenario, options, round * planned.size() + i + 1, count);
      if (!run) return run.problems();
      runs[i].push_back(*std::move(run));
    }
    if (!untimed.empty()) continue;
    if (const auto failed = time_layers())
      untimed = "the layers were timed no more: " + failed->front().message;
  }
  return together_each(std::move(runs), untimed);
}

/// Compares a run with its prediction, and with the prediction from the times measured now, where
/// those are known.
Result<Validation> compare(PlannedRun& planned, RealRun run, const ValidationOptions& options,
                           const Recalibrations& recalibrations) {
  std::optional<Outcome> again;
  if (options.devices) {
    auto predicted = recalibrations.predict(planned.scenario, planned.prediction);
    if (!predicted) return predicted.problems();
    again = *std::move(predicted);
    run.remarks.push_back(recalibrations.of(planned.scenario, planned.prediction).remark());
  }
  return validate(std::move(planned.prediction), std::move(run), options.tolerance,
                  again ? &*again : nullptr);
}

}  // namespace

Result<std::vector<PlannedRun>> plan_runs(const std::vector<ReadScenario>& readers,
                                          const std::vector<std::vector<std::string>>& combinations,
                                          Beside beside) {
  std::vector<PlannedRun> planned;
  const auto varying = varying_overrides(combinations);
  for (const ReadScenario& read : readers) {
    for (std::size_t i = 0; i < combinations.size(); ++i) {
      auto asked = read(combinations[i]);
      if (!asked) return asked.problems();
      if (beside == Beside::own_run) {
        if (auto refused = check_flush(*asked)) return *refused;
      }
      auto scenario = resolve_plan(*std::move(asked));
      if (!scenario) return scenario.problems();
      auto prediction = predict(*scenario);
      if (!prediction) return prediction.problems();
      planned.push_back({*std::move(scenario), *std::move(prediction), varying[i]});
    }
  }
  return planned;
}

Result<std::vector<PlannedRun>> plan_runs(const std::vector<std::string>& paths,
                                          const std::vector<std::vector<std::string>>& combinations,
                                          Beside beside) {
  std::vector<ReadScenario> readers;
  readers.reserve(paths.size());
  for (const std::string& path : paths) {
    readers.emplace_back([&path](const std::vector<std::string>& overrides) {
      return read_scenario(path, overrides);
    });
  }
  return plan_runs(readers, combinations, beside);
}

Result<std::vector<ValidationPoint>> validate_runs(std::vector<PlannedRun> planned,
                                                   const ValidationOptions& options) {
  // The networks that are timed again are known before anything runs.
  Recalibrations recalibrations(options.devices, options.pass_seconds);
  if (options.devices) {
    for (const PlannedRun& one : planned) {
      if (const auto refused = recalibrations.add(one.scenario, one.prediction)) return *refused;
    }
  }
  auto runs = run_rounds(planned, options, recalibrations);
  if (!runs) return runs.problems();
  std::vector<ValidationPoint> points;
  points.reserve(planned.size());
  for (std::size_t i = 0; i < planned.size(); ++i) {
    auto validation = compare(planned[i], std::move((*runs)[i]), options, recalibrations);
    if (!validation) return validation.problems();
    points.push_back({std::move(planned[i].varying), *std::move(validation)});
  }
  return points;
}

}  // namespace plumbline
