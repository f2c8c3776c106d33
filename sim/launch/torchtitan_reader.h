// torchtitan's configuration (TOML) as a launch.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "base/diagnostic.h"
#include "sim/launch/launch.h"
#include "sim/launch/launch_arguments.h"
#include "sim/launch/megatron_reader.h"

namespace plumbline {

/// Reads the arguments by their paths, as torchtitan has them: what is absent has its default. The
/// model is given by name and flavor, or by `given`; the number of GPUs by `given`, or by
/// data_parallel_shard_degree. Errors, added to `problems`: a model that is not known here, GPUs
/// that are not given or do not divide, a schedule that is not known.
Result<ReadLaunch> read_torchtitan(LaunchArguments arguments, Diagnostics& problems,
                                   const LaunchGiven& given);

/// The stages of `layers` blocks as torchtitan cuts them, as Megatron-LM writes layouts. The first
/// and the last stage have `first` and `last` blocks less than others. "" = it does not cut so
/// (torchtitan/distributed/pipeline_parallel.py, generate_llm_fqn_per_model_part).
std::string torchtitan_layout(std::int64_t layers, std::int64_t stages, std::int64_t first,
                              std::int64_t last);

}  // namespace plumbline
