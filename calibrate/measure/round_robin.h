// Devices that take turns.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "calibrate/runtime/clock.h"

namespace plumbline {

/// Lets `at_once` threads work at once, first come, first served. Every begin() that returned true
/// is followed by end(). Waiting threads wait as devices do in a run: they sleep while no turn can
/// be expected.
class RoundRobin {
 public:
  /// Requires: nobody waits or works.
  void restart(std::uint32_t at_once) {
    taken_ = 0;
    free_ = at_once;
    earliest_ = 0;
  }

  /// Waits for a turn, which will take about `expected`. Returns false where `stop` was set.
  bool begin(RealTime expected, const std::atomic<bool>& stop) {
    if (stop.load(std::memory_order_relaxed)) return false;
    const std::uint64_t mine = taken_.fetch_add(1, std::memory_order_relaxed);
    while (free_.load(std::memory_order_acquire) <= mine) {
      if (stop.load(std::memory_order_relaxed)) return false;
      pause_before(earliest_.load(std::memory_order_relaxed));
    }
    earliest_.store(now() + expected, std::memory_order_relaxed);
    return true;
  }
  void end() { free_.fetch_add(1, std::memory_order_release); }

 private:
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::uint64_t> free_{1};  ///< Turns below this number may begin.
  std::atomic<RealTime> earliest_{0};   ///< When the turn that began last is expected to end.
};

}  // namespace plumbline
