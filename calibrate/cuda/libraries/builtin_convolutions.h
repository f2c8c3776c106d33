// Convolutions by plain kernels of our own.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "calibrate/cuda/libraries/convolutions.h"

namespace plumbline {

/// Convolutions that need no library. Far from the device's speed.
std::unique_ptr<CudaConvolutions> builtin_convolutions();

}  // namespace plumbline
