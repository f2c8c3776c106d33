// Copies from device to device, the same in runs and in calibration.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <cstddef>

#include "calibrate/cuda/driver/devices.h"

namespace plumbline {

/// An address in the memory of a device.
struct CudaPlace {
  const CudaDevice& device;
  CUdeviceptr address;
};

/// Copies on a stream of the current context. The stream is not being captured. Errors: CudaError.
inline void copy_between(const CudaDriver& driver, const CudaPlace& from, const CudaPlace& to,
                         std::size_t bytes, CUstream stream) {
  if (from.device.ordinal == to.device.ordinal) {
    PLUMBLINE_CUDA(driver, cuMemcpyDtoDAsync, to.address, from.address, bytes, stream);
  } else {
    PLUMBLINE_CUDA(driver, cuMemcpyPeerAsync, to.address, to.device.context, from.address,
                   from.device.context, bytes, stream);
  }
}

}  // namespace plumbline
