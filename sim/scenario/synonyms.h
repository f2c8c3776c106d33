// Words that a user may take for a key.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace plumbline {

/// The keys of all sections of a scenario, and what they are called by Megatron-LM, DeepSpeed and
/// others; each with the path of the key that is meant, first come first.
const std::vector<std::pair<std::string, std::string>>& words_elsewhere();

}  // namespace plumbline
