// What a fake device runs in place of a kernel. SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace plumbline::test {

/// As cuLaunchKernel has it. `arguments` point to the arguments of the kernel, in order.
struct FakeLaunch {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void** arguments;
  unsigned first_sm;  ///< It runs on `sms` SMs from this one on.
  unsigned sms;
};

/// A kernel that runs on the host, on host memory.
struct FakeKernel {
  std::vector<std::size_t> argument_sizes;  ///< In bytes; a launch later needs copies of them.
  std::function<void(const FakeLaunch&)> run;
};

}  // namespace plumbline::test
