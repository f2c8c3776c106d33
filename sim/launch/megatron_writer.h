// A launch as a command line of Megatron-LM.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "base/diagnostic.h"
#include "sim/launch/launch_of.h"

namespace plumbline {

/// The command line, an option or two on each line, with comments in front on what it leaves out.
/// read_megatron reads it back as the same launch. Errors: a schedule that Megatron-LM does not
/// have; a config.json that cannot be read.
Result<std::string> megatron_text(const ScenarioLaunch& made);

}  // namespace plumbline
