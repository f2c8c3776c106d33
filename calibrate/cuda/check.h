// Whether this machine's CUDA devices do what the backend counts on: each group of SMs keeps to
// itself, and all work at the same time. SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/cuda/devices.h"

namespace plumbline {

/// What was seen of one device.
struct CudaDeviceProof {
  std::set<std::uint32_t> seen;   ///< SMs on which its kernels ran.
  std::set<std::uint32_t> graph;  ///< SMs on which the same kernel of a captured graph ran.
  std::uint64_t begin = 0;  ///< Of its part of the joint spin; nanoseconds of the GPU's clock.
  std::uint64_t end = 0;
};

/// What was seen of all, and what is wrong with it.
struct CudaProof {
  std::vector<CudaDeviceProof> devices;
  /// One sentence each; empty = the devices can be counted on.
  std::vector<std::string> failures;
};

/// How long the joint spin is: 5 ms, far above the launches of all devices.
inline constexpr std::uint64_t kSpinNanoseconds = 5'000'000;

/// Launches kernels on every device that say where and when they ran. Errors: CudaError.
CudaProof prove_cuda_devices(CudaDevices& devices);

/// What `calibrate --backend cuda --check` prints: devices, libraries, what was proven.
struct CudaCheck {
  std::string text;
  bool passed = false;
};

/// Opens `count` devices as open_cuda_devices does and proves them. Errors: those of
/// open_cuda_devices; CudaError.
Result<CudaCheck> check_cuda_devices(const CudaDriver& driver, std::uint32_t count, bool one_gpu);

/// The libraries' paragraph: where each is, or all the places that were looked at.
std::string cuda_library_text();

}  // namespace plumbline
