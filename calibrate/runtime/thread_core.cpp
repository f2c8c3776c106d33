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

std::vector<int> cores_of_thread() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &usable)) cores.push_back(core);
  }
  return cores;
}

void let_thread_use(const std::vector<int>& cores) {
  if (cores.empty()) return;
  cpu_set_t own;
  CPU_ZERO(&own);
  for (const int core : cores) CPU_SET(core, &own);
  pthread_setaffinity_np(pthread_self(), sizeof own, &own);
}

RealTime thread_cpu_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return RealTime{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace plumbline
