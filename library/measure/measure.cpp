// Real runs and calibrations as values.
//
// SPDX-License-Identifier: MIT
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <plumbline/measure.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "calibrate/backends/backends.h"
#include "calibrate/measure/calibrate_network.h"
#include "calibrate/runtime/run_report.h"
#include "calibrate/validate/validate_runs.h"
#include "library/predict/inside.h"
#include "models/network/network_reader.h"
#include "models/profile/profile_writer.h"
#include "sim/scenario/axes.h"
#include "sim/scenario/model_section.h"

namespace plumbline::v1 {
namespace {

Verdict verdict_from(plumbline::Verdict verdict) {
  switch (verdict) {
    case plumbline::Verdict::same:
      return Verdict::same;
    case plumbline::Verdict::close:
      return Verdict::close;
    case plumbline::Verdict::off:
      return Verdict::off;
    case plumbline::Verdict::inconclusive:
      break;
  }
  return Verdict::inconclusive;
}

BackendChoice choice_of(const Backend& backend) {
  BackendChoice choice;
  choice.backend = backend.name;
  choice.synthetic.seed = backend.seed;
  choice.cpu.seed = backend.seed;
  choice.cuda.seed = backend.seed;
  choice.cuda.one_gpu = backend.one_gpu;
  choice.cuda.graphs = backend.graphs;
  choice.cuda.nccl = backend.nccl;
  return choice;
}

ValidatedRun run_of(const ValidationPoint& point) {
  const plumbline::Validation& validation = point.validation;
  ValidatedRun run;
  run.settings = point.overrides;
  run.predicted_s = validation.predicted_s();
  run.clean = static_cast<std::uint32_t>(validation.measured.clean);
  if (validation.clean()) {
    run.measured_s = validation.measured_s();
    run.error = validation.error;
    run.noise = validation.noise();
    if (const auto memory = validation.memory_verdict()) run.memory = plumbline::name(*memory);
  }
  run.verdict = verdict_from(validation.verdict);
  return run;
}

/// An error if a validation has nothing to measure.
std::optional<Diagnostic> check_limits(const std::vector<Input>& scenarios,
                                       const ValidationLimits& limits, const Backend& backend) {
  if (scenarios.empty()) return input_error({}, "no scenario is given");
  if (limits.iterations == 0 || limits.rounds == 0) {
    return input_error({},
                       fmt::format("{} iterations in {} rounds", limits.iterations, limits.rounds),
                       "at least one of each");
  }
  if (limits.recalibrate && backend.name == "synthetic") {
    return input_error({}, "layers of the synthetic backend cannot be timed again",
                       "cpu and cuda time real kernels");
  }
  if (limits.rounds > 1000)
    return input_error({}, fmt::format("{} rounds", limits.rounds), "at most 1000");
  if (!(limits.tolerance >= 0 && limits.tolerance <= 10))
    return input_error({}, fmt::format("a tolerance of {}", limits.tolerance), "0 to 10");
  return check_backend("the backend", backend.name);
}

/// An error if a calibration has nothing to measure.
std::optional<Diagnostic> check_limits(const CalibrationLimits& limits, const Backend& backend) {
  if (auto wrong = check_backend("the backend", backend.name)) return wrong;
  if (backend.name == "synthetic") {
    return input_error({}, "the synthetic backend calibrates nothing",
                       "cpu and cuda time real kernels");
  }
  if (limits.batches.empty() || limits.devices == 0 || limits.copies == 0)
    return input_error({}, "no batch, no device or no copy to measure", "at least one of each");
  const auto least = std::min_element(limits.batches.begin(), limits.batches.end());
  const auto most = std::max_element(limits.batches.begin(), limits.batches.end());
  for (const std::int64_t batch : {*least, *most}) {
    if (batch < 1 || batch > kMaxBatch) {
      return input_error({}, fmt::format("a batch of {} samples", batch),
                         fmt::format("1 to {}", kMaxBatch));
    }
  }
  if (!(limits.min_seconds >= 0 && limits.min_seconds <= limits.max_seconds)) {
    return input_error({}, fmt::format("{} s to measure at least, {} s at most", limits.min_seconds,
                                       limits.max_seconds));
  }
  return std::nullopt;
}

/// Ends real runs from within their progress.
struct GivenUp {};

Error given_up() { return stopped_error("given up: progress() returned false"); }

/// Reads each scenario.
std::vector<ReadScenario> readers_of(const std::vector<Input>& scenarios) {
  std::vector<ReadScenario> readers;
  readers.reserve(scenarios.size());
  for (const Input& one : scenarios) {
    readers.emplace_back([&one](const Settings& settings) { return scenario_of(one, settings); });
  }
  return readers;
}

}  // namespace

const char* name(Verdict verdict) {
  switch (verdict) {
    case Verdict::same:
      return "SAME";
    case Verdict::close:
      return "CLOSE";
    case Verdict::off:
      return "OFF";
    case Verdict::inconclusive:
      break;
  }
  return "INCONCLUSIVE";
}

Result<Validation> validate(const std::vector<Input>& scenarios, const Settings& settings,
                            const Backend& backend, const ValidationLimits& limits) {
  if (const auto wrong = check_limits(scenarios, limits, backend)) return error_of({*wrong});
  const auto combined = combinations(settings);
  if (!combined) return error_of(combined.problems());
  auto planned = plan_runs(readers_of(scenarios), *combined);
  if (!planned) return error_of(planned.problems());

  BackendChoice choice = choice_of(backend);
  choice.cuda.pool = cuda_device_pool();
  ValidationOptions options;
  options.backend = [&](const plumbline::Scenario& scenario) {
    return make_backend(choice, scenario);
  };
  options.run.iterations = limits.iterations;
  options.run.warm_up = limits.warm_up;
  options.rounds = limits.rounds;
  options.tolerance = limits.tolerance;
  if (limits.recalibrate) {
    options.devices = [&](const Network& network, const CalibrationOptions& calibration) {
      return open_devices(backend.name, network, calibration.devices, {choice.cuda});
    };
  }
  if (limits.progress) {
    options.progress = [&](const ValidationStep& step) {
      const bool goes_on =
          step.times_layers || limits.progress(step.run, step.runs, step.iteration);
      if (!goes_on) throw GivenUp();
    };
  }
  std::vector<ValidationPoint> points;
  try {
    auto run = validate_runs(*std::move(planned), options);
    if (!run) return error_of(run.problems());
    points = *std::move(run);
  } catch (const GivenUp&) {
    return given_up();
  }

  Validation validation;
  validation.runs.reserve(points.size());
  for (const ValidationPoint& point : points) validation.runs.push_back(run_of(point));
  validation.verdict = verdict_from(verdict_on(points));
  validation.json = to_json(points, kLibraryVersion);
  validation.text = to_table(points).print(page_of(100));
  return validation;
}

Result<Profile> calibrate(const std::string& network, const Backend& backend,
                          const CalibrationLimits& limits) {
  if (const auto wrong = check_limits(limits, backend)) return error_of({*wrong});
  const auto read = read_network(network);
  if (!read) return error_of(read.problems());
  const auto devices = open_devices(backend.name, *read, limits.devices, {choice_of(backend).cuda});
  if (!devices) return error_of(devices.problems());

  bool stopped = false;
  CalibrationOptions options;
  options.batches = limits.batches;
  options.devices = limits.devices;
  options.copies = limits.copies;
  options.optimizer = limits.adam ? OptimizerKind::adam : OptimizerKind::gradient_descent;
  options.min_seconds = limits.min_seconds;
  options.max_seconds = limits.max_seconds;
  options.seed = backend.seed;
  if (limits.progress) {
    options.progress = [&](const std::string& what, double share) {
      stopped = stopped || !limits.progress(what, share);
    };
    options.interrupted = [&] { return stopped; };
  }
  auto run = calibrate_network(**devices, *read, std::move(options));
  if (!run) return error_of(run.problems());
  if (!run->calibration) return given_up();
  Calibration& calibration = *run->calibration;
  auto& provenance = calibration.model.profile.provenance;
  provenance["tool"] = fmt::format("plumbline {}", kLibraryVersion);
  provenance["network"] = network;
  provenance["date"] = fmt::format(
      "{:%Y-%m-%d}",
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));

  Profile profile;
  profile.yaml = profile_yaml(calibration.model);
  profile.left_out = calibration.left_out;
  profile.noise = calibration.noise;
  return profile;
}

}  // namespace plumbline::v1
