// Threads take the next number from a shared counter.
//
// SPDX-License-Identifier: MIT
#include "base/parallel.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace plumbline {

void for_each_parallel(std::uint64_t count, unsigned jobs, const std::atomic<bool>& stop,
                       const std::function<void(std::uint64_t)>& work) {
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto draw = [&] {
    while (!stop && !failed) {
      const std::uint64_t mine = next.fetch_add(1);
      if (mine >= count) return;
      try {
        work(mine);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failed.exchange(true)) failure = std::current_exception();
      }
    }
  };
  const std::uint64_t threads = std::min<std::uint64_t>(jobs, count);
  std::vector<std::thread> others;
  others.reserve(threads);
  for (std::uint64_t i = 1; i < threads; ++i) others.emplace_back(draw);
  draw();
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest value that mallopt accepts
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 16 << 20);
#endif
}

unsigned available_cores() { return std::max(std::thread::hardware_concurrency(), 1U); }

}  // namespace plumbline
