// Two events behind a kernel that lets the host run ahead.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/driver/stopwatch.h"

#include <algorithm>
#include <vector>

#include "calibrate/cuda/driver/launch.h"
#include "calibrate/runtime/clock.h"

namespace plumbline {
namespace {

constexpr int kTimings = 5;
/// The device waits for the host no longer than this.
constexpr std::int64_t kLongestWait = 100'000'000;

}  // namespace

void signal(const CudaDriver& driver, CudaPoint first, CUevent event, CudaPoint second) {
  PLUMBLINE_CUDA(driver, cuCtxSetCurrent, first.on->context);
  PLUMBLINE_CUDA(driver, cuEventRecord, event, first.stream);
  PLUMBLINE_CUDA(driver, cuCtxSetCurrent, second.on->context);
  PLUMBLINE_CUDA(driver, cuStreamWaitEvent, second.stream, event, 0);
}

CudaStopwatch::CudaStopwatch(CudaDevices& devices, std::size_t device)
    : driver_(devices.driver()), device_(devices.all()[device]) {
  PLUMBLINE_CUDA(driver_, cuCtxSetCurrent, device_.context);
  events_ = CudaEvents(driver_, 2, CU_EVENT_DEFAULT);
  waited_ = CudaScratch(driver_, 2 * sizeof(std::uint64_t));
}

double CudaStopwatch::time(const std::function<void()>& enqueue) {
  std::int64_t wait = time_once(enqueue, 0).first;  // the first one warms up
  std::vector<double> times;
  times.reserve(kTimings);
  for (int round = 0; round < kTimings; ++round) {
    const auto [enqueuing, took] = time_once(enqueue, wait);
    wait = std::min(wait, enqueuing);
    times.push_back(took);
  }
  std::sort(times.begin(), times.end());
  return times[kTimings / 2];
}

std::pair<std::int64_t, double> CudaStopwatch::time_once(const std::function<void()>& enqueue,
                                                         std::int64_t wait) {
  PLUMBLINE_CUDA(driver_, cuCtxSetCurrent, device_.context);
  if (wait > 0) {
    cuda::launch(bare_queue(driver_, device_, device_.compute), "plumbline_spin", {}, 1, 0,
                 static_cast<unsigned long long>(wait), waited_.data());
  }
  const RealTime before = now();
  PLUMBLINE_CUDA(driver_, cuEventRecord, events_[0], device_.compute);
  enqueue();
  PLUMBLINE_CUDA(driver_, cuCtxSetCurrent, device_.context);
  PLUMBLINE_CUDA(driver_, cuEventRecord, events_[1], device_.compute);
  const std::int64_t enqueuing = std::min((now() - before) * 5 / 4 + 50'000, kLongestWait);
  PLUMBLINE_CUDA(driver_, cuStreamSynchronize, device_.compute);
  float milliseconds = 0;
  PLUMBLINE_CUDA(driver_, cuEventElapsedTime, &milliseconds, events_[0], events_[1]);
  return {enqueuing, double{milliseconds} * 1e6};
}

}  // namespace plumbline
