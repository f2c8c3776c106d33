// The work that other devices do beside a transfer.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/driver/events.h"
#include "calibrate/cuda/timing/stage_timer.h"

namespace plumbline {

/// Passes of a network, forward and backward in turn, on devices that take no part in what is timed
/// meanwhile. They are replayed as in a run, and load the memory as it does.
class CudaWorkBeside {
 public:
  /// The walkers are those of the last devices, at least one. They outlive this object, as do the
  /// devices. Runs each pass once, and times it. Errors: CudaError, as the next ones.
  CudaWorkBeside(CudaDevices& devices, std::vector<std::unique_ptr<CudaStageTimer>>& walkers);
  ~CudaWorkBeside();
  CudaWorkBeside(const CudaWorkBeside&) = delete;
  CudaWorkBeside& operator=(const CudaWorkBeside&) = delete;

  /// The number of devices that can work.
  std::uint32_t workers() const { return static_cast<std::uint32_t>(walkers_.size()); }
  /// Whether so many of these devices can have passes enqueued for so long: a stream takes a number
  /// of launches.
  bool lasts(std::uint32_t workers, double nanoseconds) const;
  /// Enqueues passes for at least `nanoseconds` on so many of these devices. They begin when the
  /// work that is now on `first`'s compute stream has ended. `first` is another device. Requires: 1
  /// <= workers <= workers(); lasts(workers, nanoseconds); what was enqueued before has
  /// ended.
  void enqueue(std::size_t first, std::uint32_t workers, double nanoseconds) const;
  /// Waits until all passes have ended.
  void wait() const noexcept;

 private:
  CudaDevices& devices_;
  std::vector<std::unique_ptr<CudaStageTimer>>& walkers_;
  std::vector<double> turn_times_;  ///< In ns, while the others rest; one per walker.
  std::vector<CudaEvents> begins_;  ///< One for each device that does not walk.
};

}  // namespace plumbline
