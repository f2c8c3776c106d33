// Whether this machine has other work.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "calibrate/runtime/clock.h"
#include "calibrate/runtime/thread_core.h"

namespace plumbline::test {

/// Whether threads that want all cores for 50 ms miss more than a tenth of that time. Then times
/// that are too long prove nothing.
inline bool has_other_work() {
  constexpr RealTime kTime = 50'000'000;
  std::atomic<RealTime> used{0};
  std::vector<std::thread> threads;
  threads.reserve(usable_cores());
  for (unsigned i = 0; i < usable_cores(); ++i) {
    threads.emplace_back([&] {
      const RealTime before = thread_cpu_time();
      const RealTime end = now() + kTime;
      while (now() < end) {
      }
      used += thread_cpu_time() - before;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return used < kTime * static_cast<RealTime>(usable_cores()) * 9 / 10;
}

}  // namespace plumbline::test
