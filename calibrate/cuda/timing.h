// How long something takes that a library could do in several ways.
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include "calibrate/cuda/queue.h"

namespace plumbline {

/// The median of several, after some that do not count; in milliseconds of the queue's device, for
/// which it waits. `enqueue` enqueues it once. Errors: CudaError, and those of `enqueue`.
double median_milliseconds(const CudaQueue& queue, const std::function<void()>& enqueue);

}  // namespace plumbline
