// Checks whether transfers between parts of a GPU go on beside their kernels.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "calibrate/cuda/driver/devices.h"

namespace plumbline {

/// The number of streams that work at the same time, of the number that a pipeline has on each
/// device. Streams that share connections or SMs wait for each other. One line; "" unless the
/// devices are parts of a GPU. Errors: CudaError.
std::string streams_text(CudaDevices& devices);

/// Whether a copy, made as in a run, waits for a kernel that fills its device. One line or "", as
/// above.
std::string copies_text(CudaDevices& devices);

}  // namespace plumbline
