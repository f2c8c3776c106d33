// Many streams at once, and a copy beside a kernel.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/check/stream_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "calibrate/cuda/check/check.h"
#include "calibrate/cuda/driver/copy.h"
#include "calibrate/cuda/driver/events.h"
#include "calibrate/cuda/driver/launch.h"
#include "calibrate/cuda/driver/scratch.h"

namespace plumbline {
namespace {

/// The streams of a pipeline on each device, each with a small kernel that spins.
class SpinningStreams {
 public:
  explicit SpinningStreams(CudaDevices& devices) : devices_(devices) {
    try {
      for (std::size_t i = 0; i < devices.all().size(); ++i) {
        add(devices.all()[i], devices.all()[i].compute);
        for (int sends = 0; sends < 2; ++sends) {
          CudaUrgentStream own(devices, i);
          const CUstream stream = own.get();
          add(devices.mover(i), stream, std::move(own));
        }
      }
    } catch (...) {
      close();
      throw;
    }
  }
  ~SpinningStreams() { close(); }
  SpinningStreams(const SpinningStreams&) = delete;
  SpinningStreams& operator=(const SpinningStreams&) = delete;

  std::size_t size() const { return streams_.size(); }

  /// The most streams that spin at the same time. Errors: CudaError.
  std::size_t together() {
    for (const Stream& one : streams_) spin(one, 0);  // to load it in all contexts, which waits
    for (const Stream& one : streams_)
      PLUMBLINE_CUDA(devices_.driver(), cuStreamSynchronize, queue_of(one).stream);
    for (const Stream& one : streams_) spin(one, kSpinNanoseconds);
    std::vector<std::pair<std::uint64_t, int>> changes;  // changes of the number that spin
    for (const Stream& one : streams_) {
      std::uint64_t times[2] = {};
      const CudaQueue queue = queue_of(one);
      PLUMBLINE_CUDA(devices_.driver(), cuMemcpyDtoHAsync, times, one.times.data(), sizeof times,
                     queue.stream);
      PLUMBLINE_CUDA(devices_.driver(), cuStreamSynchronize, queue.stream);
      changes.emplace_back(times[0], 1);
      changes.emplace_back(times[1], -1);
    }
    std::sort(changes.begin(), changes.end());
    int spinning = 0;
    int max = 0;
    for (const auto& [time, change] : changes) max = std::max(max, spinning += change);
    return static_cast<std::size_t>(max);
  }

 private:
  struct Stream {
    const CudaDevice* on = nullptr;
    CUstream stream = nullptr;
    CudaUrgentStream own;  ///< Set unless it is the compute stream.
    CudaScratch times;
  };

  void add(const CudaDevice& on, CUstream stream, CudaUrgentStream own = {}) {
    streams_.push_back({&on, stream, std::move(own), {}});
    PLUMBLINE_CUDA(devices_.driver(), cuCtxSetCurrent, on.context);
    streams_.back().times = CudaScratch(devices_.driver(), 2 * sizeof(std::uint64_t));
  }
  void spin(const Stream& one, std::uint64_t nanoseconds) const {
    cuda::launch(queue_of(one), "plumbline_spin", {}, 1, 0,
                 static_cast<unsigned long long>(nanoseconds), one.times.data());
  }
  /// The stream's queue. Makes its context current.
  CudaQueue queue_of(const Stream& one) const {
    PLUMBLINE_CUDA(devices_.driver(), cuCtxSetCurrent, one.on->context);
    return bare_queue(devices_.driver(), *one.on, one.stream);
  }
  void close() noexcept {
    for (Stream& one : streams_) {
      devices_.driver().cuCtxSetCurrent(one.on->context);
      one.times = {};
    }
    devices_.driver().cuCtxSetCurrent(nullptr);
  }

  CudaDevices& devices_;
  std::vector<Stream> streams_;
};

/// A copy on its own stream, beside a kernel that fills the SMs of a device.
class CopyBesideKernel {
 public:
  CopyBesideKernel(CudaDevices& devices, std::size_t device)
      : driver_(devices.driver()),
        device_(devices.all()[device]),
        mover_(devices.mover(device)),
        own_(devices, device),
        stream_(own_.get()) {
    try {
      PLUMBLINE_CUDA(driver_, cuCtxSetCurrent, device_.context);
      memory_ = CudaScratch(driver_, 2 * kBytes);
      times_ = CudaScratch(driver_, 2 * sizeof(std::uint64_t));
      kernel_ended_ = CudaEvents(driver_, 1, CU_EVENT_DEFAULT);
      PLUMBLINE_CUDA(driver_, cuCtxSetCurrent, mover_.context);
      copy_ended_ = CudaEvents(driver_, 1, CU_EVENT_DEFAULT);
    } catch (...) {
      close();
      throw;
    }
  }
  ~CopyBesideKernel() { close(); }
  CopyBesideKernel(const CopyBesideKernel&) = delete;
  CopyBesideKernel& operator=(const CopyBesideKernel&) = delete;

  /// The time from the end of the copy to the end of the kernel, in ms; below 0 if the copy ended
  /// later. Errors: CudaError.
  double ahead() {
    int max = 0;  // threads on an SM; two blocks of half as many fill it
    CUdevice gpu = 0;
    PLUMBLINE_CUDA(driver_, cuDeviceGet, &gpu, device_.ordinal);
    PLUMBLINE_CUDA(driver_, cuDeviceGetAttribute, &max,
                   CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, gpu);
    float milliseconds = 0;
    for (int round = 0; round < 2; ++round) {  // the first one does the loading
      PLUMBLINE_CUDA(driver_, cuCtxSetCurrent, device_.context);
      cuda::launch(bare_queue(driver_, device_, device_.compute), "plumbline_spin",
                   {2 * std::int64_t{device_.sms}}, max / 2, 0,
                   static_cast<unsigned long long>(kSpinNanoseconds), times_.data());
      PLUMBLINE_CUDA(driver_, cuEventRecord, kernel_ended_[0], device_.compute);
      PLUMBLINE_CUDA(driver_, cuCtxSetCurrent, mover_.context);
      copy_between(driver_, {device_, memory_.data()}, {device_, memory_.data() + kBytes}, kBytes,
                   stream_);
      PLUMBLINE_CUDA(driver_, cuEventRecord, copy_ended_[0], stream_);
      for (const CUevent end : {copy_ended_[0], kernel_ended_[0]})
        PLUMBLINE_CUDA(driver_, cuEventSynchronize, end);
      PLUMBLINE_CUDA(driver_, cuEventElapsedTime, &milliseconds, copy_ended_[0], kernel_ended_[0]);
    }
    return double{milliseconds};
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{1} << 20U;

  void close() noexcept {
    driver_.cuCtxSetCurrent(device_.context);
    kernel_ended_ = {};
    copy_ended_ = {};
    memory_ = {};
    times_ = {};
    driver_.cuCtxSetCurrent(nullptr);
  }

  const CudaDriver& driver_;
  const CudaDevice& device_;
  const CudaDevice& mover_;
  CudaUrgentStream own_;
  CUstream stream_;
  CudaScratch memory_;
  CudaScratch times_;
  CudaEvents kernel_ended_;
  CudaEvents copy_ended_;
};

}  // namespace

std::string streams_text(CudaDevices& devices) {
  if (!devices.split()) return "";
  SpinningStreams streams(devices);
  return fmt::format("streams     {}, three on each device, of which {} work at the same time\n",
                     streams.size(), streams.together());
}

std::string copies_text(CudaDevices& devices) {
  if (!devices.split()) return "";
  CopyBesideKernel copy(devices, 0);
  const double ahead = copy.ahead();
  const CudaDevice& mover = devices.mover(0);
  const std::string where = &mover == &devices.all()[0]
                                ? "on its own SMs"
                                : fmt::format("on {} SMs for all copies", mover.sms);
  return fmt::format(
      "copies      {}: 1 MiB beside a kernel of {} ms that fills its device ends {:.2f} ms {} it\n",
      where, kSpinNanoseconds / 1'000'000, std::abs(ahead), ahead > 0 ? "before" : "behind");
}

}  // namespace plumbline
