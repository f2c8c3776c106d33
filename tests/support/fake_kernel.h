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
  void** arguments = nullptr;  ///< A pointer to each, as they were when it was enqueued.
  unsigned first_sm = 0;       ///< It may run on SMs first_sm to first_sm + sms - 1 of its GPU.
  unsigned sms = 0;
  std::uint64_t begin = 0;  ///< Nanoseconds of the fake clock.
};

/// What a `__global__` function is on the fake device. Pointers of the device are pointers of the
/// host.
struct FakeKernel {
  std::vector<std::size_t> sizes;  ///< Of the arguments, in bytes.
  std::function<void(const FakeLaunch&)> run;
  /// How long a launch takes in nanoseconds; null = as long as every kernel (FakeOptions).
  std::function<std::uint64_t(const FakeLaunch&)> duration;
};

/// By the names of the `extern "C"` functions.
using FakeKernels = std::map<std::string, FakeKernel, std::less<>>;

}  // namespace plumbline
