// Running an op graph for real: a thread a device, round after round.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "calibrate/runtime/backend.h"
#include "calibrate/runtime/run_plan.h"
#include "calibrate/runtime/run_record.h"

namespace plumbline {

/// Executes the orders on the workers of `backend`, with links as the graph's costs set them, and
/// ends with a record or with the reason why it was given up. A worker is a thread; the calling
/// thread only looks for deadlocks and hangs. After a hang the thread that hangs is left behind,
/// with all that it needs, so the process should end soon.
/// Throws a Bug of a worker; what options.progress throws.
/// The plan and its parts must outlive the call, and after a hang the process.
RunResult run(const RunPlan& plan, Backend& backend, const DeviceOrders& orders,
              const RunOptions& options);

}  // namespace plumbline
