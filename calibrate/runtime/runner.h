// Running an op graph for real: one thread per device, one iteration after the other.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "calibrate/runtime/backend.h"
#include "calibrate/runtime/run_plan.h"
#include "calibrate/runtime/run_record.h"

namespace plumbline {

/// Executes the orders on the workers of `backend`, with links as the graph's costs set them. The
/// result is a record, or the reason why the run was given up. Each worker has its own thread; the
/// calling thread only looks for deadlocks and hangs. After a hang the hung thread is left behind
/// with all that it needs, so the process should end soon.
/// Throws the Bug of a worker, and whatever options.progress throws.
/// The plan and its parts must outlive the call, and after a hang the process.
RunResult run(const RunPlan& plan, Backend& backend, const DeviceOrders& orders,
              const RunOptions& options);

}  // namespace plumbline
