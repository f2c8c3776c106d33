// A calibration as a whole: from devices and a network to a profile.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>

#include "calibrate/measure/calibration.h"
#include "calibrate/measure/calibration_file.h"

namespace plumbline {

/// The result of a calibration.
struct CalibrationRun {
  std::optional<Calibration> calibration;  ///< Nothing where it was interrupted.
  std::size_t passes = 0;                  ///< Measured passes, those kept from before included.
  int resumed = 0;                         ///< How often it was resumed and measured something.
};

/// Times the layers, and all that belongs to no layer. Where there is a `file`, each round is
/// appended to it, below `head`, before the next one begins. The caller removes the file after it
/// has written the profile. What the file had before belongs into `options.kept`. Errors: those of
/// measure_layers, after which the file stays; those of calibration_of, after which it is removed,
/// because all the time allowed is used up; a round that cannot be kept; a device that fails during
/// the calibration (infeasible).
Result<CalibrationRun> calibrate_network(CalibrationDevices& devices, const Network& network,
                                         CalibrationOptions options,
                                         const CalibrationHead& head = {},
                                         CalibrationFile* file = nullptr);

}  // namespace plumbline
