// The ops of each device of a run, cut into iterations.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "calibrate/diagnosis/recorded_run.h"

namespace plumbline {

/// The ops of one device in one iteration.
struct StreamIteration {
  std::int64_t number = 0;
  std::int64_t place = 0;  ///< Within its step, where a step holds several.
  std::vector<RunOp> ops;  ///< By the begin of their work.
  std::optional<RecordedSpan> update;
};

/// One device, on its rank's own clock.
struct DeviceStream {
  RunDevice device;
  std::vector<StreamIteration> iterations;
};

/// The streams of all devices of all ranks. Ops get their stages and the numbers of their
/// micro-batches here, where names leave them out: a rank's place is its stage, and micro-batches
/// are counted. A step of the profiler is an iteration; without steps, and within a step, one
/// begins where an op comes again. If a step holds several, they have its number, and their place
/// in it; a note says so. Where names tell no stage, ranks with collectives and without sends are
/// copies. Errors: ops of which some tell their stage and some do not; numbers of stages or
/// micro-batches beyond reason; stages that do not divide the devices; no way to tell iterations.
Result<std::vector<DeviceStream>> device_streams(const std::vector<RankRecording>& recordings,
                                                 const AssemblyOptions& options,
                                                 std::vector<std::string>& notes);

}  // namespace plumbline
