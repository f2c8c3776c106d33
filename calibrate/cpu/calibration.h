// The cores of this machine as devices for calibration.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "calibrate/measure/calibration.h"

namespace plumbline {

/// Passes in which a thread lost its core are dropped.
std::unique_ptr<CalibrationDevices> cpu_devices();

// The functions of measure/calibration.h on these devices.

CalibrationHead calibration_head(const Network& network, const CalibrationOptions& options,
                                 std::string_view tool);
std::optional<Diagnostic> check_calibration(const Network& network, const Mark& mark,
                                            const CalibrationOptions& options);
Result<Measured> measure_layers(const Network& network, const Mark& mark,
                                const CalibrationOptions& options);
Result<Calibration> calibration_of(const Network& network, const Mark& mark,
                                   const CalibrationOptions& options, const Measured& measured);

}  // namespace plumbline
