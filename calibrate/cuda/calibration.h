// CUDA devices as devices that networks are calibrated on.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/diagnostic.h"
#include "calibrate/cuda/device_count.h"
#include "calibrate/measure/calibration.h"

// Nothing of CUDA is included here: the command line looks the same in builds without it.

namespace plumbline {

struct CudaCalibrationOptions : CudaDeviceOptions {
  /// The time under the load of the measurement until clocks and heat are steady.
  double warm_up_seconds = 2;
  std::size_t max_turns = 48;  ///< Of a burst. A queue that is full would let the host wait.
};

/// Opens `devices` devices for this network, which outlives them. One thread enqueues the walks of
/// all devices in bursts. The walks of a burst begin together, behind a gate that is closed while
/// the host enqueues, so no device waits for the host. Each device gets as many turns as make all
/// end at about the same time. Half of the passes have an event before every layer; the differences
/// are the layers' times on the device. The other half are one piece, as in a run. Layers and
/// pieces are graphs where graphs work. Nothing else runs on the devices, and no pass is dropped. A
/// device that hangs is not noticed. Errors (no device): no driver, too few devices, no NCCL where
/// it is asked for, a build without CUDA.
Result<std::unique_ptr<CalibrationDevices>> cuda_calibration_devices(
    const Network& network, std::uint32_t devices, const CudaCalibrationOptions& options);

}  // namespace plumbline
