// The progress of a run's devices, and the detection of a device that hangs.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/driver/events.h"
#include "calibrate/cuda/program/program.h"
#include "calibrate/runtime/clock.h"
#include "calibrate/runtime/run_record.h"
#include "sim/graph/op_graph.h"

namespace plumbline {

/// A device that has made no progress for too long.
struct Hang {
  std::uint32_t slot = 0;
  RealTime for_so_long = 0;
};

/// The device whose context is current. Errors are attributed to it.
class CurrentDevice {
 public:
  explicit CurrentDevice(CudaDevices& devices) : devices_(devices) {}

  const CudaDriver& driver() const { return devices_.driver(); }
  std::uint32_t slot() const { return slot_; }

  /// Makes its context current. Errors: CudaError.
  void use(std::uint32_t slot) {
    slot_ = slot;
    PLUMBLINE_CUDA(driver(), cuCtxSetCurrent, devices_.all()[slot].context);
  }
  /// Notes that other code makes a context of this device current.
  void is_at(std::uint32_t slot) { slot_ = slot; }

 private:
  CudaDevices& devices_;
  std::uint32_t slot_ = 0;
};

/// The progress of each device in an iteration, from events behind the steps that others wait for.
class DeviceProgress {
 public:
  DeviceProgress(CurrentDevice& current, const OpGraph& graph, const CudaProgram& program);

  /// Makes the step's event, in the current context. Errors: CudaError.
  void make_signal(std::uint32_t step);

  /// The event to record behind the step.
  CUevent signal(std::uint32_t step) const { return signals_[step][0]; }

  /// Whether all work before the event has ended. Errors: CudaError.
  bool has_ended(CUevent event) const;

  /// Begins an iteration: none of its steps has ended.
  void restart() {
    for (OnDevice& one : on_device_) one.ended = 0;
  }

  /// Ends an iteration: all of its steps have ended.
  void end_all();

  /// Updates the progress of a device. Returns whether there was any. Errors: CudaError.
  bool come_on(std::uint32_t slot);

  /// The device that hangs, if there has been no progress for `still` and that is too long. The
  /// limit is `patience` plus 20 times the longest predicted time of the present ops. The device
  /// that runs that longest op is the one that hangs.
  std::optional<Hang> find_hang(RealTime still, RealTime patience) const;

  /// The state of every device when its progress was last updated. Before all are prepared, every
  /// device starts.
  std::vector<DeviceStand> stands(bool is_prepared) const;

 private:
  struct OnDevice {
    std::vector<std::uint32_t> steps;  ///< Those of its compute stream, in order.
    std::size_t ended = 0;             ///< The number of them known to have ended.
    std::uint32_t awaits = kNone32;    ///< After all of them, the awaited step that has not ended.
  };
  /// The first step that has not ended among those that a device waits for before its iteration is
  /// over. kNone32 = none.
  std::uint32_t first_awaited(std::uint32_t slot);

  /// `ended` has an entry for each step.
  DeviceStand stand_of(const OnDevice& mine, const std::vector<bool>& ended) const;

  /// The step that `step` still waits for: an op that has not ended, else a copy that is not on its
  /// way.
  std::optional<std::uint32_t> lacks(const CudaStep& step, const std::vector<bool>& ended) const;

  /// Whether all ops that a copy waits for have ended, also those behind other copies and sums.
  bool is_on_its_way(std::uint32_t copy, const std::vector<bool>& ended) const;

  CurrentDevice& current_;
  const OpGraph& graph_;
  const CudaProgram& program_;
  std::vector<OnDevice> on_device_;
  std::vector<CudaEvents> signals_;  ///< One per step; empty if no step waits for it.
};

}  // namespace plumbline
