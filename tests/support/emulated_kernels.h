// The backend's own kernels, run by the host from the same sources that nvcc compiles.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "tests/support/fake_kernel.h"

namespace plumbline::test {

/// All kernels of calibrate/cuda/kernels/ that need no device, by name. Blocks run one after the
/// other, and the threads of a block take turns. Both orders change from launch to launch. Shared
/// memory begins as NaN. Throws a Bug for threads that leave a block while others wait at a
/// barrier, for writes to shared memory beyond the launch's size, and for matrix rows that are not
/// aligned.
const FakeKernels& emulated_kernels();

}  // namespace plumbline::test
