// Megatron-LM's arguments, and the YAML of NeMo and Megatron-Bridge, as a launch.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "sim/launch/launch.h"
#include "sim/launch/launch_arguments.h"

namespace plumbline {

/// What stands beside the arguments on our own command line.
struct LaunchGiven {
  std::string config;                ///< The path of a config.json; "" = of the arguments.
  std::optional<std::int64_t> gpus;  ///< The number of GPUs; nothing: of the arguments.
};

/// Reads the arguments of a Megatron-LM run. Errors: those of the arguments; a number of GPUs that
/// is not known, or that the parallelism does not divide; sizes that are missing.
Result<ReadLaunch> read_megatron(LaunchArguments arguments, Diagnostics& problems,
                                 const LaunchGiven& given);

}  // namespace plumbline
