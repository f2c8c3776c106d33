// Times of work on streams, by a device's own clock.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/driver/events.h"
#include "calibrate/cuda/driver/scratch.h"

namespace plumbline {

/// A stream, and whose context it has.
struct CudaPoint {
  const CudaDevice* on = nullptr;
  CUstream stream = nullptr;
};

/// The second stream waits for what the first has so far; its context is current then. The event is
/// of the first one's context. Errors: CudaError.
void signal(const CudaDriver& driver, CudaPoint first, CUevent event, CudaPoint second);

/// Times what is enqueued behind the compute stream of one device, and ends there.
class CudaStopwatch {
 public:
  /// Errors: CudaError, as the next.
  CudaStopwatch(CudaDevices& devices, std::size_t device);

  /// The median time of the work, in ns, each time enqueued whole while the device is held back.
  double time(const std::function<void()>& enqueue);

 private:
  /// How long the host enqueued, with a reserve, and what the work took; behind a kernel of `wait`.
  std::pair<std::int64_t, double> time_once(const std::function<void()>& enqueue,
                                            std::int64_t wait);

  const CudaDriver& driver_;
  const CudaDevice& device_;
  CudaEvents events_;
  CudaScratch waited_;
};

}  // namespace plumbline
