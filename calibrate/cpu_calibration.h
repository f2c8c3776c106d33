// Timing the layers of a network on the cores of this machine.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/calibration_file.h"
#include "calibrate/cpu_walker.h"
#include "calibrate/pass_samples.h"
#include "models/diagnostic.h"
#include "models/network.h"
#include "models/optimizer_kind.h"
#include "models/profile.h"

namespace plumbline {

struct CalibrationOptions {
  std::vector<std::int64_t> batches = {8};  ///< Samples of a micro-batch; each is measured.
  /// Cores that work at the same time, each on its part of the network: neighbours are busy, as
  /// they will be.
  std::uint32_t devices = 1;
  OptimizerKind optimizer = OptimizerKind::gradient_descent;  ///< Whose updates are timed.
  double least_seconds = 1;  ///< Measured for each batch, after the warm-up.
  double most_seconds = 20;  ///< The noise decides between the two.
  std::uint64_t seed = 1;
  bool slowdown = true;  ///< Also with fewer devices at work, where there are several.
  /// Told now and then: what is measured, and the share of the most time that has passed.
  std::function<void(const std::string& what, double share)> progress;

  /// What an earlier calibration of the same head has measured: it counts as if this one had.
  KeptCalibration kept;
  /// Given each round while nothing is measured; what it returns ends the calibration.
  std::function<std::optional<Diagnostic>(const KeptRound&)> keep;
  /// Asked now and then; true ends the calibration after the passes under way.
  std::function<bool()> interrupted;
};

/// What was measured, here and by an earlier calibration that was kept.
struct Measured {
  bool interrupted = false;           ///< Then not all of it.
  std::vector<BatchSamples> batches;  ///< Ascending.
  std::optional<double> load;         ///< The load average of the last minute, at the start.
  std::optional<double> clock;        ///< Of the cores at work, in MHz; nothing where none worked.
};

/// What a calibration found besides the profile.
struct Calibration {
  Model model;                        ///< Layers and profile, provenance included.
  std::vector<std::string> left_out;  ///< A sentence for each batch without a result.
  double dropped = 0;  ///< The share of passes in which other work took the core away.
  double drift =
      0;  ///< Largest relative change of a stage's pass from the first half to the second.
  double noise = 0;  ///< Largest relative half-width of a 95 % interval of a stage's pass.
  std::int64_t passes = 0;
  /// By kind of layer: the factors of its time with 0, 1, ... neighbours at work, against all at
  /// work. Empty where it was not measured.
  std::map<std::string, std::vector<double>> slowdown;
};

/// A smaller change by neighbours is not told from the noise, and does not go into the profile.
inline constexpr double kLeastSlowdown = 0.01;

/// The batches of the options, ascending, each once.
std::vector<std::int64_t> batches_of(const CalibrationOptions& options);

/// What decides the times of a calibration on this machine by `tool`: version and commit.
CalibrationHead calibration_head(const Network& network, const CalibrationOptions& options,
                                 std::string_view tool);

/// Why this machine cannot calibrate so, if that is so, told before anything is allocated: a
/// network that the cpu backend does not run; a build without it (no device); more devices than
/// layers, or than cores (no device); more than the memory holds (infeasible).
std::optional<Diagnostic> refuse_calibration(const Network& network, const Mark& mark,
                                             const CalibrationOptions& options);

/// Times F, B, I and W of every layer where it will stand: each core walks the layers of its stage
/// in order, forward and backward in turn as in a steady pipeline, over as many buffers as
/// micro-batches are in flight, with its neighbours busy; differences of stamps between layers add
/// up to the pass. Passes in which the thread lost its core are dropped. Means are trimmed. It
/// measures in rounds of some seconds; between two of them all cores rest. With the largest batch
/// there are rounds in between in which only some of the cores work: what neighbours cost.
/// Errors: those of refuse_calibration and of `keep`; kept passes that are not of this network.
Result<Measured> measure_layers(const Network& network, const Mark& mark,
                                const CalibrationOptions& options);

/// What that says: a measurement for each batch that has a clean pass of every kind; the others are
/// left out. The provenance tells machine, options and quality. A kind of layer whose time depends
/// on the number of neighbours at work (by kLeastSlowdown or more) has its factors in the profile.
/// Requires: at least one batch. Errors: every batch is left out.
Result<Calibration> calibration_of(const Network& network, const Mark& mark,
                                   const CalibrationOptions& options, const Measured& measured);

}  // namespace plumbline
