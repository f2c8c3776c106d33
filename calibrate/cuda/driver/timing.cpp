// Samples between two events.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/driver/timing.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "calibrate/cuda/driver/launch.h"

namespace plumbline {

CudaSpan::CudaSpan(const CudaQueue& queue)
    : queue_(queue),
      events_(*queue.driver, 2, CU_EVENT_DEFAULT),
      spun_(*queue.driver, 2 * sizeof(std::uint64_t)) {}

void CudaSpan::back_to_device() const {  // a library may have left another context current
  if (queue_.context != nullptr) PLUMBLINE_CUDA(*queue_.driver, cuCtxSetCurrent, queue_.context);
}

double CudaSpan::milliseconds(int executions, const std::function<void()>& enqueue) const {
  constexpr unsigned long long kHeadStart = 80'000;  // ns
  const CudaDriver& driver = *queue_.driver;
  back_to_device();
  cuda::launch(queue_, "plumbline_spin", {}, 1, 0, kHeadStart, spun_.data());
  PLUMBLINE_CUDA(driver, cuEventRecord, events_[0], queue_.stream);
  for (int i = 0; i < executions; ++i) enqueue();
  PLUMBLINE_CUDA(driver, cuEventRecord, events_[1], queue_.stream);
  PLUMBLINE_CUDA(driver, cuEventSynchronize, events_[1]);
  float milliseconds = 0;
  PLUMBLINE_CUDA(driver, cuEventElapsedTime, &milliseconds, events_[0], events_[1]);
  back_to_device();
  return double{milliseconds};
}

double median_milliseconds(const CudaQueue& queue, const std::function<void()>& enqueue) {
  constexpr int kWarmUps = 3;
  constexpr std::size_t kSamples = 9;
  constexpr std::size_t kFewestSamples = 3;
  constexpr double kEnough = 50;  // ms
  if (queue.context != nullptr) PLUMBLINE_CUDA(*queue.driver, cuCtxSetCurrent, queue.context);
  const CudaSpan span(queue);
  for (int i = 0; i < kWarmUps; ++i) enqueue();
  std::vector<double> times;
  double all = 0;
  while (times.size() < kSamples && (times.size() < kFewestSamples || all < kEnough)) {
    // Several at a time, as the clock of events is coarse for short work.
    const double together = span.milliseconds(CudaSpan::kTogether, enqueue);
    times.push_back(together / CudaSpan::kTogether);
    all += together;
  }
  const auto middle = times.begin() + std::ssize(times) / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

void CudaClock::count(const CudaQueue& queue) {
  constexpr unsigned long long kNanoseconds = 200'000;
  if (counted_.data() == 0) counted_ = CudaScratch(*queue.driver, 2 * sizeof(std::uint64_t));
  cuda::launch(queue, "plumbline_count_cycles", {}, 1, 0, kNanoseconds, counted_.data());
}

double CudaClock::mhz(const CudaQueue& queue) const {
  std::uint64_t counted[2] = {};
  PLUMBLINE_CUDA(*queue.driver, cuMemcpyDtoHAsync, counted, counted_.data(), sizeof counted,
                 queue.stream);
  PLUMBLINE_CUDA(*queue.driver, cuStreamSynchronize, queue.stream);
  return static_cast<double>(counted[0]) * 1e3 / static_cast<double>(counted[1]);
}

}  // namespace plumbline
