// Matrix products by a plain kernel of our own.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "calibrate/cuda/libraries/gemm.h"

namespace plumbline {

/// Runs on any device and needs no library; far from the device's speed, and without its matrix
/// units: tf32 is computed as fp32.
std::unique_ptr<CudaGemms> builtin_gemm();

}  // namespace plumbline
