// Devices that stay open from run to run, so that libraries load their parts for a context once.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>

#include "base/diagnostic.h"
#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/driver/driver.h"

namespace plumbline {

/// Devices with the driver that they call.
struct OpenedCuda {
  CudaDriver driver;  // before all that calls it
  std::unique_ptr<CudaDevices> devices;
  bool hangs = false;  ///< A run was given up while one of them hung.
};

/// Opens devices. Errors: the errors of open_cuda_devices.
Result<std::shared_ptr<OpenedCuda>> open_cuda(const CudaDriver& driver, std::uint32_t count,
                                              bool one_gpu);

/// The devices that were opened last. One run at a time uses them.
class CudaDevicePool {
 public:
  /// Returns the open devices if their number and kind match. Otherwise closes them, unless
  /// somebody still has them, and opens others. Errors: the errors of open_cuda_devices; one of its
  /// devices hangs, as others on that GPU would wait for it.
  Result<std::shared_ptr<OpenedCuda>> open(const CudaDriver& driver, std::uint32_t count,
                                           bool one_gpu);

 private:
  std::shared_ptr<OpenedCuda> opened_;
  std::uint32_t count_ = 0;
  bool one_gpu_ = false;
};

}  // namespace plumbline
