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

/// One device of a pipeline. All its work runs on its own SMs only, except its transfers.
struct CudaDevice {
  int ordinal = 0;  ///< The GPU's number.
  std::uint32_t sms = 0;
  CUcontext context = nullptr;  ///< Its green context, or the GPU's primary one.
  CUcontext primary = nullptr;  ///< The GPU's primary context.
  CUstream compute = nullptr;   ///< Null where only tensors are moved.
  std::unique_ptr<CudaKernels> kernels;
};

/// A queue for our own kernels on one of the device's streams, without libraries.
inline CudaQueue bare_queue(const CudaDriver& driver, const CudaDevice& device, CUstream stream) {
  CudaQueue queue;
  queue.driver = &driver;
  queue.context = device.context;
  queue.kernels = device.kernels.get();
  queue.stream = stream;
  queue.sms = device.sms;
  return queue;
}

/// Opened devices, closed by the destructor. At that time no other thread has one of their contexts
/// current. The driver outlives them.
class CudaDevices {
 public:
  virtual ~CudaDevices() = default;

  virtual const CudaDriver& driver() const = 0;
  virtual std::vector<CudaDevice>& all() = 0;
  /// "NVIDIA H100 80GB HBM3", for provenance.
  virtual std::string name() const = 0;
  /// Whether they are parts of one GPU.
  virtual bool split() const = 0;
  /// The device whose SMs move tensors while this device's kernels run. Within a GPU a driver
  /// copies by kernels, which wait for room on their SMs. So on a split GPU copies run on the SMs
  /// that the split leaves over. The device itself where no SMs are left.
  virtual const CudaDevice& mover(std::size_t device) const = 0;
  /// A stream of the device's mover. Its kernels go before kernels that wait on a compute stream.
  /// Takes a stream that was given back, if there is one. One thread at a time. Errors: CudaError.
  virtual CUstream take_urgent_stream(std::size_t device) = 0;
  /// Requires: nothing is enqueued on it.
  virtual void give_back(std::size_t device, CUstream stream) noexcept = 0;
};

/// An urgent stream for the life of this object. A GPU has few queues for streams. A newly opened
/// stream may share the queue of a stream in use, and the two would wait for each other. So streams
/// stay with their devices. Requires: nothing is enqueued on the stream at destruction.
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

/// Opens `count` devices. These are whole GPUs where there are enough and `one_gpu` is not asked
/// for. Otherwise GPU 0 is split into `count` groups of SMs by green contexts. One device is the
/// whole GPU 0. The calling thread's current context does not change. Requires: count > 0. Errors
/// (no device): a GPU too small for the split, or a driver that splits it otherwise, with the
/// numbers; a driver call that fails.
Result<std::unique_ptr<CudaDevices>> open_cuda_devices(const CudaDriver& driver,
                                                       std::uint32_t count, bool one_gpu);

}  // namespace plumbline
