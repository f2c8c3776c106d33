// Single kernels of the CPU backend, timed on one core.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "calibrate/measure/kernel_bench.h"

namespace plumbline {

/// The kernels of the layers in fp32: products by oneDNN, all else by own loops. Only the thread
/// that makes it uses it; that thread is bound to one core. Requires: a build with oneDNN.
std::unique_ptr<KernelBench> cpu_kernel_bench(const KernelForms& forms);

}  // namespace plumbline
