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

/// A stream, and the device of its context.
struct CudaPoint {
  const CudaDevice* on = nullptr;
  CUstream stream = nullptr;
};

/// Lets the second stream wait for the work of the first one so far. Leaves the second stream's
/// context current. The event belongs to the first one's context. Errors: CudaError.
void signal(const CudaDriver& driver, CudaPoint first, CUevent event, CudaPoint second);

/// Times work that begins and ends on the compute stream of one device.
class CudaStopwatch {
 public:
  /// Errors: CudaError, as the next.
  CudaStopwatch(CudaDevices& devices, std::size_t device);

  /// The median time of the work, in ns. Each time all of it is enqueued while the device is held
  /// back.
  double time(const std::function<void()>& enqueue);

 private:
  /// The host's time to enqueue, with a reserve, and the time of the work, behind a kernel of
  /// `wait` ns.
  std::pair<std::int64_t, double> time_once(const std::function<void()>& enqueue,
                                            std::int64_t wait);

  const CudaDriver& driver_;
  const CudaDevice& device_;
  CudaEvents events_;
  CudaScratch waited_;
};

}  // namespace plumbline
