// Times of work on streams, by a device's own clock.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/driver/events.h"
#include "calibrate/cuda/driver/gate.h"

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
  /// back. Where the host is late again and again, because so much work fills the queues, the
  /// device is not held back.
  double time(const std::function<void()>& enqueue);
  /// The same, or nothing where the host is late again and again. `before` is called before each
  /// time, when nothing is held back.
  std::optional<double> time_behind_gate(
      const std::function<void()>& enqueue, const std::function<void()>& before = [] {});

 private:
  /// The time of the work; nothing where the host was late, or where the gate does not hold.
  std::optional<double> time_once(const std::function<void()>& enqueue, bool holds);

  const CudaDriver& driver_;
  const CudaDevice& device_;
  CudaEvents events_;
  CudaGate gate_;
};

}  // namespace plumbline
