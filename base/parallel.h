// The same work on many things, on several threads; what one of them throws, for whoever joins it.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>

namespace plumbline {

/// The first exception that leaves one of several threads, for the thread that waits for them.
class FirstException {
 public:
  /// Keeps the exception that is being handled, on any thread.
  void keep_current();
  /// Whether there is one; on any thread.
  bool is_kept() const { return is_kept_; }
  /// Throws the kept exception, if there is one, and keeps none from then on.
  void rethrow();

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
  std::atomic<bool> is_kept_{false};
};

/// Calls work(i) for every i below `count` on `jobs` threads. The calls begin in ascending order of
/// i. It ends when all are done or `stop` is set; calls that have begun are finished. With one job
/// it uses only the calling thread. An exception of `work` stops all and is rethrown. Requires:
/// jobs >= 1; several threads may call `work` at once.
void for_each_parallel(std::uint64_t count, unsigned jobs, const std::atomic<bool>& stop,
                       const std::function<void(std::uint64_t)>& work);

/// Keeps freed memory in this process from now on, up to 1 GiB. Many predictions in a row would
/// else get the pages of their graphs from the system again each time. Does nothing without glibc.
void keep_freed_memory();

/// The number of threads that this process may run at once; at least 1.
unsigned available_cores();

}  // namespace plumbline
