// How far the devices of a run have come, and which of them hangs.
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

/// A device has not come on for too long.
struct Hang {
  std::uint32_t slot = 0;
  RealTime for_so_long = 0;
};

/// The device whose context is current: an error that comes is its.
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
  /// Something else makes a context of this device current.
  void is_at(std::uint32_t slot) { slot_ = slot; }

 private:
  CudaDevices& devices_;
  std::uint32_t slot_ = 0;
};

/// How far each device has come in an iteration, by events behind the steps that others wait for.
class DeviceProgress {
 public:
  DeviceProgress(CurrentDevice& current, const OpGraph& graph, const CudaProgram& program);

  /// Makes the step's event, in the context that is current. Errors: CudaError, as the next two.
  void make_signal(std::uint32_t step);

  /// Is to be recorded behind the step.
  CUevent signal(std::uint32_t step) const { return signals_[step][0]; }

  /// Whether all before the event has ended.
  bool has_ended(CUevent event) const;

  /// Nothing of the iteration has ended.
  void restart() {
    for (OnDevice& one : on_device_) one.ended = 0;
  }

  /// All of it has.
  void end_all();

  /// Looks how far a device has come; returns whether that is further than before.
  bool come_on(std::uint32_t slot);

  /// The device that has stood at an op for too long, if nothing has come on for so long: the one
  /// that stands at the longest op, which may take 20 times its predicted time beyond the patience.
  std::optional<Hang> find_hang(RealTime still, RealTime patience) const;

  /// Where every device was when it was last looked at; before all are prepared, where it starts.
  std::vector<DeviceStand> stands(bool is_prepared) const;

 private:
  struct OnDevice {
    std::vector<std::uint32_t> steps;  ///< Of its compute stream, in order.
    std::size_t ended = 0;             ///< So many of them are known to have ended.
    std::uint32_t awaits = kNone32;    ///< Behind all of them: the step that has not come yet.
  };
  /// What has not come yet of that without which a device's iteration is not over.
  std::uint32_t first_awaited(std::uint32_t slot);

  /// `ended`: of each step.
  DeviceStand stand_of(const OnDevice& mine, const std::vector<bool>& ended) const;

  /// Of what a step waits for, what has not ended: an op, else a copy that is not on its way.
  std::optional<std::uint32_t> lacks(const CudaStep& step, const std::vector<bool>& ended) const;

  /// Whether all ops have ended that a copy stands behind, itself or behind other copies and sums.
  bool is_on_its_way(std::uint32_t copy, const std::vector<bool>& ended) const;

  CurrentDevice& current_;
  const OpGraph& graph_;
  const CudaProgram& program_;
  std::vector<OnDevice> on_device_;
  std::vector<CudaEvents> signals_;  ///< Of each step that others wait for.
};

}  // namespace plumbline
