// Streams that are held back while the host enqueues on them.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstdint>

#include "calibrate/cuda/driver/events.h"
#include "calibrate/cuda/driver/launch.h"
#include "calibrate/cuda/driver/scratch.h"

namespace plumbline {

/// A kernel that spins on one stream, and an event behind it for other streams to wait for. The
/// gate opens by itself, so a host that is blocked by full queues goes on.
class CudaGate {
 public:
  /// The time to keep the gate closed, for enqueuing that takes `enqueuing` nanoseconds of the
  /// host. It is a little longer, but at most the time that a host may run ahead of devices.
  static std::int64_t time_for(std::int64_t enqueuing) {
    constexpr std::int64_t longest = 500'000'000;
    return std::min(enqueuing * 5 / 4 + 50'000, longest);
  }

  /// Work that is enqueued on the queue after this begins in so many nanoseconds; 0 = at once.
  /// Requires: always the same device, with its context current. Errors: CudaError.
  void close(const CudaQueue& queue, std::int64_t nanoseconds) {
    const CudaDriver& driver = *queue.driver;
    if (opens_.all().empty()) {
      opens_ = CudaEvents(driver, 1, CU_EVENT_DISABLE_TIMING);
      times_ = CudaScratch(driver, 2 * sizeof(std::uint64_t));
    }
    if (nanoseconds > 0) {
      cuda::launch(queue, "plumbline_spin", {}, 1, 0, static_cast<unsigned long long>(nanoseconds),
                   times_.data());
    }
    PLUMBLINE_CUDA(driver, cuEventRecord, opens_[0], queue.stream);
  }
  /// The event for other streams that are to begin together with that queue.
  CUevent opens() const { return opens_[0]; }

 private:
  CudaEvents opens_;
  CudaScratch times_;  ///< The kernel's notes of when it ran.
};

}  // namespace plumbline
