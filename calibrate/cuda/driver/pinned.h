// Memory of the host that devices reach.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <utility>

#include "calibrate/cuda/driver/driver.h"

namespace plumbline {

/// Pinned memory of the host, mapped into the address space of every device. Moved, not copied.
class CudaPinned {
 public:
  CudaPinned() = default;
  /// Requires: a current context. Errors: CudaError.
  CudaPinned(const CudaDriver& driver, std::size_t bytes) : driver_(&driver) {
    PLUMBLINE_CUDA(driver, cuMemHostAlloc, &data_, bytes,
                   CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  }
  ~CudaPinned() {
    if (data_ != nullptr) driver_->cuMemFreeHost(data_);
  }
  CudaPinned(CudaPinned&& other) noexcept
      : driver_(other.driver_), data_(std::exchange(other.data_, nullptr)) {}
  CudaPinned& operator=(CudaPinned&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(data_, other.data_);
    return *this;
  }
  CudaPinned(const CudaPinned&) = delete;
  CudaPinned& operator=(const CudaPinned&) = delete;

  void* data() const { return data_; }
  /// Where devices find it. Errors: CudaError.
  CUdeviceptr on_device() const {
    CUdeviceptr address = 0;
    PLUMBLINE_CUDA(*driver_, cuMemHostGetDevicePointer, &address, data_, 0);
    return address;
  }

 private:
  const CudaDriver* driver_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace plumbline
