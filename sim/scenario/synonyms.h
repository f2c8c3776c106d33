// Words that a user may write instead of a key.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace plumbline {

/// The keys of all sections of a scenario, and their names in Megatron-LM, DeepSpeed and others.
/// Each word has the path of the key that is meant. The first match counts.
const std::vector<std::pair<std::string, std::string>>& words_elsewhere();

}  // namespace plumbline
