// Opening devices, or reusing open ones.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/driver/device_pool.h"

#include <utility>

#include "calibrate/cuda/backend.h"

namespace plumbline {

Result<std::shared_ptr<OpenedCuda>> open_cuda(const CudaDriver& driver, std::uint32_t count,
                                              bool one_gpu) {
  auto opened = std::make_shared<OpenedCuda>();
  opened->driver = driver;
  auto devices = open_cuda_devices(opened->driver, count, one_gpu);
  if (!devices) return devices.problems();
  opened->devices = *std::move(devices);
  return opened;
}

Result<std::shared_ptr<OpenedCuda>> CudaDevicePool::open(const CudaDriver& driver,
                                                         std::uint32_t count, bool one_gpu) {
  if (opened_ && opened_->hangs) {
    Diagnostic hangs;
    hangs.message = "a device hung in an earlier run, and is not used again";
    hangs.help =
        "start the other runs by a command of their own; look at nvidia-smi if it hangs again";
    hangs.fault = Fault::no_device;
    return hangs;
  }
  if (opened_ && count == count_ && one_gpu == one_gpu_) return opened_;
  opened_.reset();
  auto opened = open_cuda(driver, count, one_gpu);
  if (!opened) return opened.problems();
  opened_ = *opened;
  count_ = count;
  one_gpu_ = one_gpu;
  return opened;
}

std::shared_ptr<CudaDevicePool> cuda_device_pool() { return std::make_shared<CudaDevicePool>(); }

}  // namespace plumbline
