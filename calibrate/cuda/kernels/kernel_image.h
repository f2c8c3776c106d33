// The machine code of all our kernels, for every device that this build supports.
//
// SPDX-License-Identifier: MIT
#pragma once

namespace plumbline {

/// A fat binary, as cuModuleLoadData takes it. The kernels are the `extern "C" __global__`
/// functions of calibrate/cuda/kernels/.
const void* cuda_kernel_image();

}  // namespace plumbline
