// The backend's own kernels, run by the host from the very sources that nvcc compiles.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "tests/support/fake_kernel.h"

namespace plumbline::test {

/// All kernels of calibrate/cuda/kernels/ that need no device, by name. Blocks run one after the
/// other and the threads of a block take turns, both in an order that changes from launch to
/// launch. Shared memory begins as not a number. A Bug: threads that leave a block whose
/// others wait at a barrier; shared memory written past what the launch asked for; rows of matrices
/// that are not aligned.
const FakeKernels& emulated_kernels();

}  // namespace plumbline::test
