// Timing of work that a library can do in several ways.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include "calibrate/cuda/driver/events.h"
#include "calibrate/cuda/driver/queue.h"
#include "calibrate/cuda/driver/scratch.h"

namespace plumbline {

/// Times work between two events, some executions at a time. None begins before all of these are
/// enqueued: otherwise work shorter than a launch by the host would seem as long as the launch.
class CudaSpan {
 public:
  /// `queue` is copied; its objects outlive this. Errors: CudaError, as the next.
  explicit CudaSpan(const CudaQueue& queue);

  /// The most executions behind one head start of the host.
  static constexpr int kTogether = 8;
  /// The time of so many executions, in milliseconds of the queue's device. Waits for it. Requires:
  /// 1 <= executions <= kTogether. Errors: also those of `enqueue`, which enqueues the work once.
  double milliseconds(int executions, const std::function<void()>& enqueue) const;

 private:
  void back_to_device() const;

  CudaQueue queue_;
  CudaEvents events_;
  CudaScratch spun_;
};

/// The median time of several executions, after some that do not count; in milliseconds of the
/// queue's device. Waits for the device. `enqueue` enqueues the work once. Errors: CudaError, and
/// the errors of `enqueue`.
double median_milliseconds(const CudaQueue& queue, const std::function<void()>& enqueue);

/// Whether an algorithm of `time` replaces an earlier one of `min`. Smaller differences change from
/// one calibration to the next.
inline bool is_clearly_faster(double time, double min) { return time < 0.98 * min; }

/// The clock rate of a queue's device: a kernel of 0.2 ms counts its cycles.
class CudaClock {
 public:
  /// Enqueues the kernel. Errors: CudaError, as the next.
  void count(const CudaQueue& queue);
  /// Waits for the kernel; in MHz.
  double mhz(const CudaQueue& queue) const;

 private:
  CudaScratch counted_;  ///< Cycles and nanoseconds.
};

}  // namespace plumbline
