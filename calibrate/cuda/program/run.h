// Running an op graph on CUDA devices: one thread enqueues, the devices work by themselves.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "calibrate/cuda/backend.h"
#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/driver/recording.h"
#include "calibrate/cuda/libraries/device_libraries.h"
#include "calibrate/cuda/program/trainer.h"
#include "calibrate/runtime/run_plan.h"
#include "calibrate/runtime/run_record.h"

namespace plumbline {

/// What a run gives besides its result.
struct CudaRun {
  RunResult result;
  CudaResults learnt;
  std::vector<std::string> remarks;
  double clock_mhz = 0;  ///< Of the first device, right behind the last iteration; 0 = not known.
  /// A device hangs: what the run allocated is left behind, and so must the devices be, as giving
  /// them back would wait for it.
  bool abandoned = false;
};

/// Executes the plan on the devices, one for each slot; without a network, and then without
/// libraries, ops are kernels that spin for their time. Each measured iteration is executed twice:
/// first alone, between events at the start and the end of each device (`untold`); then with events
/// around every op, which tell the trace. Events are read against one that every device records at
/// the start of the iteration. Devices begin together, behind a kernel that waits for as long as
/// enqueuing an iteration takes, as far as the driver's queues let the host run ahead.
/// Nothing else runs on the devices, so all iterations count as clean. Where `launching` replays,
/// an op's kernels are one graph, but for the first iteration of each phase, which runs them one by
/// one so that all they need is loaded; where they cannot be recorded, it says so afterwards.
///
/// The thread waits by asking, so a device that makes no progress for the patience of the options
/// and 20 times the predicted time of the op that it is at is told as a hang; a driver call that
/// does not return is not. Requires: as many devices as slots. No context is
/// left current that was not.
CudaRun run_on_cuda(CudaDevices& devices, DeviceLibraries* libraries, CudaLaunching& launching,
                    const CudaTraining& training, const RunPlan& plan, const DeviceOrders& orders,
                    const RunOptions& options);

}  // namespace plumbline
