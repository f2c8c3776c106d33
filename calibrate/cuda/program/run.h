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

/// The result of a run, and its other findings.
struct CudaRun {
  RunResult result;
  CudaResults learnt;
  std::vector<std::string> remarks;
  double clock_mhz = 0;  ///< The first device's, after the last iteration; 0 = not known.
  /// A device hangs: the run's memory is left behind. The devices must be left behind, too, as
  /// freeing them would wait for the hanging one.
  bool abandoned = false;
};

/// Executes the plan on the devices, one per slot. Without a network there are no libraries, and
/// ops are kernels that spin for their time. Each measured iteration is executed twice: first
/// alone, between events at the start and the end of each device (`untraced`); then with events
/// around every op, which give the trace. Events are read against one that every device records at
/// the start of the iteration. Devices begin together, behind a kernel that waits while the host
/// enqueues an iteration, as far as the driver's queues let the host run ahead. Nothing else runs
/// on the devices, so all iterations count as clean. Where `launching` replays, an op's kernels are
/// one graph. The first iteration of each phase runs them one by one, so that all they need is
/// loaded. If they cannot be recorded, `launching` says so afterwards.
///
/// The thread waits by polling. A device hangs if it makes no progress for the options' patience
/// plus 20 times the predicted time of its present op. A driver call that does not return is not
/// noticed. Requires: as many devices as slots. The current context is the same after the call.
CudaRun run_on_cuda(CudaDevices& devices, DeviceLibraries* libraries, CudaLaunching& launching,
                    const CudaTraining& training, const RunPlan& plan, const DeviceOrders& orders,
                    const RunOptions& options);

}  // namespace plumbline
