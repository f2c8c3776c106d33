// The passes from traces to a diagnosis.
//
// SPDX-License-Identifier: MIT
#include "calibrate/diagnosis/diagnosis.h"

#include <algorithm>
#include <atomic>

#include "base/parallel.h"
#include "sim/planning/predict.h"
#include "sim/setup/resolve_setup.h"

namespace plumbline {
namespace {

/// An order that cannot run was not recorded so: its ops were guessed wrong, or its ranks are of
/// different runs.
Diagnostics setup_problems(const RecordedRun& run, const std::vector<RankRecording>& recordings,
                           const Diagnostics& problems) {
  auto source = std::make_shared<Source>();
  source->name = recordings.front().file;
  Diagnostic wrong = input_error(
      {std::move(source)},
      run.guessed ? "the ops were guessed, and such an order cannot run"
                  : "the orders of the devices contradict each other: " + problems.front().message,
      run.guessed
          ? "name the ranges of ops with --forward and --backward, and the optimizer's with "
            "--update"
          : "are these the traces of one run?");
  wrong.detail = problems.front().detail;
  return {wrong};
}

}  // namespace

std::size_t Diagnosis::busiest() const {
  const auto most = std::max_element(
      times.begin(), times.end(),
      [](const DeviceTime& a, const DeviceTime& b) { return a.busy() < b.busy(); });
  return static_cast<std::size_t>(most - times.begin());
}

double Diagnosis::bubble_fraction() const {
  double idle = 0, all = 0;
  for (const DeviceTime& time : times) {
    idle += static_cast<double>(time.all_idle().count());
    all += static_cast<double>((time.all_idle() + time.busy()).count());
  }
  return all > 0 ? idle / all : 0;
}

double Diagnosis::replay_error() const {
  return replayed->iteration_time_s / measured.outcome.iteration_time_s - 1;
}

ReadTraces read_traces(const std::vector<std::string>& files, const OpNames& names) {
  std::vector<std::optional<Result<RankRecording>>> read(files.size());
  const std::atomic<bool> stop{false};
  for_each_parallel(files.size(), available_cores(), stop,
                    [&](std::uint64_t i) { read[i] = read_recording(files[i], names); });
  ReadTraces all;
  for (auto& one : read) {
    if (keep(*one, all.problems)) all.recordings.push_back(**std::move(one));
  }
  return all;
}

Result<Diagnosis> diagnose(const std::vector<RankRecording>& recordings,
                           const DiagnosisOptions& options) {
  auto run = assemble(recordings, options.assembly);
  if (!run) return run.problems();
  Diagnosis diagnosis;
  diagnosis.run = *std::move(run);
  diagnosis.costs = costs_of(diagnosis.run);
  diagnosis.times = mean_device_times(diagnosis.run, diagnosis.costs);
  auto texts = scenario_of(diagnosis.run, diagnosis.costs, options.text);
  if (!texts) return texts.problems();
  diagnosis.scenario = *std::move(texts);
  const auto scenario = read_back(diagnosis.scenario);
  if (!scenario) return scenario.problems();
  auto setup = resolve_setup(*scenario);
  if (!setup) return setup_problems(diagnosis.run, recordings, setup.problems());
  auto measured = measured_run(*std::move(setup), diagnosis.run, diagnosis.costs);
  if (!measured) return measured.problems();
  diagnosis.measured = *std::move(measured);
  auto replayed = predict(*scenario);
  if (!replayed) return replayed.problems();
  diagnosis.replayed = *std::move(replayed);
  const std::size_t shown = diagnosis.run.timed()[diagnosis.measured.shown];
  diagnosis.critical =
      critical_shares(diagnosis.run, diagnosis.run.iterations[shown], diagnosis.costs);
  return diagnosis;
}

}  // namespace plumbline
