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
  /// From the handler that caught it, on any thread.
  void keep_current();
  /// Whether there is one; on any thread.
  bool is_kept() const { return is_kept_; }
  /// Throws it where there is one, and holds none from then on.
  void rethrow();

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
  std::atomic<bool> is_kept_{false};
};

/// Calls work(i) for every i below `count`, in ascending order of their beginnings, on `jobs`
/// threads, until all are done or `stop` is set; what has begun is ended. With one job on the
/// calling thread alone. An exception of `work` stops all and is thrown on.
/// Requires: jobs >= 1; `work` may be called by several threads at once.
void for_each_parallel(std::uint64_t count, unsigned jobs, const std::atomic<bool>& stop,
                       const std::function<void(std::uint64_t)>& work);

/// From now on memory that is freed stays with this process, up to 1 GiB: for many predictions,
/// each of which would else take the pages of its graphs from the system anew. Does nothing without
/// glibc.
void keep_freed_memory();

/// How many threads this process may run at once; at least 1.
unsigned available_cores();

}  // namespace plumbline
