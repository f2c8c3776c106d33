// Whether what moves between parts of a GPU goes on beside their kernels.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "calibrate/cuda/driver/devices.h"

namespace plumbline {

/// How many streams work at the same time, of as many as a pipeline has on each device: where they
/// share connections or SMs, some wait for others. A line; "" unless the devices are parts of a
/// GPU. Errors: CudaError.
std::string streams_text(CudaDevices& devices);

/// Whether a copy, made as runs make it, waits for a kernel that fills its device; as above.
std::string copies_text(CudaDevices& devices);

}  // namespace plumbline
