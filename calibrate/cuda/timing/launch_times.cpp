// Rows and rings of ops that spin.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/timing/launch_times.h"

#include <algorithm>
#include <cstdint>

#include "calibrate/cuda/driver/copy.h"
#include "calibrate/cuda/driver/events.h"
#include "calibrate/cuda/driver/launch.h"
#include "calibrate/cuda/driver/stopwatch.h"

namespace plumbline {
namespace {

/// The number of ops in a row, or about the number in a ring.
constexpr std::size_t kOps = 48;

/// The number of bytes of a copy that takes no longer than one of none.
constexpr std::size_t kSmallCopy = 256;

/// What stands around an op of a run: events of devices that signal each other, one of the last op
/// and one that has happened, and a small copy of what it made.
class Signals {
 public:
  explicit Signals(CudaDevices& devices) : devices_(devices) {
    const CudaDriver& driver = devices.driver();
    for (std::size_t device = 0; device < devices.all().size(); ++device) {
      const CudaDevice& on = devices.all()[device];
      PLUMBLINE_CUDA(driver, cuCtxSetCurrent, on.context);
      made_.emplace_back(driver, 1, CU_EVENT_DISABLE_TIMING);
      happened_.emplace_back(driver, 1, CU_EVENT_DISABLE_TIMING);
      memory_.emplace_back(driver, kSmallCopy);
      PLUMBLINE_CUDA(driver, cuEventRecord, happened_.back()[0], on.compute);
      PLUMBLINE_CUDA(driver, cuStreamSynchronize, on.compute);
      // A device sends to each neighbour on a stream of its own.
      for (int neighbour = 0; neighbour < 2 && devices.all().size() > 1; ++neighbour)
        streams_.emplace_back(devices, device);
    }
  }
  ~Signals() { wait(); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  CUevent made(std::size_t device) const { return made_[device][0]; }
  /// Enqueues an op that waits for another device's event and is followed by one.
  void enqueue_between(CudaSpinOps& ops, std::size_t device) const {
    const CudaDriver& driver = devices_.driver();
    const CudaDevice& on = devices_.all()[device];
    const std::size_t other = (device + 1) % devices_.all().size();
    PLUMBLINE_CUDA(driver, cuCtxSetCurrent, on.context);
    PLUMBLINE_CUDA(driver, cuStreamWaitEvent, on.compute, happened_[other][0], 0);
    ops.enqueue(device);
    PLUMBLINE_CUDA(driver, cuEventRecord, made_[device][0], on.compute);
  }
  /// Copies what the device's last op has made to the next device, as a run does behind each op.
  void enqueue_copy(std::size_t device) const {
    const CudaDriver& driver = devices_.driver();
    const std::vector<CudaDevice>& all = devices_.all();
    const std::size_t next = (device + 1) % all.size();
    const CUstream stream = streams_[2 * device].get();
    PLUMBLINE_CUDA(driver, cuCtxSetCurrent, devices_.mover(device).context);
    PLUMBLINE_CUDA(driver, cuStreamWaitEvent, stream, made_[device][0], 0);
    copy_between(driver, {all[device], memory_[device].data()}, {all[next], memory_[next].data()},
                 kSmallCopy, stream);
  }
  /// Waits for all copies.
  void wait() const noexcept {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      devices_.driver().cuCtxSetCurrent(devices_.mover(i / 2).context);
      devices_.driver().cuStreamSynchronize(streams_[i].get());
    }
  }

 private:
  CudaDevices& devices_;
  std::vector<CudaEvents> made_;
  std::vector<CudaEvents> happened_;
  std::vector<CudaScratch> memory_;
  std::vector<CudaUrgentStream> streams_;
};

/// The time of each op in rows on all devices.
double time_in_rows(CudaDevices& devices, CudaStopwatch& stopwatch, CudaSpinOps& ops,
                    const Signals& signals, bool signalled) {
  const CudaDriver& driver = devices.driver();
  const std::vector<CudaDevice>& all = devices.all();
  const auto point = [&](std::size_t device) {
    return CudaPoint{&all[device], all[device].compute};
  };
  const double rows = stopwatch.time([&] {
    for (std::size_t i = 1; i < all.size(); ++i)
      signal(driver, point(0), signals.made(0), point(i));
    for (std::size_t i = 0; i < kOps; ++i) {
      for (std::size_t device = 0; device < all.size(); ++device) {
        if (signalled) {
          signals.enqueue_between(ops, device);
          signals.enqueue_copy(device);
        } else {
          ops.enqueue(device);
        }
      }
    }
  });
  signals.wait();
  for (const CudaDevice& device : all) {
    PLUMBLINE_CUDA(driver, cuCtxSetCurrent, device.context);
    PLUMBLINE_CUDA(driver, cuStreamSynchronize, device.compute);
  }
  return rows / static_cast<double>(kOps);
}

}  // namespace

CudaSpinOps::CudaSpinOps(CudaDevices& devices, CudaLaunching& launching, std::uint32_t kernels)
    : devices_(devices), launching_(launching), kernels_(kernels), written_(devices.all().size()) {
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
    graphs_.resize(devices.all().size());
    for (std::size_t device = 0; device < devices.all().size(); ++device) record(device);
  });
  if (!is_recorded) graphs_.clear();
}

void CudaSpinOps::let_write(std::size_t device, CUdeviceptr to, std::size_t bytes) {
  const CudaDevice& on = devices_.all()[device];
  written_[device] = {to, std::min(bytes, kMaxWritten)};
  PLUMBLINE_CUDA(devices_.driver(), cuCtxSetCurrent, on.context);
  launch(device);
  PLUMBLINE_CUDA(devices_.driver(), cuStreamSynchronize, on.compute);
  if (graphs_.empty()) return;
  if (!launching_.try_to(devices_.driver(), [&] { record(device); })) graphs_.clear();
}

void CudaSpinOps::record(std::size_t device) {
  const CudaDevice& on = devices_.all()[device];
  PLUMBLINE_CUDA(devices_.driver(), cuCtxSetCurrent, on.context);
  graphs_[device] = CudaRecording(devices_.driver(), on.compute, [&] { launch(device); });
}

void CudaSpinOps::launch(std::size_t device) {
  const CudaDevice& on = devices_.all()[device];
  const CudaQueue queue = bare_queue(devices_.driver(), on, on.compute);
  const auto all = static_cast<unsigned long long>(kNanoseconds);
  for (std::uint32_t i = 0; i < kernels_; ++i) {
    cuda::launch(queue, "plumbline_spin", {on.sms}, 64, 0,
                 all * (i + 1) / kernels_ - all * i / kernels_, times_[device].data());
  }
  const Written& written = written_[device];
  const auto count = static_cast<cuda::Count>(written.bytes / sizeof(float));
  if (count > 0) cuda::launch_over(queue, "plumbline_fill_f32", count, written.to, 0.0F, count);
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
  const std::vector<CudaDevice>& all = devices.all();
  const Signals signals(devices);
  CudaStopwatch stopwatch(devices, 0);
  CudaLaunchTimes times;
  {
    CudaSpinOps ops(devices, launching);
    const auto beyond = [](double time) { return std::max(0.0, time - CudaSpinOps::kNanoseconds); };
    times.alone = times.beside = beyond(time_of_spin_op(devices, 0, ops, false));
    if (all.size() < 2) return times;
    times.beside = beyond(time_in_rows(devices, stopwatch, ops, signals, false));
  }
  CudaSpinOps passes(devices, launching, CudaSpinOps::kKernelsOfPass);
  const double bare = time_in_rows(devices, stopwatch, passes, signals, false);
  const double signalled = time_in_rows(devices, stopwatch, passes, signals, true);
  times.signals = std::max(0.0, signalled - bare);
  const std::size_t hops = (kOps + all.size() - 1) / all.size() * all.size();
  const double ring = stopwatch.time([&] {  // whole rounds: the ring ends where it began
    for (std::size_t i = 0; i < hops; ++i) {
      const std::size_t from = i % all.size();
      const std::size_t to = (i + 1) % all.size();
      passes.enqueue(from);
      signal(devices.driver(), {&all[from], all[from].compute}, signals.made(from),
             {&all[to], all[to].compute});
    }
  });
  const double alone = time_of_spin_op(devices, 0, passes, true);
  times.crossing = std::max(0.0, ring / static_cast<double>(hops) - alone);
  return times;
}

double time_of_spin_op(CudaDevices& devices, std::size_t device, CudaSpinOps& ops, bool signals) {
  const Signals events(devices);
  CudaStopwatch stopwatch(devices, device);
  const double row = stopwatch.time([&] {
    for (std::size_t i = 0; i < kOps; ++i) {
      if (signals) {
        events.enqueue_between(ops, device);
      } else {
        ops.enqueue(device);
      }
    }
  });
  return row / static_cast<double>(kOps);
}

double time_of_stamps(CudaDevices& devices, CudaLaunching& launching,
                      const CudaLaunchTimes& launches, std::uint32_t at_once) {
  const CudaDriver& driver = devices.driver();
  const std::vector<CudaDevice>& all = devices.all();
  CudaSpinOps ops(devices, launching, CudaSpinOps::kKernelsOfPass);
  std::vector<CudaEvents> stamps;
  stamps.reserve(all.size());
  for (const CudaDevice& device : all) {
    PLUMBLINE_CUDA(driver, cuCtxSetCurrent, device.context);
    stamps.emplace_back(driver, 2 * kOps, CU_EVENT_DEFAULT);
  }
  const auto stamp = [&](std::size_t op) { return &stamps[op % all.size()]; };
  static_cast<void>(CudaStopwatch(devices, 0).time([&] {
    for (std::size_t op = 0; op < kOps; ++op) {
      const CudaDevice& on = all[op % all.size()];
      PLUMBLINE_CUDA(driver, cuCtxSetCurrent, on.context);
      if (op >= at_once) {
        PLUMBLINE_CUDA(driver, cuStreamWaitEvent, on.compute,
                       (*stamp(op - at_once))[2 * (op - at_once) + 1], 0);
      }
      PLUMBLINE_CUDA(driver, cuEventRecord, (*stamp(op))[2 * op], on.compute);
      ops.enqueue(op % all.size());
      PLUMBLINE_CUDA(driver, cuEventRecord, (*stamp(op))[2 * op + 1], on.compute);
    }
  }));
  std::vector<double> times;
  times.reserve(kOps);
  for (std::size_t op = 0; op < kOps; ++op) {
    const CudaDevice& on = all[op % all.size()];
    PLUMBLINE_CUDA(driver, cuCtxSetCurrent, on.context);
    PLUMBLINE_CUDA(driver, cuStreamSynchronize, on.compute);
    float milliseconds = 0;
    PLUMBLINE_CUDA(driver, cuEventElapsedTime, &milliseconds, (*stamp(op))[2 * op],
                   (*stamp(op))[2 * op + 1]);
    times.push_back(double{milliseconds} * 1e6);
  }
  std::sort(times.begin(), times.end());
  const double bare = time_of_spin_op(devices, 0, ops, /*signals=*/false) - launches.alone;
  return std::max(0.0, times[kOps / 2] - bare);
}

}  // namespace plumbline
