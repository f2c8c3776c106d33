// Two events behind a gate.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/driver/stopwatch.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace plumbline {
namespace {

constexpr std::size_t kTimings = 5;
/// The device waits for the host no longer than this.
constexpr unsigned long long kLongestWait = 100'000'000;

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

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
}

double CudaStopwatch::time(const std::function<void()>& enqueue) {
  if (const auto behind_gate = time_behind_gate(enqueue)) return *behind_gate;
  std::vector<double> times;
  times.reserve(kTimings);
  while (times.size() < kTimings) times.push_back(*time_once(enqueue, /*holds=*/false));
  return median(std::move(times));
}

std::optional<double> CudaStopwatch::time_behind_gate(const std::function<void()>& enqueue,
                                                      const std::function<void()>& before) {
  before();
  static_cast<void>(time_once(enqueue, /*holds=*/false));  // the first one warms up
  std::vector<double> times;
  times.reserve(kTimings);
  for (std::size_t round = 0; round < 2 * kTimings && times.size() < kTimings; ++round) {
    before();
    if (const auto took = time_once(enqueue, /*holds=*/true)) times.push_back(*took);
  }
  if (times.size() < kTimings) return std::nullopt;
  return median(std::move(times));
}

std::optional<double> CudaStopwatch::time_once(const std::function<void()>& enqueue, bool holds) {
  PLUMBLINE_CUDA(driver_, cuCtxSetCurrent, device_.context);
  gate_.close(bare_queue(driver_, device_, device_.compute), holds, kLongestWait);
  PLUMBLINE_CUDA(driver_, cuEventRecord, events_[0], device_.compute);
  enqueue();
  PLUMBLINE_CUDA(driver_, cuCtxSetCurrent, device_.context);
  PLUMBLINE_CUDA(driver_, cuEventRecord, events_[1], device_.compute);
  gate_.open();
  PLUMBLINE_CUDA(driver_, cuStreamSynchronize, device_.compute);
  if (!gate_.was_in_time()) return std::nullopt;
  float milliseconds = 0;
  PLUMBLINE_CUDA(driver_, cuEventElapsedTime, &milliseconds, events_[0], events_[1]);
  return double{milliseconds} * 1e6;
}

}  // namespace plumbline
