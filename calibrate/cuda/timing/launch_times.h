// The time of ops on CUDA devices beyond that of their kernels.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/driver/recording.h"
#include "calibrate/cuda/driver/scratch.h"

namespace plumbline {

/// Ops of a known time on each device, launched as a run launches its passes.
class CudaSpinOps {
 public:
  /// The time of an op by the device's clock, on all its SMs; about as long as an op of a network.
  static constexpr double kNanoseconds = 200'000;
  /// The kernels of an op that stands for a network's: a graph of several kernels ends later than
  /// one of a single kernel, which a driver launches as a bare kernel.
  static constexpr std::uint32_t kKernelsOfPass = 6;

  /// Ops of so many kernels, which share the time. The references outlive it. Errors: CudaError, as
  /// the next ones.
  CudaSpinOps(CudaDevices& devices, CudaLaunching& launching, std::uint32_t kernels = 1);

  /// The most bytes that an op writes. More would take time that is only taken off again.
  static constexpr std::size_t kMaxWritten = std::size_t{1} << 20;

  /// From now on the last kernel of the device's ops writes `bytes` bytes, at most kMaxWritten, as
  /// a pass writes what is sent. Their time is not a part of kNanoseconds. Requires: nothing is
  /// enqueued.
  void let_write(std::size_t device, CUdeviceptr to, std::size_t bytes);

  /// Enqueues an op on the device's compute stream. Leaves its context current.
  void enqueue(std::size_t device);

 private:
  struct Written {
    CUdeviceptr to = 0;
    std::size_t bytes = 0;
  };
  void launch(std::size_t device);
  void record(std::size_t device);

  CudaDevices& devices_;
  CudaLaunching& launching_;
  std::uint32_t kernels_;
  std::vector<CudaScratch> times_;  ///< The kernels' notes of when they ran.
  std::vector<Written> written_;
  std::vector<CudaRecording> graphs_;  ///< Empty if kernels are launched one by one.
};

/// Times in ns. An op of a run waits for an event, and is followed by one and by a copy; one of a
/// walk is not.
struct CudaLaunchTimes {
  double alone = 0;     ///< From an op to the next one of a device, while the others rest,
  double beside = 0;    ///< and while all devices work.
  double signals = 0;   ///< More of `beside` by that.
  double crossing = 0;  ///< From an op to the next one on another device, beyond all of these.
};

/// Measures the times with rows and rings of spinning ops, while each device has the streams that
/// it sends on in a run. Errors: CudaError.
CudaLaunchTimes measure_launch_times(CudaDevices& devices, CudaLaunching& launching);

/// The time in ns of each of the device's ops in a row, while the others rest; with a wait before
/// and an event behind each op if `signals`. Errors: CudaError.
double time_of_spin_op(CudaDevices& devices, std::size_t device, CudaSpinOps& ops, bool signals);

/// The time in ns that two events around an op add to it, beyond what launches.alone says, while
/// `at_once` devices work at a time, in turns. Errors: CudaError.
double time_of_stamps(CudaDevices& devices, CudaLaunching& launching,
                      const CudaLaunchTimes& launches, std::uint32_t at_once);

}  // namespace plumbline
