// Whether this machine's CUDA devices do what the backend counts on: each group of SMs keeps to
// itself, and all work at the same time.
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

/// What was seen of one device.
struct CudaDeviceProof {
  std::set<std::uint32_t> seen;   ///< SMs on which its kernels ran.
  std::set<std::uint32_t> graph;  ///< SMs on which the same kernel ran in a captured graph.
  std::uint64_t begin = 0;  ///< Of its part of the joint spin; nanoseconds of its GPU's clock.
  std::uint64_t end = 0;
};

/// What was seen of all, and what is wrong with it.
struct CudaProof {
  std::vector<CudaDeviceProof> devices;
  /// In which all devices were seen to spin; nanoseconds. 0 where they are not parts of one GPU:
  /// the clocks of several cannot be compared.
  std::uint64_t together = 0;
  /// One sentence each; empty = the devices can be counted on.
  std::vector<std::string> failures;
};

/// How long each device spins in the joint spin: 5 ms, far above the time that the launches take.
inline constexpr std::uint64_t kSpinNanoseconds = 5'000'000;

/// Launches kernels on every device that say where and when they ran. Wrong is: a device on more
/// SMs than it has; an SM that two devices share; a graph, captured on a device's stream, on SMs
/// that are not the device's; devices of one GPU that spend less than half of the joint spin
/// together. Errors: CudaError.
CudaProof prove_cuda_devices(CudaDevices& devices);

/// Whether passes can be recorded and replayed on these devices: the graphs of parts of a GPU are
/// looked at, as they might leave their part. Errors: CudaError.
CudaLaunching launching_on(CudaDevices& devices);

/// Opens `count` devices as open_cuda_devices does, and proves them. Errors: those of
/// open_cuda_devices; CudaError.
Result<CudaCheck> check_cuda_devices(const CudaDriver& driver, std::uint32_t count, bool one_gpu);

/// A line for each library that the backend can use: its version and path, or all the places that
/// were looked at.
std::string cuda_library_text();

}  // namespace plumbline
