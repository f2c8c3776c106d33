// Calibration on a given driver: this machine's, or a test's.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>

#include "calibrate/cuda/calibration.h"
#include "calibrate/cuda/driver/driver.h"
#include "calibrate/cuda/libraries/nccl.h"

namespace plumbline {

/// As cuda_calibration_devices(network, devices, options), on this driver. If NCCL is asked for,
/// `nccl` is used; null = the installed one.
Result<std::unique_ptr<CalibrationDevices>> cuda_calibration_devices(
    const CudaDriver& driver, const Network& network, std::uint32_t devices,
    const CudaCalibrationOptions& options, const Nccl* nccl = nullptr);

}  // namespace plumbline
