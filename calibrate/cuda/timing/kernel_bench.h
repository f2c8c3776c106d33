// Single kernels of the CUDA backend, timed on one device.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "calibrate/cuda/driver/queue.h"
#include "calibrate/measure/kernel_bench.h"

namespace plumbline {

/// Products by the queue's library, attention by the faster of the layers' own ways, all else by
/// own kernels; in fp32 and bf16. Products that are added to sums of another type are not
/// among them, nor are lookups. The queue's context is current on the thread that uses it. Errors
/// of the bench: CudaError, or std::bad_alloc where the memory does not hold the operands.
std::unique_ptr<KernelBench> cuda_kernel_bench(const CudaQueue& queue, const KernelForms& forms);

}  // namespace plumbline
