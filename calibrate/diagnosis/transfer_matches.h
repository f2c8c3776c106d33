// Which recorded send and receive belong to which op.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "calibrate/diagnosis/recorded_run.h"

namespace plumbline {

/// Fills the transfers of all iterations. Where ranges around sends and receives name their op, by
/// that name. Where the kernels name the other rank, in order: what a rank sends to another one
/// arrives in that order. Receives of gloo name neither: they stand in the order of the ops that
/// need them. Times stay on the clocks of their ranks. A note says where the numbers of sends or
/// receives do not fit the ops; those are then unknown.
void match_transfers(RecordedRun& run, const std::vector<RankRecording>& recordings);

}  // namespace plumbline
