// CUDA devices: whole GPUs, or one GPU split into groups of SMs that work side by side.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "calibrate/cuda/driver/driver.h"
#include "calibrate/cuda/driver/queue.h"

namespace plumbline {

/// One device of a pipeline. All that it enqueues runs on its SMs only, but for what it sends.
struct CudaDevice {
  int ordinal = 0;  ///< Of the GPU.
  std::uint32_t sms = 0;
  CUcontext context = nullptr;  ///< Of its green context, or the GPU's primary one.
  CUcontext primary = nullptr;  ///< The GPU's.
  CUstream compute = nullptr;   ///< Null where only tensors are moved.
  std::unique_ptr<CudaKernels> kernels;
};

/// For own kernels on one of the device's streams; without libraries.
inline CudaQueue bare_queue(const CudaDriver& driver, const CudaDevice& device, CUstream stream) {
  CudaQueue queue;
  queue.driver = &driver;
  queue.context = device.context;
  queue.kernels = device.kernels.get();
  queue.stream = stream;
  queue.sms = device.sms;
  return queue;
}

/// Opened devices; closes them at the end, when no thread has one of their contexts current but the
/// one that closes them. The driver outlives them.
class CudaDevices {
 public:
  virtual ~CudaDevices() = default;

  virtual const CudaDriver& driver() const = 0;
  virtual std::vector<CudaDevice>& all() = 0;
  /// "NVIDIA H100 80GB HBM3", for provenance.
  virtual std::string name() const = 0;
  /// Whether they are parts of one GPU.
  virtual bool split() const = 0;
  /// Where a device moves tensors from while its kernels run. Within a GPU a driver copies by
  /// kernels, which wait for room on the SMs that they run on: so copies of a split GPU have the
  /// SMs to themselves that the split leaves over. The device itself where there are none.
  virtual const CudaDevice& mover(std::size_t device) const = 0;
  /// A stream of the device's mover, whose kernels go before those that wait on a compute stream;
  /// one that was given back, where there is one. One thread at a time. Errors: CudaError.
  virtual CUstream take_urgent_stream(std::size_t device) = 0;
  /// Requires: nothing is enqueued on it.
  virtual void give_back(std::size_t device, CUstream stream) noexcept = 0;
};

/// An urgent stream while this lives. A GPU has few queues for streams, and one that was opened
/// anew may get that of another which is in use: they would wait for each other. So streams stay
/// with their devices. Requires: nothing is enqueued on it in the end.
class CudaUrgentStream {
 public:
  CudaUrgentStream() = default;
  CudaUrgentStream(CudaDevices& devices, std::size_t device)
      : devices_(&devices), device_(device), stream_(devices.take_urgent_stream(device)) {}
  ~CudaUrgentStream() {
    if (stream_ != nullptr) devices_->give_back(device_, stream_);
  }
  CudaUrgentStream(CudaUrgentStream&& other) noexcept
      : devices_(other.devices_),
        device_(other.device_),
        stream_(std::exchange(other.stream_, nullptr)) {}
  CudaUrgentStream& operator=(CudaUrgentStream&& other) noexcept {
    std::swap(devices_, other.devices_);
    std::swap(device_, other.device_);
    std::swap(stream_, other.stream_);
    return *this;
  }

  CUstream get() const { return stream_; }

 private:
  CudaDevices* devices_ = nullptr;
  std::size_t device_ = 0;
  CUstream stream_ = nullptr;
};

/// `count` devices: as many GPUs where there are so many (and `one_gpu` is not asked for), else GPU
/// 0 split into `count` groups of SMs by green contexts. One device is the whole GPU 0. The calling
/// thread's context stays what it is. Requires: count > 0. Errors (no device): a GPU too small for
/// the split, or a driver that splits it otherwise, with the numbers; a driver call that fails.
Result<std::unique_ptr<CudaDevices>> open_cuda_devices(const CudaDriver& driver,
                                                       std::uint32_t count, bool one_gpu);

}  // namespace plumbline
