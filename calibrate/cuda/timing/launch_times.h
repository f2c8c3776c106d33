// What ops take on CUDA devices beside their kernels.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/driver/recording.h"
#include "calibrate/cuda/driver/scratch.h"

namespace plumbline {

/// An op of a known time on each device, launched as a run launches its passes.
class CudaSpinOps {
 public:
  /// By the device's clock, on all its SMs; as long as an op of a network.
  static constexpr double kNanoseconds = 200'000;

  /// What is given outlives it. Errors: CudaError, as the next.
  CudaSpinOps(CudaDevices& devices, CudaLaunching& launching);

  /// Enqueues one on the device's compute stream, whose context is current then.
  void enqueue(std::size_t device);

 private:
  void launch(std::size_t device);

  CudaDevices& devices_;
  std::vector<CudaScratch> times_;     ///< Where a kernel notes when it ran.
  std::vector<CudaRecording> graphs_;  ///< Empty where kernels are launched one by one.
};

/// In ns.
struct CudaLaunchTimes {
  double alone = 0;     ///< From an op to the next one of a device, while all others rest,
  double beside = 0;    ///< and while all work.
  double crossing = 0;  ///< From an op to the next one on another device, beyond `alone`.
};

/// From rows of spinning ops without an event between them: events would take time of their own,
/// the more the more devices work. Errors: CudaError.
CudaLaunchTimes measure_launch_times(CudaDevices& devices, CudaLaunching& launching);

}  // namespace plumbline
