// Matrix products by a plain kernel of our own.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "calibrate/cuda/libraries/gemm.h"

namespace plumbline {

/// Products that run on any device and need no library. Far from the device's speed. They do not
/// use the matrix units: tf32 is computed as fp32.
std::unique_ptr<CudaGemms> builtin_gemm();

}  // namespace plumbline
