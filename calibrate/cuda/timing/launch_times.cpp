// Rows and rings of ops that spin.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/timing/launch_times.h"

#include <algorithm>
#include <cstdint>

#include "calibrate/cuda/driver/events.h"
#include "calibrate/cuda/driver/launch.h"
#include "calibrate/cuda/driver/stopwatch.h"

namespace plumbline {
namespace {

/// The number of ops in a row, or about the number in a ring.
constexpr std::size_t kOps = 48;

}  // namespace

CudaSpinOps::CudaSpinOps(CudaDevices& devices, CudaLaunching& launching) : devices_(devices) {
  const CudaDriver& driver = devices.driver();
  for (std::size_t device = 0; device < devices.all().size(); ++device) {
    const CudaDevice& on = devices.all()[device];
    PLUMBLINE_CUDA(driver, cuCtxSetCurrent, on.context);
    times_.emplace_back(driver, 2 * sizeof(std::uint64_t));
    launch(device);  // loads the kernel
    PLUMBLINE_CUDA(driver, cuStreamSynchronize, on.compute);
  }
  if (!launching.replays) return;
  const bool is_recorded = launching.try_to(driver, [&] {
    for (std::size_t device = 0; device < devices.all().size(); ++device) {
      const CudaDevice& on = devices.all()[device];
      PLUMBLINE_CUDA(driver, cuCtxSetCurrent, on.context);
      graphs_.emplace_back(driver, on.compute, [&] { launch(device); });
    }
  });
  if (!is_recorded) graphs_.clear();
}

void CudaSpinOps::launch(std::size_t device) {
  const CudaDevice& on = devices_.all()[device];
  cuda::launch(bare_queue(devices_.driver(), on, on.compute), "plumbline_spin", {on.sms}, 64, 0,
               static_cast<unsigned long long>(kNanoseconds), times_[device].data());
}

void CudaSpinOps::enqueue(std::size_t device) {
  const CudaDevice& on = devices_.all()[device];
  PLUMBLINE_CUDA(devices_.driver(), cuCtxSetCurrent, on.context);
  if (graphs_.empty()) {
    launch(device);
  } else {
    graphs_[device].replay(on.compute);
  }
}

CudaLaunchTimes measure_launch_times(CudaDevices& devices, CudaLaunching& launching) {
  const CudaDriver& driver = devices.driver();
  const std::vector<CudaDevice>& all = devices.all();
  CudaSpinOps ops(devices, launching);
  std::vector<CudaEvents> events;
  events.reserve(all.size());
  for (const CudaDevice& device : all) {
    PLUMBLINE_CUDA(driver, cuCtxSetCurrent, device.context);
    events.emplace_back(driver, 1, CU_EVENT_DISABLE_TIMING);
  }
  CudaStopwatch stopwatch(devices, 0);
  const auto beyond = [&](double time, std::size_t count) {
    return std::max(0.0, time / static_cast<double>(count) - CudaSpinOps::kNanoseconds);
  };
  const auto point = [&](std::size_t device) {
    return CudaPoint{&all[device], all[device].compute};
  };
  CudaLaunchTimes times;
  const double row = stopwatch.time([&] {
    for (std::size_t i = 0; i < kOps; ++i) ops.enqueue(0);
  });
  times.alone = times.beside = beyond(row, kOps);
  if (all.size() < 2) return times;
  const double rows = stopwatch.time([&] {
    for (std::size_t i = 1; i < all.size(); ++i) signal(driver, point(0), events[0][0], point(i));
    for (std::size_t i = 0; i < kOps; ++i) {
      for (std::size_t device = 0; device < all.size(); ++device) ops.enqueue(device);
    }
  });
  for (const CudaDevice& device : all) {
    PLUMBLINE_CUDA(driver, cuCtxSetCurrent, device.context);
    PLUMBLINE_CUDA(driver, cuStreamSynchronize, device.compute);
  }
  times.beside = beyond(rows, kOps);
  const std::size_t hops = (kOps + all.size() - 1) / all.size() * all.size();
  const double ring = stopwatch.time([&] {  // whole rounds: the ring ends where it began
    for (std::size_t i = 0; i < hops; ++i) {
      const std::size_t from = i % all.size();
      ops.enqueue(from);
      signal(driver, point(from), events[from][0], point((i + 1) % all.size()));
    }
  });
  times.crossing = std::max(0.0, beyond(ring, hops) - times.alone);
  return times;
}

}  // namespace plumbline
