// A recorded run in the terms of a prediction: the same graph, with the times that were recorded.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "base/diagnostic.h"
#include "calibrate/diagnosis/recorded_run.h"
#include "calibrate/diagnosis/run_costs.h"
#include "calibrate/runtime/real_run.h"
#include "sim/setup/training_setup.h"

namespace plumbline {

/// Puts the recorded times into the graph of a setup. Ops and updates have their own times (of ops
/// that overlap on a device, the later one begins when the earlier one ends), a
/// transfer ends with its data's arrival, and the iteration ends when the next one begins. What was
/// not recorded takes no time: all-reduces within the setup's graph, gathers of weights. Memory was
/// not recorded, and there is none in the result.
/// Errors, each a sentence: another number of stages, micro-batches or devices; another order of
/// ops on a device, with both; replicas, slices, several mini-batches, no flush at all (pipedream).
Result<RealRun> measured_run(TrainingSetup setup, const RecordedRun& run, const RunCosts& costs);

}  // namespace plumbline
