// How long something takes that a library could do in several ways.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include "calibrate/cuda/driver/queue.h"
#include "calibrate/cuda/driver/scratch.h"

namespace plumbline {

/// The median of several, after some that do not count; in milliseconds of the queue's device, for
/// which it waits. `enqueue` enqueues it once. Errors: CudaError, and those of `enqueue`.
double median_milliseconds(const CudaQueue& queue, const std::function<void()>& enqueue);

/// Whether something that takes `time` is chosen before what takes `min` and was asked first:
/// what differs by less differs from one calibration to the next.
inline bool is_clearly_faster(double time, double min) { return time < 0.98 * min; }

/// What a queue's device runs at: a kernel of 0.2 ms counts its cycles.
class CudaClock {
 public:
  /// Enqueues it. Errors: CudaError, as the next.
  void count(const CudaQueue& queue);
  /// Waits for it; in MHz.
  double mhz(const CudaQueue& queue) const;

 private:
  CudaScratch counted_;  ///< Cycles and nanoseconds.
};

}  // namespace plumbline
