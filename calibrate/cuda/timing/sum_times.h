// The time in which members of a stage add up their gradients.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>

#include "base/units.h"
#include "calibrate/cuda/driver/devices.h"
#include "models/network/network.h"

namespace plumbline {

/// The bandwidth at which two members add up gradients of `bytes` bytes, as a run does: each adds
/// its half on the device that moves its tensors, and all devices do so at once. Nothing for a
/// single device, for no gradients, and where there is no memory for them. Errors: CudaError.
std::optional<BytesPerSecond> measure_cuda_sums(CudaDevices& devices, ElementType type,
                                                std::size_t bytes);

}  // namespace plumbline
