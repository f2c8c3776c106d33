// The model of Megatron-LM's arguments as a config.json.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/launch/launch_arguments.h"

namespace plumbline {

/// The sizes of a model that were read, as the text of a config.json.
struct MegatronModel {
  std::string shape;
  std::int64_t blocks = 0;
  std::vector<std::string> notes;
};

/// Reads sizes, attention, norms, activation and experts: --num-layers and what goes with it, or
/// the keys of NeMo and Megatron-Bridge of the same meaning. `tensor` is the tensor parallelism, to
/// which the vocabulary is padded. Errors, added to those of `arguments`: sizes that are missing,
/// and blocks that no config.json here has.
std::optional<MegatronModel> read_megatron_model(LaunchArguments& arguments, std::int64_t tensor);

/// Marks these arguments as read: a config.json stands in their place.
void pass_over_megatron_model(LaunchArguments& arguments);

}  // namespace plumbline
