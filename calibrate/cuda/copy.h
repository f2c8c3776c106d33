// Copies from device to device, the same in runs and in calibration. SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <cstddef>

#include "calibrate/cuda/devices.h"

namespace plumbline {

/// Memory of a device.
struct CudaPlace {
  const CudaDevice& device;
  CUdeviceptr address;
};

/// By a copy engine, while kernels keep all SMs: left to itself, a driver copies within a GPU by a
/// kernel, which waits until others leave it room, and takes that from those behind it. False where
/// the driver does not: nothing is enqueued then. Errors: CudaError.
inline bool copy_beside_kernels(const CudaDriver& driver, CUdeviceptr from, CUdeviceptr to,
                                std::size_t bytes, CUstream stream) {
  if (driver.cuMemcpyBatchAsync == nullptr || bytes == 0) return false;
  CUmemcpyAttributes how{};
  how.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  how.flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE;
  std::size_t first = 0;  // of the copies that are made so
  const CUresult result = driver.cuMemcpyBatchAsync(&to, &from, &bytes, 1, &how, &first, 1, stream);
  if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED) return false;
  check_cuda(driver, "cuMemcpyBatchAsync", result);
  return true;
}

/// On a stream of the current context, no stream that is captured. Errors: CudaError.
inline void copy_between(const CudaDriver& driver, const CudaPlace& from, const CudaPlace& to,
                         std::size_t bytes, CUstream stream) {
  if (from.device.ordinal == to.device.ordinal) {
    if (copy_beside_kernels(driver, from.address, to.address, bytes, stream)) return;
    PLUMBLINE_CUDA(driver, cuMemcpyDtoDAsync, to.address, from.address, bytes, stream);
  } else {
    PLUMBLINE_CUDA(driver, cuMemcpyPeerAsync, to.address, to.device.context, from.address,
                   from.device.context, bytes, stream);
  }
}

}  // namespace plumbline
