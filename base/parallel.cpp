// A counter that threads draw numbers from, and the first exception of one of them.
//
// SPDX-License-Identifier: MIT
#include "base/parallel.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace plumbline {

void FirstException::keep_current() {
  const std::lock_guard lock(mutex_);
  if (is_kept_.exchange(true)) return;
  first_ = std::current_exception();
}

void FirstException::rethrow() {
  std::exception_ptr first;
  {
    const std::lock_guard lock(mutex_);
    first = std::exchange(first_, nullptr);
    is_kept_ = false;
  }
  if (first) std::rethrow_exception(first);
}

void for_each_parallel(std::uint64_t count, unsigned jobs, const std::atomic<bool>& stop,
                       const std::function<void(std::uint64_t)>& work) {
  std::atomic<std::uint64_t> next{0};
  FirstException thrown;
  const auto draw = [&] {
    while (!stop && !thrown.is_kept()) {
      const std::uint64_t mine = next.fetch_add(1);
      if (mine >= count) return;
      try {
        work(mine);
      } catch (...) {
        thrown.keep_current();
      }
    }
  };
  const auto threads = static_cast<std::size_t>(std::min<std::uint64_t>(jobs, count));
  std::vector<std::thread> others;
  others.reserve(threads);
  try {
    for (std::size_t i = 1; i < threads; ++i) others.emplace_back(draw);
  } catch (...) {  // of a thread that cannot begin
    thrown.keep_current();
  }
  draw();
  for (std::thread& other : others) other.join();
  thrown.rethrow();
}

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest value that mallopt accepts
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 16 << 20);
#endif
}

unsigned available_cores() {
#ifdef __EMSCRIPTEN__
  return 1;  // the module has no threads
#else
  return std::max(std::thread::hardware_concurrency(), 1U);
#endif
}

}  // namespace plumbline
