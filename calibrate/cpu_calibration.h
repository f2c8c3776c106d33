// Timing the layers of a network on the cores of this machine.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/diagnostic.h"
#include "models/network.h"
#include "models/profile.h"

namespace plumbline {

struct CalibrationOptions {
  std::vector<std::int64_t> batches = {8};  ///< Samples of a micro-batch; each is measured.
  /// Cores that work at the same time, each on its part of the network: neighbours are busy, as
  /// they will be.
  std::uint32_t devices = 1;
  double least_seconds = 1;  ///< Measured for each batch, after the warm-up.
  double most_seconds = 20;  ///< The noise decides between the two.
  std::uint64_t seed = 1;
  /// Told now and then: what is measured, and the share of the most time that has passed.
  std::function<void(const std::string& what, double share)> progress;
};

/// What a calibration found besides the profile.
struct Calibration {
  Model model;         ///< Layers and profile, provenance included.
  double dropped = 0;  ///< The share of passes in which other work took the core away.
  double drift =
      0;  ///< Largest relative change of a stage's pass from the first half to the second.
  double noise = 0;  ///< Largest relative half-width of a 95 % interval of a stage's pass.
  std::int64_t passes = 0;
};

/// Times F, B, I and W of every layer where it will stand: each core walks the layers of its stage
/// in order, forward and backward in turn as in a steady pipeline, over as many buffers as
/// micro-batches are in flight, with its neighbours busy; differences of stamps between layers add
/// up to the pass. Passes in which the thread lost its core are dropped. Means are trimmed.
/// Errors: a network that the cpu backend does not run; a build without it; too many devices.
Result<Calibration> calibrate_cpu(const Network& network, const Mark& mark,
                                  const CalibrationOptions& options);

}  // namespace plumbline
