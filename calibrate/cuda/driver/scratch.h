// Memory of a device, freed by its holder.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <cstddef>
#include <utility>

#include "calibrate/cuda/driver/driver.h"

namespace plumbline {

/// Memory of the current context, not initialised. It can be freed while any context is current, as
/// addresses are valid in the whole process. Moved, not copied.
class CudaScratch {
 public:
  CudaScratch() = default;
  /// No memory for 0 bytes. Errors: CudaError.
  CudaScratch(const CudaDriver& driver, std::size_t bytes) : driver_(&driver) {
    if (bytes > 0) PLUMBLINE_CUDA(driver, cuMemAlloc, &data_, bytes);
  }
  CudaScratch(CudaScratch&& other) noexcept
      : driver_(other.driver_), data_(std::exchange(other.data_, 0)) {}
  CudaScratch& operator=(CudaScratch&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(data_, other.data_);
    return *this;
  }
  CudaScratch(const CudaScratch&) = delete;
  CudaScratch& operator=(const CudaScratch&) = delete;
  ~CudaScratch() {
    if (data_ != 0) driver_->cuMemFree(data_);
  }

  CUdeviceptr data() const { return data_; }

 private:
  const CudaDriver* driver_ = nullptr;
  CUdeviceptr data_ = 0;
};

}  // namespace plumbline
