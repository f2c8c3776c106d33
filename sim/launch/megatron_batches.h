// The parts of Megatron-LM's arguments that are no model: GPUs, batches, stages.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "sim/launch/launch_arguments.h"
#include "sim/launch/megatron_reader.h"

namespace plumbline {

/// Reads the number of GPUs and what they share. Errors go to the diagnostics of `arguments`.
void read_megatron_parallelism(LaunchArguments& arguments, const LaunchGiven& given,
                               ReadLaunch& read);

/// Reads the stages: chunks, and layouts of another form than even blocks. `blocks` is 0 where a
/// config.json gives them.
void read_megatron_stages(LaunchArguments& arguments, std::int64_t blocks, ReadLaunch& read);

/// Reads sizes of micro-batch and mini-batch, and the length of the training.
void read_megatron_batches(LaunchArguments& arguments, ReadLaunch& read);

}  // namespace plumbline
