// The fat binary is embedded in the program unchanged.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/kernels/kernel_image.h"

asm(".pushsection .rodata\n"
    ".balign 16\n"
    ".type plumbline_cuda_kernels, @object\n"
    "plumbline_cuda_kernels:\n"
    ".incbin \"" PLUMBLINE_CUDA_KERNELS
    "\"\n"
    ".popsection\n");

extern "C" const char plumbline_cuda_kernels[];

namespace plumbline {

const void* cuda_kernel_image() { return static_cast<const char*>(plumbline_cuda_kernels); }

}  // namespace plumbline
