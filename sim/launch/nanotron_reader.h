// nanotron's YAML as a launch.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "sim/launch/launch_arguments.h"
#include "sim/launch/megatron_reader.h"

namespace plumbline {

/// Reads the leaves of a nanotron configuration, named by their paths. Errors: keys that are
/// missing; GPUs other than dp x tp x pp x cp; models other than llama's and Qwen's.
Result<ReadLaunch> read_nanotron(LaunchArguments arguments, Diagnostics& problems,
                                 const LaunchGiven& given);

}  // namespace plumbline
