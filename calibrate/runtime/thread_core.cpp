// Linux's threads.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/thread_core.h"

#include <pthread.h>
#include <sched.h>

#include <ctime>

namespace plumbline {

void pin_to_core(std::uint32_t device, std::uint32_t devices) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return;
  if (static_cast<std::uint32_t>(CPU_COUNT(&usable)) < devices) return;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &usable) || device-- > 0) continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(core, &own);
    pthread_setaffinity_np(pthread_self(), sizeof own, &own);
    return;
  }
}

RealTime thread_cpu_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return RealTime{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace plumbline
