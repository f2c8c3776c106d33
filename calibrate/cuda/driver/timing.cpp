// Samples between two events.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/driver/timing.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "calibrate/cuda/driver/events.h"
#include "calibrate/cuda/driver/launch.h"

namespace plumbline {

double median_milliseconds(const CudaQueue& queue, const std::function<void()>& enqueue) {
  constexpr int kWarmUps = 3;
  constexpr std::size_t kSamples = 9;
  constexpr std::size_t kFewestSamples = 3;
  constexpr double kEnough = 50;  // ms
  // Executions are timed several at a time, as the clock of events is coarse for short work. None
  // begins before all are enqueued: otherwise work shorter than a launch by the host would seem as
  // long as the launch.
  constexpr int kTogether = 8;
  constexpr unsigned long long kHeadStart = 80'000;  // ns
  const CudaDriver& driver = *queue.driver;
  const auto back_to_device = [&] {  // a library may have left another context current
    if (queue.context != nullptr) PLUMBLINE_CUDA(driver, cuCtxSetCurrent, queue.context);
  };
  back_to_device();
  const CudaEvents events(driver, 2, CU_EVENT_DEFAULT);
  const CudaScratch spun(driver, 2 * sizeof(std::uint64_t));
  for (int i = 0; i < kWarmUps; ++i) enqueue();
  std::vector<double> times;
  double all = 0;
  while (times.size() < kSamples && (times.size() < kFewestSamples || all < kEnough)) {
    back_to_device();
    cuda::launch(queue, "plumbline_spin", {}, 1, 0, kHeadStart, spun.data());
    PLUMBLINE_CUDA(driver, cuEventRecord, events[0], queue.stream);
    for (int i = 0; i < kTogether; ++i) enqueue();
    PLUMBLINE_CUDA(driver, cuEventRecord, events[1], queue.stream);
    PLUMBLINE_CUDA(driver, cuEventSynchronize, events[1]);
    float milliseconds = 0;
    PLUMBLINE_CUDA(driver, cuEventElapsedTime, &milliseconds, events[0], events[1]);
    times.push_back(double{milliseconds} / kTogether);
    all += double{milliseconds};
  }
  back_to_device();
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
