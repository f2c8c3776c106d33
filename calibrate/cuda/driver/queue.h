// The queue for the work of one CUDA device, and the objects that enqueuing needs.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "calibrate/cuda/driver/choices.h"
#include "calibrate/cuda/driver/driver.h"

namespace plumbline {

class CudaConvolutions;
class CudaGemms;

/// Our own kernels, loaded into one context.
class CudaKernels {
 public:
  /// Loads the image into the current context. Errors: CudaError.
  CudaKernels(const CudaDriver& driver, const void* image);
  ~CudaKernels();
  CudaKernels(const CudaKernels&) = delete;
  CudaKernels& operator=(const CudaKernels&) = delete;

  /// The kernel of this `extern "C"` name. Errors: CudaError where there is none.
  CUfunction operator[](std::string_view name) const;

 private:
  const CudaDriver& driver_;
  CUmodule module_ = nullptr;
  mutable std::map<std::string, CUfunction, std::less<>> functions_;
};

/// A stream of one device: a GPU or a part of one. Its context is current on the thread that
/// enqueues. All objects here outlive the queue.
struct CudaQueue {
  const CudaDriver* driver = nullptr;
  const CudaKernels* kernels = nullptr;
  CudaGemms* products = nullptr;             ///< Matrix products on this device.
  CudaConvolutions* convolutions = nullptr;  ///< Null where no layer has any.
  CUstream stream = nullptr;
  std::uint32_t sms = 0;  ///< The SMs for its kernels.
  /// Null: the first algorithm that suits is taken, untimed.
  CudaChoices* choices = nullptr;
  CUcontext context = nullptr;  ///< The device's; a library may have made another one current.
};

}  // namespace plumbline
