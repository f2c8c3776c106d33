// What no run of a scenario beats, without a run.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "sim/scenario/scenario.h"

namespace plumbline {

/// Bounds of a scenario's prediction. They cost a small part of it.
struct RunBounds {
  /// False: some device lacks memory, whatever the times of the ops are.
  bool may_fit = true;
  /// No run takes less, in seconds; 0 = nothing is known.
  double iteration_time_s = 0;
  double samples_per_iteration = 0;  ///< Those of the prediction.
  std::int64_t devices = 1;          ///< Those that hold a stage; all of a group count.
  std::int64_t stages = 0;           ///< Stages of the pipeline; 0 = not known before planning.

  /// No run has more, in samples per second; infinite where no time is known.
  double throughput() const;
};

/// The bounds of what settle_and_predict() gives.
///
/// Memory: the floor of each device (MemoryFloor). Where as few layers as fit are recomputed, no
/// number may be left within the floor.
///
/// Time, between two flushes: a device runs all of its ops one after another. Its first forward
/// waits for the forwards of all stages in front of it. Behind its last backward the backwards of
/// all these stages follow. Then come the updates of the device that has most. Where as few layers
/// as fit are recomputed, each group of stages recomputes at least as many as the floor asks for,
/// its fastest ones. Transfers, collectives and what else holds up ops are left out. Nothing is
/// known of the time without a flush, of overlapping pairs, of noise, and of devices whose
/// neighbours slow them.
///
/// Errors: those of resolve_setup(), but for what only a long run is too large for.
Result<RunBounds> run_bounds(const Scenario& scenario);

}  // namespace plumbline
