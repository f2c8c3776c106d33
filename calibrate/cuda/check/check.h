// Checks what the backend relies on: each group of SMs keeps to itself, and all CUDA devices work
// at the same time.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "calibrate/cuda/check.h"
#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/driver/recording.h"

namespace plumbline {

/// The observations of one device.
struct CudaDeviceProof {
  std::set<std::uint32_t> seen;   ///< SMs on which its kernels ran.
  std::set<std::uint32_t> graph;  ///< SMs of the same kernel in a captured graph.
  std::uint64_t begin = 0;        ///< Start of its part of the joint spin; ns of its GPU's clock.
  std::uint64_t end = 0;
};

/// The observations of all devices, and the faults found.
struct CudaProof {
  std::vector<CudaDeviceProof> devices;
  /// The time in which all devices spun together; nanoseconds. 0 unless all are parts of one GPU:
  /// the clocks of several GPUs cannot be compared.
  std::uint64_t together = 0;
  /// One sentence each; empty = the devices can be counted on.
  std::vector<std::string> failures;
};

/// How long each device spins in the joint spin: 5 ms, far above the time that the launches take.
inline constexpr std::uint64_t kSpinNanoseconds = 5'000'000;

/// Launches kernels on every device that note where and when they ran. Failures: a device that runs
/// on more SMs than it has; an SM that two devices share; a graph, captured on a device's stream,
/// that runs on SMs outside its device; devices of one GPU that spend less than half of the joint
/// spin together. Errors: CudaError.
CudaProof prove_cuda_devices(CudaDevices& devices);

/// Whether passes can be recorded and replayed on these devices. Graphs on a part of a GPU are
/// checked, as they might leave their part. Errors: CudaError.
CudaLaunching launching_on(CudaDevices& devices);

/// Opens `count` devices as open_cuda_devices does, and proves them. Errors: the errors of
/// open_cuda_devices; CudaError.
Result<CudaCheck> check_cuda_devices(const CudaDriver& driver, std::uint32_t count, bool one_gpu);

/// One line per library that the backend can use: its version and path, or all places that were
/// searched.
std::string cuda_library_text();

}  // namespace plumbline
