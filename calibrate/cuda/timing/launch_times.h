// The time of ops on CUDA devices beyond that of their kernels.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
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

  /// The arguments outlive it. Errors: CudaError, as the next.
  CudaSpinOps(CudaDevices& devices, CudaLaunching& launching);

  /// Enqueues an op on the device's compute stream. Leaves its context current.
  void enqueue(std::size_t device);

 private:
  void launch(std::size_t device);

  CudaDevices& devices_;
  std::vector<CudaScratch> times_;     ///< The kernels' notes of when they ran.
  std::vector<CudaRecording> graphs_;  ///< Empty if kernels are launched one by one.
};

/// Times in ns.
struct CudaLaunchTimes {
  double alone = 0;     ///< From an op to the next one of a device, while the others rest,
  double beside = 0;    ///< and while all devices work.
  double crossing = 0;  ///< From an op to the next one on another device, beyond `alone`.
};

/// Measures the times with rows of spinning ops without events between them. Events would take time
/// of their own, and more of it with more devices at work. Errors: CudaError.
CudaLaunchTimes measure_launch_times(CudaDevices& devices, CudaLaunching& launching);

}  // namespace plumbline
