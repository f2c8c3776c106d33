// Sums on the streams of transfers, on all devices at once.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/timing/sum_times.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "calibrate/cuda/driver/events.h"
#include "calibrate/cuda/driver/scratch.h"
#include "calibrate/cuda/driver/stopwatch.h"
#include "calibrate/cuda/libraries/builtin_kernels.h"

namespace plumbline {
namespace {

/// Sums behind each other, so that what is around them does not count.
constexpr int kSums = 6;
/// Larger gradients take their time in proportion.
constexpr std::size_t kMaxGradients = std::size_t{256} << 20;

/// Half of the gradients of two members, and a stream on which one of them adds them up.
class Adder {
 public:
  Adder(CudaDevices& devices, std::size_t device, ElementType type, std::size_t bytes)
      : driver_(devices.driver()),
        on_(devices.mover(device)),
        type_(type),
        count_(static_cast<std::int64_t>(bytes) / bytes_of(type)),
        stream_(devices, device) {
    PLUMBLINE_CUDA(driver_, cuCtxSetCurrent, on_.context);
    own_ = CudaScratch(driver_, bytes);
    other_ = CudaScratch(driver_, bytes);
    for (const CudaScratch* memory : {&own_, &other_})
      PLUMBLINE_CUDA(driver_, cuMemsetD8Async, memory->data(), 0, bytes, stream_.get());
    ended_ = CudaEvents(driver_, 1, CU_EVENT_DISABLE_TIMING);
    PLUMBLINE_CUDA(driver_, cuStreamSynchronize, stream_.get());
  }

  CudaPoint point() const { return {&on_, stream_.get()}; }
  CUevent ended() const { return ended_[0]; }
  void enqueue(int sums) const {
    PLUMBLINE_CUDA(driver_, cuCtxSetCurrent, on_.context);
    for (int i = 0; i < sums; ++i) {
      cuda::add_up(bare_queue(driver_, on_, stream_.get()), type_, own_.data(),
                   {own_.data(), other_.data()}, count_);
    }
  }
  /// What may run ends before its memory is freed.
  void wait() const noexcept {
    driver_.cuCtxSetCurrent(on_.context);
    driver_.cuStreamSynchronize(stream_.get());
  }

 private:
  const CudaDriver& driver_;
  const CudaDevice& on_;
  ElementType type_;
  std::int64_t count_;
  CudaUrgentStream stream_;
  CudaScratch own_;
  CudaScratch other_;
  CudaEvents ended_;
};

double time_of_sums(CudaDevices& devices, const std::vector<Adder>& adders, int sums) {
  const CudaDriver& driver = devices.driver();
  const CudaDevice& first = devices.all().front();
  PLUMBLINE_CUDA(driver, cuCtxSetCurrent, first.context);
  const CudaEvents begin(driver, 1, CU_EVENT_DISABLE_TIMING);
  const CudaPoint timed{&first, first.compute};
  const double time = CudaStopwatch(devices, 0).time([&] {
    for (const Adder& adder : adders) signal(driver, timed, begin[0], adder.point());
    for (const Adder& adder : adders) adder.enqueue(sums);
    for (const Adder& adder : adders) signal(driver, adder.point(), adder.ended(), timed);
  });
  PLUMBLINE_CUDA(driver, cuCtxSetCurrent, first.context);
  return time;
}

}  // namespace

std::optional<BytesPerSecond> measure_cuda_sums(CudaDevices& devices, ElementType type,
                                                std::size_t bytes) {
  const std::size_t half = std::min(bytes, kMaxGradients) / 2 / 256 * 256;
  if (devices.all().size() < 2 || half == 0) return std::nullopt;
  std::vector<Adder> adders;
  adders.reserve(devices.all().size());
  try {
    for (std::size_t device = 0; device < devices.all().size(); ++device)
      adders.emplace_back(devices, device, type, half);
    const double many = time_of_sums(devices, adders, kSums);
    const double one = time_of_sums(devices, adders, 1);
    const double each = (many - one) / (kSums - 1);
    if (each <= 0) return std::nullopt;
    return BytesPerSecond{
        std::max<std::int64_t>(1, std::llround(static_cast<double>(2 * half) / each * 1e9))};
  } catch (const CudaError& error) {
    for (const Adder& adder : adders) adder.wait();
    if (error.result() != CUDA_ERROR_OUT_OF_MEMORY) throw;
    return std::nullopt;
  }
}

}  // namespace plumbline
