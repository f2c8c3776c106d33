// A calibration as a whole: from devices and a network to a profile.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>

#include "calibrate/measure/calibration.h"
#include "calibrate/measure/calibration_file.h"

namespace plumbline {

/// What became of a calibration.
struct CalibrationRun {
  std::optional<Calibration> calibration;  ///< Nothing where it was interrupted.
  std::size_t passes = 0;  ///< That were measured, those counted that were kept before.
  int resumed = 0;         ///< How often it was gone on with, and something measured.
};

/// Times the layers, and all that belongs to no layer. Where there is a `file`, each round is
/// appended to it, below `head`, before the next one begins, and whoever has written the profile
/// removes it; what it had before belongs into `options.kept`. Errors: those of measure_layers,
/// after which the file stays, and of calibration_of, after which it is gone, as more of the same
/// time is not to be had; a round that cannot be kept; a device that fails under way (infeasible).
Result<CalibrationRun> calibrate_network(CalibrationDevices& devices, const Network& network,
                                         CalibrationOptions options,
                                         const CalibrationHead& head = {},
                                         CalibrationFile* file = nullptr);

}  // namespace plumbline
