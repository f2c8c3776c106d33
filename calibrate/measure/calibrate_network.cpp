// Measures, makes the profile, adds what belongs to no layer.
//
// SPDX-License-Identifier: MIT
#include "calibrate/measure/calibrate_network.h"

#include <stdexcept>
#include <utility>

namespace plumbline {
namespace {

/// Measures and makes the calibration. A failing device throws an exception.
std::optional<Diagnostics> measure_all(CalibrationDevices& devices, const Network& network,
                                       const CalibrationOptions& options, CalibrationFile* file,
                                       std::optional<Calibration>& made) {
  const auto measured = measure_layers(devices, network, {}, options);
  if (!measured) return measured.problems();
  if (measured->interrupted) return std::nullopt;
  auto calibration = calibration_of(devices, network, {}, options, *measured);
  if (!calibration) {
    if (file) file->remove();
    return calibration.problems();
  }
  measure_between(devices, network, options, calibration->model.profile);
  if (!options.interrupted || !options.interrupted()) made = *std::move(calibration);
  return std::nullopt;
}

}  // namespace

Result<CalibrationRun> calibrate_network(CalibrationDevices& devices, const Network& network,
                                         CalibrationOptions options, const CalibrationHead& head,
                                         CalibrationFile* file) {
  CalibrationRun run;
  run.passes = options.kept.passes();
  run.resumed = options.kept.resumed;
  const bool is_resumed = !options.kept.rounds.empty();
  options.keep = [&, own = options.keep](const KeptRound& round) -> std::optional<Diagnostic> {
    run.passes += round.passes.size();
    run.resumed = options.kept.resumed + (is_resumed ? 1 : 0);
    if (auto failed = file ? file->append(head, round) : std::nullopt) return failed;
    return own ? own(round) : std::nullopt;
  };
  try {
    if (auto failed = measure_all(devices, network, options, file, run.calibration)) return *failed;
  } catch (const std::runtime_error& error) {
    return failed_device(error);
  }
  return run;
}

}  // namespace plumbline
