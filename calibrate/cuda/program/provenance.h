// The facts that decide the times on CUDA devices, for profiles and for runs.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>

#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/driver/recording.h"
#include "calibrate/cuda/libraries/device_libraries.h"

namespace plumbline {

/// "CUDA 13.0". Errors: CudaError.
std::string cuda_driver_version(const CudaDriver& driver);

/// The entries for a profile's provenance. All devices count as busy. Errors: CudaError.
std::map<std::string, std::string> cuda_provenance(CudaDevices& devices,
                                                   const DeviceLibraries& libraries,
                                                   const CudaLaunching& launching);

}  // namespace plumbline
