// The machine code of all own kernels, for every device that this build knows.
//
// SPDX-License-Identifier: MIT
#pragma once

namespace plumbline {

/// A fat binary, as cuModuleLoadData takes it. The kernels are the `extern "C" __global__`
/// functions of calibrate/cuda/kernels/.
const void* cuda_kernel_image();

}  // namespace plumbline
