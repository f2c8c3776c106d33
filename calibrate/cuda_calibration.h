// CUDA devices as devices that networks are calibrated on.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>

#include "calibrate/calibration.h"
#include "models/diagnostic.h"

// Nothing of CUDA is included here: the command line looks the same in builds without it.

namespace plumbline {

struct CudaCalibrationOptions {
  bool one_gpu = false;  ///< As CudaOptions, as the next.
  bool own_products = false;
  double warm_up_seconds =
      2;  ///< At the load of the measurement, until clocks and heat are steady.
};

/// So many devices, opened. One thread enqueues the walks of all some turns ahead, with an event
/// before every layer: their differences are the layers' times, on the device, and add up to the
/// pass. Kernels are launched one by one, so a layer whose kernels are shorter than their launches
/// is measured with the launches. Nothing else runs on the devices, and no pass is dropped; a
/// device that hangs is not noticed. Errors (no device): no driver, too few devices, a build
/// without CUDA.
Result<std::unique_ptr<CalibrationDevices>> cuda_calibration_devices(
    std::uint32_t devices, const CudaCalibrationOptions& options);

}  // namespace plumbline
