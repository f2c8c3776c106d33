// Kernels that a fake device runs on the host.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace plumbline {

/// One launch of a kernel, at the moment when it runs.
struct FakeLaunch {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;   ///< Dynamic shared memory.
  void** arguments = nullptr;  ///< A pointer to each, with the values at enqueuing.
  unsigned first_sm = 0;       ///< It may run on SMs first_sm to first_sm + sms - 1 of its GPU.
  unsigned sms = 0;
  std::uint64_t begin = 0;  ///< Nanoseconds of the fake clock.
};

/// A `__global__` function on the fake device. Device pointers are host pointers.
struct FakeKernel {
  std::vector<std::size_t> sizes;  ///< Sizes of the arguments, in bytes.
  std::function<void(const FakeLaunch&)> run;
  /// The time of a launch in nanoseconds; null = kernel_nanoseconds of FakeOptions.
  std::function<std::uint64_t(const FakeLaunch&)> duration;
  /// Whether a launch still waits for the host; null = none does. Where it still does when it runs,
  /// the host has let it wait too long.
  std::function<bool(const FakeLaunch&)> holds = nullptr;
};

/// Maps names of `extern "C"` functions to kernels.
using FakeKernels = std::map<std::string, FakeKernel, std::less<>>;

}  // namespace plumbline
