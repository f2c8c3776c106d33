// Linux's clocks and sleeps.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/clock.h"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <ctime>

namespace plumbline {
namespace {

constexpr RealTime kSpin = 100'000;  ///< Sleeping stops this long before the end.
/// Shorter sleeps do not pay. Threads that wake up every few us take the cores from threads that
/// yield. On Linux 6.18 with more threads than cores an op of 90 us then took milliseconds.
constexpr RealTime kShortestSleep = 50'000;
constexpr RealTime kLongestSleep = 20'000'000;  ///< So that a stop is noticed.

void sleep_until(RealTime time) {
  constexpr RealTime second = 1'000'000'000;
  timespec at{};
  at.tv_sec = static_cast<time_t>(time / second);
  at.tv_nsec = static_cast<long>(time % second);
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
}

}  // namespace

RealTime now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void pause_before(RealTime earliest) {
  const RealTime time = now();
  if (earliest - time > kSpin + kShortestSleep) {
    sleep_until(std::min(earliest - kSpin, time + kLongestSleep));
  } else {
    sched_yield();
  }
}

void wait_until(RealTime deadline, const std::atomic<bool>& stop) {
  while (now() < deadline && !stop.load(std::memory_order_relaxed)) pause_before(deadline);
}

void wake_exactly() { prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }

unsigned usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return static_cast<unsigned>(std::max(1, CPU_COUNT(&cores)));
}

}  // namespace plumbline
