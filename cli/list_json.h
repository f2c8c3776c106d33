// The output of `plumbline list` as JSON.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "cli/real.h"

namespace plumbline {

/// The reason why the backend cannot run here, if there is one: "this build has no ...", "there is
/// no CUDA driver on this machine ...".
std::optional<std::string> why_unavailable(const BackendName& backend);

/// All schedules, backends, presets or stacks, in the order in which they are listed. Presets with
/// the numbers of their kernels.
std::string schedules_json();
std::string backends_json();
std::string presets_json();
std::string stacks_json();

}  // namespace plumbline
