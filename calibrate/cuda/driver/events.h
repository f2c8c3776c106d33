// Events of one device, destroyed by their holder.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "calibrate/cuda/driver/driver.h"

namespace plumbline {

/// Events of the context that is current when they are made. Moved, not copied.
class CudaEvents {
 public:
  CudaEvents() = default;
  /// Errors: CudaError.
  CudaEvents(const CudaDriver& driver, std::size_t count, unsigned flags) : driver_(&driver) {
    events_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      CUevent event = nullptr;
      const CUresult result = driver.cuEventCreate(&event, flags);
      if (result != CUDA_SUCCESS) destroy();
      check_cuda(driver, "cuEventCreate", result);
      events_.push_back(event);
    }
  }
  CudaEvents(CudaEvents&& other) noexcept { *this = std::move(other); }
  CudaEvents& operator=(CudaEvents&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(events_, other.events_);
    return *this;
  }
  CudaEvents(const CudaEvents&) = delete;
  CudaEvents& operator=(const CudaEvents&) = delete;
  ~CudaEvents() { destroy(); }

  CUevent operator[](std::size_t i) const { return events_[i]; }
  CUevent back() const { return events_.back(); }
  std::span<const CUevent> all() const { return events_; }

 private:
  void destroy() noexcept {
    for (const CUevent event : events_) driver_->cuEventDestroy(event);
  }

  const CudaDriver* driver_ = nullptr;
  std::vector<CUevent> events_;
};

}  // namespace plumbline
