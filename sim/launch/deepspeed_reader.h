// DeepSpeed's JSON as a launch.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "sim/launch/launch_arguments.h"
#include "sim/launch/megatron_reader.h"

namespace plumbline {

/// Reads the leaves of a DeepSpeed configuration, named by their paths, for the model of
/// `given.config` with samples of `sequence` tokens. Errors: values that are left to the trainer
/// ("auto"); batches that do not agree; a number of GPUs that nothing says.
Result<ReadLaunch> read_deepspeed(LaunchArguments arguments, Diagnostics& problems,
                                  const LaunchGiven& given, std::int64_t sequence);

}  // namespace plumbline
